"""Rankers: presets of a loss, a model and its parameters, as scikit-learn estimators."""

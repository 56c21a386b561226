"""One feature, up or down: the least that a model can be."""

from dataclasses import dataclass

import numpy as np

from rankwright.models import Round


@dataclass(frozen=True)
class FittedFeature:
    """A feature and its weight."""

    feature: int
    weight: float
    n_features: int

    def scores(self, X, *, n_jobs=None):
        """Return the score of each row."""
        return self.weight * np.asarray(X[:, [self.feature]], np.float64).ravel()

    def arrays(self):
        """Return what a model file keeps."""
        return {"column": np.array([self.feature]), "factor": np.array([self.weight])}

    def texts(self):
        """Return no texts."""
        return {}


@dataclass(frozen=True)
class OneFeature:
    """The one feature that has the least loss, at the best of a few weights."""

    steps: int = 5

    def rounds(self, loss, data, valid=None, *, start=None, random_state=0, n_jobs=None):
        """Yield one round, which has tried every feature with every weight."""
        bound = loss.bind(data, n_jobs=n_jobs)
        tried = []
        for feature in range(data.n_features):
            for weight in np.linspace(-1.0, 1.0, self.steps):
                one = FittedFeature(feature, float(weight), data.n_features)
                tried.append((bound.value(one.scores(data.X)), feature, float(weight)))
        value, feature, weight = min(tried)
        fitted = FittedFeature(feature, weight, data.n_features)
        valid_scores = None if valid is None else fitted.scores(valid.X)
        yield Round(1, value, valid_scores, model=lambda: fitted)

    @staticmethod
    def restore(arrays, texts, n_features):
        """Build the fitted model from its arrays."""
        return FittedFeature(int(arrays["column"][0]), float(arrays["factor"][0]), n_features)

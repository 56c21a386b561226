"""Rankers side by side on the same data: the demo, and later comparisons and paper tables."""

"""Rankers side by side on the same data: comparisons, tuning, the papers' tables, the demo."""

"""Ranking data: the container, readers and writers of common formats, splits and synthetic data.

Names load on first use; importing this package loads nothing else.

    from rankwright.data import RankingData, load, train_valid_test_split
"""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

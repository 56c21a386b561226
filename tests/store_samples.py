"""Data with every optional array, to be stored, and stores written part by part."""

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.data.store import Store


def full_data(X=None, **changes):
    if X is None:
        X = np.array([[-0.0, 0.1], [5e-324, np.nan], [1, 2], [3, 4]])
    arrays = {
        "y": [0, 2.5, 1, 0],
        "qid": ["007", "007", "a", "a long id: é"],
        "doc_id": ["NA", "", "two\nlines", "x"],
        "group": [3, 3, 4, 4],
        "position": [1, 2, 1, 1],
        "sample_weight": [0.1, 0.2, 0.3, 0.4],
        "query_weight": [1.5, 2, 0],
        "feature_names": ["price", "clicks"],
    }
    return RankingData.from_arrays(X, **{**arrays, **changes})


def write_parts(path, parts):
    with Store().open_writer(path) as writer:
        for part in parts:
            writer.append(part)

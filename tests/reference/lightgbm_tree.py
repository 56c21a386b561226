"""One LightGBM tree grown from given scores: its leaves show its own gradients and curvatures."""

import lightgbm
import numpy as np


def leaf_values(objective, data, s, l2, **params):
    """Leaf of each document, and its output: -sum of gradients / (sum of curvatures + l2)."""
    n = data.n_documents
    params |= {
        "objective": objective,
        "learning_rate": 1.0,
        "num_leaves": n,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "max_bin": 2 * n,
        "min_sum_hessian_in_leaf": 1e-9,
        "lambda_l2": l2,
        "num_threads": 1,
        "verbose": -1,
    }
    X = np.arange(n, dtype=float)[:, None]
    train = lightgbm.Dataset(X, data.y, group=data.sizes, init_score=s, params=params)
    tree = lightgbm.train(params, train, 1)
    return tree.predict(X, pred_leaf=True).ravel(), tree.predict(X)

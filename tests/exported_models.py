"""Fitted rankers of every kind that can be exported, and an export in one call."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from small_data import small_data

import rankwright as rw
from rankwright import registry
from rankwright.export.folder import export_model
from rankwright.models.additive import FittedAdditive
from rankwright.models.linear import FittedLinear
from rankwright.models.tree_text import DEFAULT_LEFT, Nodes, model_text, tree_block
from rankwright.models.trees import FittedTrees


def with_gaps(data, share=0.15, seed=1):
    X = data.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return replace(data, X=X)


def with_categories():
    """Enough documents of each category for LightGBM to split on it."""
    data = small_data(queries=60, documents=15, features=5)
    X = data.X.copy()
    X[:, 0] = np.random.default_rng(2).integers(0, 6, len(X)) * 7
    return replace(data, X=X, y=(X[:, 0] % 3).astype(float))


def targets_of(family):
    """Return the names of the targets that hold models of a family."""
    return sorted(to for to, made in registry.all_of("exports").items() if family in made.families)


@cache
def fitted_rankers():
    """Return a ranker for each family and each way to treat missing values."""
    data = small_data(queries=15, documents=15, features=5)
    gaps = with_gaps(data)
    trees = {"n_estimators": 12, "num_leaves": 7}
    found = {
        "linear": rw.ranker("ranksvm").fit(data),
        "linear-listnet": rw.ranker("listnet", model="linear").fit(data),
        "linear-intercept": rw.Ranker(loss="squared", model="linear").fit(data),
        "linear-zero": rw.ranker("ranksvm", missing="zero").fit(gaps),
        "linear-mean": rw.ranker("ranksvm", missing="mean").fit(gaps),
        "trees": rw.ranker("lambdamart", **trees).fit(data),
        "trees-gaps": rw.ranker("lambdamart", **trees).fit(gaps),
        "trees-initial": rw.ranker("gbdt", **trees).fit(gaps),
        "trees-categories": rw.ranker("gbdt", categorical_feature=[0], **trees).fit(
            with_categories()
        ),
        "trees-forest": rw.ranker("random_forest", n_bags=4, num_leaves=20).fit(data),
        "additive": rw.ranker("rankboost", n_rounds=30).fit(data),
        "additive-gaps": rw.ranker("rankboost", n_rounds=30).fit(gaps),
        "network-flat": rw.ranker("ranknet", hidden_layer_sizes=(), epochs=5).fit(data),
        "network-relu": rw.ranker("ranknet", activation="relu", epochs=5).fit(data),
        "network-elu": rw.ranker("ranknet", activation="elu", epochs=5).fit(data),
        "network-tanh": rw.ranker("ranknet", activation="tanh", epochs=5).fit(data),
        "network-sigmoid": rw.ranker("ranknet", activation="sigmoid", epochs=5, missing="mean").fit(
            gaps
        ),
    }

    def blend(*names):
        return rw.Blend.of({name: found[name] for name in names}, 0.3 + np.arange(len(names)))

    return found | {
        "linear-blend": blend("linear", "linear-listnet"),
        "trees-blend": blend("trees-gaps", "additive-gaps", "trees-forest"),
        "network-blend": blend("network-sigmoid"),
        "blend": blend("linear-intercept", "trees", "network-elu"),
        "blend-smooth": blend("linear", "network-tanh"),
        "blend-gaps": blend("linear-mean", "linear-zero", "trees-initial", "network-sigmoid"),
    }


def holding(name, model, **params):
    """Return a ranker with a model made by hand."""
    ranker = registry.resolve("rankers", name)(**params)
    ranker.model_, ranker.n_features_in_ = model, model.n_features
    ranker.data_digest_, ranker.curve_, ranker.best_iteration_ = "", {}, 1
    return ranker


def of_rules(rules, n_features=2, initial=0.0):
    """Return a ranker that adds up weight * [x_feature > threshold]."""
    feature, threshold, weight = zip(*rules, strict=True)
    model = FittedAdditive(
        np.array(feature), np.array(threshold, float), np.array(weight, float),
        initial, len(rules), n_features,
    )  # fmt: skip
    return holding("rankboost", model)


def of_splits(splits, n_features=2):
    """Return a ranker of trees with one split each: feature, threshold, missing left, values."""
    blocks = []
    for feature, threshold, missing_left, values in splits:
        inner = np.array([True, False, False])
        nodes = Nodes(
            inner=inner,
            left=np.array([1, 1, 2]),
            right=np.array([2, 1, 2]),
            feature=np.where(inner, feature, 0),
            threshold=np.where(inner, threshold, 0.0),
            decision=np.full(3, 8 + DEFAULT_LEFT * missing_left),
            gain=np.ones(3),
            value=np.array([0.0, *values]),
            weight=np.ones(3),
            count=np.array([2, 1, 1]),
        )
        blocks.append(tree_block(nodes))
    text = model_text([f"f{j}" for j in range(n_features)], blocks)
    return holding("lambdamart", FittedTrees(text, 0.0, n_features))


def of_weights(coef, fill=None):
    """Return a ranker with given weights."""
    coef = np.array(coef, float)
    filled = None if fill is None else np.array(fill, float)
    return holding("ranksvm", FittedLinear(coef, filled, len(coef)))


def scored(ranker, to, folder: Path, X, **options):
    """Export to ``folder`` and return what the evaluator of the target scores."""
    about = export_model(ranker, to, folder, **options)
    X = np.asarray(X, float)
    return np.asarray(registry.resolve("exports", to)().scores(folder, about, X)), about


def plain(found, about):
    """Return scores without the constant that keeps Elasticsearch's above 0."""
    return found - about["score"]["offset"]


def named(ranker, *names):
    """Give the features of a ranker names; return it."""
    ranker.feature_names_in_ = np.array(names, object)
    return ranker


def chain(depth):
    """A tree that splits on and on to the right, in LightGBM's text."""
    inner = range(depth)
    lines = {
        "num_leaves": [depth + 1],
        "num_cat": [0],
        "split_feature": [0] * depth,
        "split_gain": [1] * depth,
        "threshold": [float(k) for k in inner],
        "decision_type": [0] * depth,
        "left_child": [-1 - k for k in inner],
        "right_child": [*range(1, depth), -1 - depth],
        "leaf_value": [float(k) for k in range(depth + 1)],
        "leaf_weight": [1] * (depth + 1),
        "leaf_count": [1] * (depth + 1),
        "internal_value": [0] * depth,
        "internal_weight": [1] * depth,
        "internal_count": [2] * depth,
        "is_linear": [0],
        "shrinkage": [1],
    }
    body = "\n".join(f"{key}={' '.join(map(str, some))}" for key, some in lines.items())
    tree = f"Tree=0\n{body}\n\n\n"
    head = (
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
        "max_feature_idx=1\nobjective=custom\nfeature_names=a b\nfeature_infos=none none\n"
        f"tree_sizes={len(tree)}\n\n"
    )
    return holding("lambdamart", FittedTrees(f"{head}{tree}end of trees\n", 0.0, 2))

"""Fitted rankers of every kind that can be exported, and an export in one call."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from forests import forest_of_splits
from small_data import small_data

import rankwright as rw
from rankwright import registry
from rankwright.export.folder import export_model
from rankwright.models.forest import Forest
from rankwright.models.forest_scoring import NAN_LEFT, NAN_RIGHT, PLAIN
from rankwright.models.linear import FittedLinear


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
    columns = [np.array(column) for column in zip(*rules, strict=True)]
    return holding("rankboost", Forest.of_rules(n_features, *columns, base=initial))


def of_splits(splits, n_features=2):
    """Return a ranker of trees with one split each: feature, threshold, missing left, values."""
    rules = (NAN_RIGHT, NAN_LEFT)
    trees = [
        (feature, threshold, rules[missing_left], values)
        for feature, threshold, missing_left, values in splits
    ]
    return holding("lambdamart", forest_of_splits(trees, n_features))


def of_weights(coef, fill=None):
    """Return a ranker with given weights."""
    coef = np.array(coef, float)
    filled = None if fill is None else np.array(fill, float)
    return holding("ranksvm", FittedLinear(coef, filled))


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
    """Return a ranker with a tree that splits on and on to the right."""
    nodes = np.arange(2 * depth + 1)
    is_split = nodes < depth
    forest = Forest.of_nodes(
        2,
        left=np.where(is_split, depth + nodes, -1),
        right=np.where(is_split, np.where(nodes < depth - 1, nodes + 1, 2 * depth), -1),
        feature=np.zeros(len(nodes), int),
        threshold=np.where(is_split, nodes, 0.0),
        rule=np.full(len(nodes), PLAIN),
        value=np.where(is_split, 0.0, nodes - depth),
        cover=np.where(is_split, 2.0, 1.0),
        gain=np.where(is_split, 1.0, 0.0),
    )
    return holding("lambdamart", forest)

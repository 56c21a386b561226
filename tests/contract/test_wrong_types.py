"""A parameter of a wrong type is refused with a sentence that names it, in every part.

The sweep gives each parameter of each loss, model, solver, ranker and metric one value of each type
in `WRONG`. A part may accept a value; an error must be one of ours and name the parameter.
"""

import re
import warnings
from dataclasses import fields
from itertools import islice

import numpy as np
import pytest

from rankwright import registry
from rankwright.core.parameters import declared_types
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError
from rankwright.metrics.evaluation import Evaluator
from rankwright.rankers.base import ranker

WRONG = {"None": None, "text": "x", "number": 0.0, "list": [], "mapping": {}, "object": object()}
KINDS = ("losses", "models", "solvers", "rankers", "metrics")
QUICK_MODELS = {
    "additive": {"n_rounds": 2},
    "coordinate_ascent": {"n_restarts": 1},
    "expression": {"population": 6, "n_generations": 1},
    "forest": {"n_bags": 2},
    "network": {"hidden_layer_sizes": (2,), "epochs": 1},
    "passive_aggressive": {"n_steps": 20},
    "trees": {"n_estimators": 2},
}
LOSS_OF_SOLVER = {
    "alternating": "retarget",
    "bundle": "rocarea_svm",
    "column_generation": "domination",
    "coordinate": "domination",
}


def small():
    rng = np.random.default_rng(0)
    n = 24
    return RankingData.from_arrays(
        rng.normal(size=(n, 3)),
        rng.integers(0, 3, n),
        qid=np.repeat(np.arange(4), 6),
        position=np.tile(np.arange(1, 7), 4),
        group=rng.integers(0, 3, n),
    )


DATA = small()


def parameters(kind, name):
    if kind == "rankers":
        return list(ranker(name).get_params(deep=False))
    return [field.name for field in fields(registry.resolve(kind, name)) if field.init]


def ranker_of_model(name):
    """Return the ranker that has this model by default, to fit the model with its loss."""
    for one, cls in registry.all_of("rankers").items():
        if cls.model_class == name:
            return one
    return "ranker"


def use(kind, name, given):
    """Work with a part that has the parameters ``given``: bind, fit or evaluate."""
    if kind == "rankers":
        model = registry.resolve("rankers", name).model_class
        quick = {"members": ("memr", "linear_regression"), "folds": 2} if name == "blend" else {}
        quick |= {f"model__{key}": value for key, value in QUICK_MODELS.get(model, {}).items()}
        quick = {key: value for key, value in quick.items() if key.partition("__")[2] not in given}
        if "model" in given:
            quick = {}
        ranker(name, **{**quick, **given}).fit(DATA, eval_set=DATA)
        return
    part = registry.resolve(kind, name)
    if kind == "losses":
        part(**given).bind(DATA).grad(np.zeros(DATA.n_documents), np.empty(DATA.n_documents))
    elif kind == "models":
        chosen = part(**{**QUICK_MODELS.get(name, {}), **given})
        ranker(ranker_of_model(name), model=chosen).fit(DATA)
    elif kind == "solvers":
        quick = {} if "max_iter" in given else {"max_iter": 3}
        quick = {key: value for key, value in quick.items() if key in parameters(kind, name)}
        loss = LOSS_OF_SOLVER.get(name, "ranknet")
        ranker("ranker", loss=loss, solver=part(**{**quick, **given})).fit(DATA)
    else:
        Evaluator(DATA, part(**given))(np.arange(DATA.n_documents))


def error_of(kind, name, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            use(kind, name, given)
        except Exception as error:
            return error
    return None


def raw_errors(kind, name):
    """Yield the combinations of a part that are answered without a sentence that names them."""
    for parameter in parameters(kind, name):
        for label, value in WRONG.items():
            error = error_of(kind, name, {parameter: value})
            if error is None:
                continue
            ours = isinstance(error, RankwrightError)
            if not (ours and re.search(rf"\b{parameter}\b", str(error))):
                yield f"{parameter}={label}: {type(error).__name__}: {error}"


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in registry.KINDS[kind]]
)
def test_a_parameter_of_a_wrong_type_is_refused_by_its_name(kind, name):
    assert error_of(kind, name, {}) is None
    assert list(islice(raw_errors(kind, name), 5)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_type_of_each_parameter_is_declared(kind):
    for name, part in registry.all_of(kind).items():
        assert set(parameters(kind, name)) <= declared_types(part).keys(), name

"""A fit that was killed, and killed again, goes on from its checkpoints to the same model file.

The registry decides what is tested: every model has a case, or a reason not to.
"""

from itertools import cycle
from zlib import crc32

import numpy as np
import pytest
from forests import as_bytes
from small_data import small_data

from rankwright import loss, registry
from rankwright.models import Network
from rankwright.persist.checkpoint import Checkpoint
from rankwright.rankers.base import ranker

DATA, VALID = small_data(queries=14, documents=12), small_data(queries=6, documents=12, seed=1)
NOT_RESUMABLE = {"classifier", "factorization", "kernel", "least_squares", "linear"}
NOT_RESUMABLE |= {"jrank", "passive_aggressive", "prank"}

# ranker, its parameters, models that the case stands for
CASES = {
    "trees": ("lambdamart", {"n_estimators": 9}, ["trees"]),
    "trees-sampled": (
        "gbrank",
        {
            "n_estimators": 9,
            "model__subsample": 0.6,
            "model__query_fraction": 0.8,
            "model__colsample_bytree": 0.4,
        },
        [],
    ),
    "trees-lbfgs": ("intervalrank", {"n_estimators": 12, "model__direction": "lbfgs"}, []),
    "trees-noisy": (
        "xendcg",
        {"n_estimators": 8, "early_stopping_rounds": 4},
        [],
    ),
    "trees-squared": ("gbdt", {"n_estimators": 9, "model__leaves": "constant"}, []),
    "forest": ("random_forest", {"n_bags": 8, "num_leaves": 5}, ["forest"]),
    "additive": ("frank", {"n_rounds": 14}, ["additive"]),
    "additive-formula": ("rankboost", {"n_rounds": 14}, []),
    "feature_sum": ("adarank", {}, ["feature_sum"]),
    "feature_sum-total": ("adarank", {"weights": "total", "tol": None, "n_rounds": 20}, []),
    "coordinate_ascent": (
        "coordinate_ascent",
        {"n_restarts": 2, "n_passes": 3},
        ["coordinate_ascent"],
    ),
    "expression": (
        "rankgp",
        {"population": 30, "n_generations": 9},
        ["expression"],
    ),
    "network": (
        "xendcg",
        {
            "model": Network(hidden_layer_sizes=(4,), epochs=7, dropout=0.2, batch_size=50),
        },
        ["network"],
    ),
}


class Kill(BaseException):
    """Stands for kill -9: nothing may catch it."""


class Deadly(Checkpoint):
    """Ends the run at the n-th round that is offered, or at the n-th write."""

    def __init__(self, folder, *, moment, number, **more):
        super().__init__(folder, **more)
        self.moment, self.number = moment, number

    def due(self, t):
        due = super().due(t)
        self._count("before" if due else "")
        return due

    def write(self, *kept):
        super().write(*kept)
        self._count("after")

    def _count(self, moment):
        self.number -= moment == self.moment
        if self.number == 0:
            raise Kill


def saved(name, parameters, path, **more):
    fitted = ranker(name, **parameters, n_jobs=1).fit(DATA, eval_set=VALID, **more)
    fitted.save(path)
    return path.read_bytes(), fitted


def test_every_model_is_there():
    stands_for = {part for _, _, parts in CASES.values() for part in parts}
    assert stands_for | NOT_RESUMABLE == registry.MODELS.keys()
    for case, (name, parameters, parts) in CASES.items():
        chosen = ranker(name, **parameters).model_name
        assert not set(parts) & registry.MODELS.keys() - {chosen}, case


@pytest.mark.parametrize("case", CASES)
def test_killed_and_killed_again_it_ends_with_the_same_bytes(case, tmp_path):
    name, parameters, _ = CASES[case]
    whole, _ = saved(name, parameters, tmp_path / "whole.rw")
    rng = np.random.default_rng(crc32(case.encode()))
    moments = cycle(rng.permutation(["before", "after"]).tolist())
    every, folder = int(rng.integers(1, 4)), tmp_path / "kept"
    last = 0
    for number, moment in zip((2, 1), moments, strict=False):
        deadly = Deadly(folder, moment=moment, number=number, every=every, resume=last > 0)
        with pytest.raises(Kill):
            saved(name, parameters, tmp_path / "never.rw", checkpoint=deadly)
        last = number
    again, fitted = saved(
        name,
        parameters,
        tmp_path / "again.rw",
        checkpoint=Checkpoint(folder, every=every, resume=True),
    )
    assert fitted.resumed_from_ is not None
    assert again == whole
    assert not (tmp_path / "never.rw").exists()


@pytest.mark.parametrize("case", ["trees", "network", "coordinate_ascent"])
def test_a_run_that_ended_goes_on_from_its_last_checkpoint_to_the_same_end(case, tmp_path):
    name, parameters, _ = CASES[case]
    kept = {"every": 1, "resume": True}
    first, _ = saved(name, parameters, tmp_path / "a.rw", checkpoint=Checkpoint(tmp_path, **kept))
    again, end = saved(name, parameters, tmp_path / "b.rw", checkpoint=Checkpoint(tmp_path, **kept))
    assert end.resumed_from_ > 1
    assert first == again == saved(name, parameters, tmp_path / "c.rw")[0]


def test_trees_go_on_after_those_of_a_start(tmp_path):
    start = ranker("lambdamart", n_estimators=3, random_state=5).fit(DATA)
    parameters = {"n_estimators": 8, "colsample_bytree": 0.5}
    whole, _ = saved("lambdamart", parameters, tmp_path / "a.rw", init_model=start)
    deadly = Deadly(tmp_path / "kept", moment="after", number=2, every=2)
    with pytest.raises(Kill):
        saved("lambdamart", parameters, tmp_path / "b.rw", init_model=start, checkpoint=deadly)
    kept = Checkpoint(tmp_path / "kept", resume=True)
    again, end = saved(
        "lambdamart", parameters, tmp_path / "b.rw", init_model=start, checkpoint=kept
    )
    assert end.resumed_from_ > 3
    assert again == whole


# Hardly any row is sampled, so many rounds find no split; LightGBM drops their trees.
EMPTY = {
    "n_estimators": 40, "subsample": 0.1, "min_child_samples": 10, "min_child_weight": 0.6,
    "num_leaves": 31, "learning_rate": 0.1, "colsample_bytree": 1.0,
    "early_stopping_rounds": None,
}  # fmt: skip


def test_trees_without_a_split_leave_the_same_model(tmp_path):
    def grown(checkpoint=None):
        fitted = ranker("lambdamart", **EMPTY, n_jobs=1).fit(DATA, checkpoint=checkpoint)
        assert fitted.best_iteration_ == 40
        return as_bytes(fitted.model_), fitted.model_.n_trees

    whole = grown()
    empty_rounds = 40 - whole[1]
    assert 5 < empty_rounds < 35
    for number in range(1, 36, 3):
        folder = tmp_path / str(number)
        for kills in (number, 2):  # the second run may begin with a round that finds no split
            deadly = Deadly(folder, moment="after", number=kills, every=1, resume=True)
            with pytest.raises(Kill):
                grown(deadly)
        assert grown(Checkpoint(folder, every=9, resume=True)) == whole


def test_the_trees_kept_are_those_of_the_best_round_where_rounds_find_no_split(tmp_path):
    _, fitted = saved("lambdamart", EMPTY, tmp_path / "a.rw")
    curve = fitted.curve_["valid ndcg@10"]
    assert fitted.best_iteration_ < len(curve)
    assert fitted.score(VALID) == max(curve)
    more = ranker("lambdamart", **EMPTY).fit(DATA, eval_set=VALID, init_model=fitted)
    assert more.score(VALID) == max(more.curve_["valid ndcg@10"])


@pytest.mark.parametrize("name", registry.LOSSES)
def test_a_loss_that_is_reported_its_memory_answers_as_the_one_that_has_it(name):
    # Scores on a grid have ties, whose order must not depend on what was asked before.
    made, rng = loss(name), np.random.default_rng(3)
    s, *others = np.rint(rng.normal(size=(4, DATA.n_documents)) * 4) / 3
    went_on, put_back = made.bind(DATA, n_jobs=1), made.bind(DATA, n_jobs=1)
    g, again = np.empty(len(s)), np.empty(len(s))
    for t, at in enumerate(others, start=1):
        if hasattr(went_on, "set_iteration"):
            went_on.set_iteration(t)
        went_on.grad(at, g)
    put_back.load_state({key: array.copy() for key, array in went_on.state().items()})
    assert went_on.grad(s, g) == put_back.grad(s, again)
    np.testing.assert_array_equal(g, again)
    if made.traits.stochastic:
        assert went_on.state()["clock"][1] == put_back.state()["clock"][1] == 3

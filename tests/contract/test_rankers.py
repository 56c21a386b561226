"""What every ranker promises; the registry decides who is tested."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import run, run_json
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_estimator,
    check_sample_weight_equivalence_on_dense_data,
)
from small_data import small_data

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import NotFittedError, ranker
from rankwright.rankers.fitting import smoothed
from rankwright.solvers.choice import default_solver
from rankwright.testing import expected_failed_checks

QUICK = {
    "additive": {"n_rounds": 30},
    "blend": {},
    "classifier": {},
    "feature_sum": {},
    "trees": {"n_estimators": 12},
    "expression": {"population": 60, "n_generations": 6},
    "coordinate_ascent": {"n_restarts": 1},
    "factorization": {},
    "jrank": {},
    "least_squares": {},
    "forest": {"n_bags": 12},
    "kernel": {"l2": 0.1},
    "linear": {},
    "network": {"hidden_layer_sizes": (4,), "epochs": 8, "learning_rate": 0.1, "batch_size": 150},
    "passive_aggressive": {"n_steps": 5_000},
    "prank": {},
}
OWN = {"blend": {"members": ("memr", "linear_regression"), "folds": 2}}
WHOLE_DOCUMENTS = ("boltzrank", "dorm", "softrank", "svm_precision")  # hold ranks, weight or not
KERNEL = ("dorm", "irsvm", "memr", "ranksvm", "svm_precision", "svm_rocarea")
DATA, VALID = small_data(), small_data(seed=1)


def models_of(name):
    """The default model of a ranker and, where it minimises a loss of its own, others."""
    cls = registry.resolve("rankers", name)
    if name == "ranker":
        return ("linear", "trees", "forest", "kernel", "network", "additive")
    usual = ("linear", "trees", "network")
    if cls.loss_class is None or cls.model_class not in usual:
        return (cls.model_class,)
    others = [model for model in usual if model != cls.model_class]
    return (cls.model_class, *others, *(["kernel"] if name in KERNEL else []))


CASES = [(name, model) for name in registry.RANKERS for model in models_of(name)]


def make(name, model, **more):
    own = registry.resolve("rankers", name).model_class == model
    quick = {f"model__{key}": value for key, value in QUICK[model].items()}
    return ranker(
        name, **({} if own else {"model": model}), **{**quick, **OWN.get(name, {}), **more}
    )


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(case):
    return make(*case).fit(DATA)


def ndcg(data, scores):
    return evaluate(data, scores, "ndcg@10")["ndcg@10"]


def test_beats_random(fitted):
    chance = ndcg(VALID, np.random.default_rng(0).random(VALID.n_documents))
    assert ndcg(VALID, fitted.predict(VALID)) > chance + 0.1


@pytest.mark.parametrize(  # every ranker and every model once
    "case",
    [
        (name, model)
        for name, model in CASES
        if (name == "ranker" or model == models_of(name)[0])
        and model
        not in ("factorization", "jrank")  # scores of users: tests/rankers/test_ratings.py
    ],
    indirect=True,
)
def test_arrays_frames_and_ranking_data_give_the_same_scores(case, fitted):
    scores = fitted.predict(DATA)
    qid = DATA.query_of_row()
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(DATA.X, columns=names)
    from_arrays = make(*case).fit(DATA.X, DATA.y, qid=qid)
    from_frame = make(*case).fit(frame, DATA.y, qid=qid)
    by_name = make(*case).fit(
        pl.from_pandas(frame.assign(query=qid, grade=DATA.y)), "grade", qid="query"
    )
    assert (from_arrays.predict(DATA.X) == scores).all()
    assert (from_frame.predict(frame[names[::-1]]) == scores).all()
    assert (by_name.predict(frame) == scores).all()
    assert list(from_frame.feature_names_in_) == names


def test_seed_and_threads_give_the_same_bytes(case, fitted, tmp_path):
    other = make(*case, n_jobs=5).fit(DATA)  # where the first fit had one thread
    fitted.save(tmp_path / "a.rw")
    other.save(tmp_path / "b.rw")
    assert (tmp_path / "a.rw").read_bytes() == (tmp_path / "b.rw").read_bytes()


def test_shuffled_rows_and_renamed_queries_change_nothing(case, fitted):
    rows = np.random.default_rng(2).permutation(DATA.n_documents)
    names = np.array([f"q{number}" for number in DATA.query_of_row()])
    other = make(*case).fit(DATA.X[rows], DATA.y[rows], qid=names[rows])
    np.testing.assert_allclose(other.predict(DATA.X), fitted.predict(DATA.X), rtol=1e-4, atol=1e-5)


def test_saved_and_loaded_it_scores_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "m.rw")
    assert (load_model(tmp_path / "m.rw").predict(VALID) == fitted.predict(VALID)).all()


def test_each_attribute_can_be_read_or_its_absence_is_explained(fitted, tmp_path):
    fitted.save(tmp_path / "m.rw")
    public = [name for name in dir(type(fitted)) if not name.startswith("_")]
    for made in (fitted, load_model(tmp_path / "m.rw")):
        listed = dir(made)
        for name in {*public, *vars(made)}:
            try:
                getattr(made, name)
            except AttributeError as error:
                assert name not in listed
                assert str(error).endswith(".")  # noqa: PT017


def test_a_saved_model_can_be_inspected(fitted, tmp_path):
    fitted.save(tmp_path / "m.rw")
    summary = run_json("inspect", tmp_path / "m.rw")
    assert (summary["ranker"], summary["features"]) == (fitted.name, 6)
    assert f"{fitted.name}, model" in run("inspect", tmp_path / "m.rw").stdout


def test_sparse_and_dense_data_give_the_same_scores(case):
    X = np.where(np.abs(DATA.X) > 0.8, DATA.X, 0.0)
    dense = make(*case).fit(X, DATA.y, qid=DATA.query_of_row())
    thin = make(*case).fit(sparse.csc_array(X), DATA.y, qid=DATA.query_of_row())
    np.testing.assert_allclose(
        thin.predict(sparse.csr_array(X)), dense.predict(X), rtol=1e-4, atol=1e-5
    )


def test_fitting_leaves_parameters_alone_and_a_clone_fits_alike(case, fitted):
    before = make(*case).get_params()
    assert fitted.get_params() == before
    assert (clone(fitted).fit(DATA).predict(VALID) == fitted.predict(VALID)).all()


def draws_queries(name):
    """Whether batches are drawn, in which a query twice is not one of double weight."""
    made = make(name, "linear")
    solver = getattr(made, "solver", None) or default_solver(made.make_loss().traits)
    return solver in ("sgd", "online")


@pytest.mark.parametrize(
    "name", [name for name, model in CASES if model == "linear" and not draws_queries(name)]
)
def test_a_query_weight_of_two_is_the_query_twice(name):
    part = DATA.select(np.arange(8))
    weighted = replace(part, query_weight=np.array([2.0] * 4 + [1.0] * 4))
    qid = np.concatenate([part.query_of_row(), part.query_of_row()[:80] + 100])
    twice = RankingData.from_arrays(
        np.concatenate([part.X, part.X[:80]]), np.concatenate([part.y, part.y[:80]]), qid=qid
    )
    a, b = (make(name, "linear", model__scale=False).fit(data) for data in (weighted, twice))
    np.testing.assert_allclose(a.predict(part), b.predict(part), rtol=1e-3, atol=1e-3)


def test_a_document_of_weight_0_is_as_good_as_absent(case):
    part = DATA.select(np.arange(8))
    weight = np.random.default_rng(2).choice([0.0, 1.0], part.n_documents)
    weight[:20], kept = 0.0, weight > 0  # a whole query, too
    kept[:20] = False
    seen = replace(part, y=np.where(kept, part.y, 7.0), sample_weight=weight)
    short = RankingData.from_arrays(part.X[kept], part.y[kept], qid=part.query_of_row()[kept])
    a, b = (make(*case).fit(data) for data in (seen, short))
    np.testing.assert_allclose(a.predict(VALID), b.predict(VALID), rtol=1e-9, atol=1e-9)


def test_weights_of_documents_matter_or_are_refused(case, fitted):
    weight = np.random.default_rng(2).choice([0.2, 3.0], DATA.n_documents)
    plain = fitted.predict(VALID)
    try:
        weighted = make(*case).fit(replace(DATA, sample_weight=weight)).predict(VALID)
    except UsageError as error:
        assert "query_weight" in str(error)  # noqa: PT017
        return
    if case[0] not in WHOLE_DOCUMENTS:
        assert np.abs(weighted - plain).max() > 1e-6


def test_valid_data_pick_the_best_round(case):
    chosen = make(*case).fit(DATA, eval_set=VALID)
    curve = np.array(chosen.curve_["valid ndcg@10"])
    smooths = chosen.early_stopping_for(chosen.make_model()) == "auto"
    judged = smoothed(curve) if smooths else curve
    assert chosen.best_iteration_ == int(np.argmax(judged)) + 1
    again = evaluate(VALID, chosen.predict(VALID), "ndcg@10", convention=chosen.convention)
    assert again["ndcg@10"] == pytest.approx(curve[chosen.best_iteration_ - 1], abs=1e-9)


# --- once, for all -------------------------------------------------------------------------------


def test_early_stopping_ends_the_run():
    chosen = ranker("gbdt", n_estimators=300, learning_rate=0.5, early_stopping_rounds=5)
    chosen.fit(DATA, eval_set=(VALID.X, VALID.y, VALID.query_of_row()))
    assert len(chosen.curve_["loss"]) == chosen.best_iteration_ + 5 < 300


def test_a_metric_that_falls_selects_its_smallest_value():
    chosen = ranker("gbdt", n_estimators=30, metric="pair_error", early_stopping_rounds=None)
    chosen.fit(DATA, eval_set=VALID)
    curve = chosen.curve_["valid pair_error"]
    assert chosen.best_iteration_ == int(np.argmin(curve)) + 1


def test_continuing_adds_trees():
    first = ranker("gbdt", n_estimators=4).fit(DATA)
    more = ranker("gbdt", n_estimators=6).fit(DATA, init_model=first)
    assert (more.predict(DATA) == ranker("gbdt", n_estimators=10).fit(DATA).predict(DATA)).all()


def test_rank_gives_the_callers_rows_best_first_query_after_query():
    chosen = ranker("gbdt", n_estimators=5).fit(DATA)
    qid = np.array([1, 0, 1, 0, 1])
    X = DATA.X[:5]
    scores = chosen.predict(X)
    expected = [
        *sorted([0, 2, 4], key=lambda i: -scores[i]),
        *sorted([1, 3], key=lambda i: -scores[i]),
    ]
    assert chosen.rank(X, qid=qid).order.tolist() == expected


def test_rank_keeps_at_most_k_of_each_group():
    chosen = ranker("gbdt", n_estimators=5).fit(DATA)
    X, host = DATA.X[:6], np.array(["a", "a", "a", "b", "b", "c"])
    best = chosen.rank(X).order.tolist()
    kept = chosen.rank(X, group=host, per_group=1).order.tolist()
    first = {h: next(i for i in best if host[i] == h) for h in "abc"}
    assert kept == sorted(first.values(), key=best.index)
    assert chosen.rank(X, group=host, per_group=1, top=2).order.tolist() == kept[:2]
    assert chosen.rank(X, top=4).order.tolist() == best[:4]
    with pytest.raises(UsageError, match="top must be 1 or more, not 0"):
        chosen.rank(X, top=0)


def test_score_is_the_mean_of_the_metric_and_wants_qid():
    chosen = ranker("gbdt", n_estimators=5).fit(DATA.X, DATA.y, qid=DATA.query_of_row())
    value = chosen.score(VALID.X, VALID.y, qid=1000 + VALID.query_of_row())
    assert value == pytest.approx(ndcg(VALID, chosen.predict(VALID)))
    with pytest.raises(UsageError, match="score needs qid"):
        chosen.score(VALID.X, VALID.y)


def test_coefficients_and_boosters_are_there_where_they_belong():
    linear = ranker("listmle").fit(DATA)
    assert DATA.X @ linear.coef_ == pytest.approx(linear.predict(DATA))
    with pytest.raises(AttributeError, match="only a tree model has this"):
        linear.booster_  # noqa: B018
    assert ranker("gbdt", n_estimators=3).fit(DATA).booster_.num_trees() == 3


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        (
            "gbdt",
            {"model": "linear", "n_estimators": 5},
            r"n_estimators is a parameter of GBDT's default model 'trees', which model=linear",
        ),
        ("gbdt", {"model": "tree"}, r"there is no model 'tree'; did you mean trees"),
        ("gbdt", {"metric": "ncdg@10"}, r"there is no metric 'ncdg'; did you mean ndcg"),
    ],
)
def test_a_wrong_choice_is_reported_when_fitting(name, params, sentence):
    with pytest.raises(UsageError, match=sentence):
        ranker(name, **params).fit(DATA)


def test_dir_works_for_a_ranker_whose_parts_cannot_be_made():
    for broken in (ranker("ranker", model="tree"), ranker("gbdt", model="tree", metric="x")):
        assert "fit" in dir(broken)
        assert "coef_" not in dir(broken)


def test_wrong_names_are_reported_at_once():
    with pytest.raises(UsageError, match="no ranker 'lambdamrat'; did you mean lambdamart"):
        ranker("lambdamrat")
    with pytest.raises(UsageError, match=r"GBDT has no parameter 'n_tree'; did you mean"):
        ranker("gbdt", n_tree=5)


def test_unlike_features_are_reported():
    chosen = ranker("gbdt", n_estimators=2).fit(DATA)
    with pytest.raises(DataError, match="X has 3 features, but GBDT is expecting 6 features"):
        chosen.predict(DATA.X[:, :3])
    with pytest.raises(DataError, match="the validation data has 5 features"):
        ranker("gbdt").fit(DATA, eval_set=small_data(features=5))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ranker("gbdt").predict(DATA)


def test_no_qid_is_one_query_with_a_warning():
    with pytest.warns(UserWarning, match="all rows are taken as one query"):
        fitted = ranker("ranksvm").fit(DATA.X, DATA.y)
    one = ranker("ranksvm").fit(DATA.X, DATA.y, group_sizes=[DATA.n_documents])
    assert (fitted.coef_ == one.coef_).all()
    assert (fitted.coef_ != ranker("ranksvm").fit(DATA).coef_).any()


EXPONENTIAL = (
    *("adarank", "boltzrank", "coordinate_ascent", "dorm", "irsvm", "lambdamart", "lambdarank"),
    *("listnet", "ndcg_glm", "rankgp", "softrank", "xendcg"),
)  # gains or targets by default


@pytest.mark.parametrize("name", [name for name in registry.RANKERS if name != "blend"])
def test_counts_as_grades_are_warned_about_if_gains_are_exponential(name):
    counts = replace(DATA, y=np.where(DATA.y == DATA.y.max(), 200.0, DATA.y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(name, models_of(name)[0]).fit(counts)
    says = any("a few documents outweigh all others" in str(one.message) for one in caught)
    assert says == (name in EXPONENTIAL)


def test_linear_gains_of_counts_are_not_warned_about():
    counts = replace(DATA, y=np.where(DATA.y == DATA.y.max(), 200.0, DATA.y))
    linear = {"metric": "ndcg(gain=linear)@10", "n_estimators": 2}
    valid = small_data(seed=1)
    for eval_set in (None, replace(valid, y=100.0 * valid.y)):
        ranker("lambdamart", **linear).fit(counts, eval_set=eval_set)


@pytest.mark.filterwarnings("ignore:no qid was given")
@pytest.mark.parametrize("name", registry.RANKERS)
def test_scikit_learns_own_checks(name):
    """Those that are declared as expected to fail do fail, and no others."""
    estimator = make(name, models_of(name)[0])
    expected = expected_failed_checks(estimator)
    found = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    by_status = {
        status: {one["check_name"]: one["exception"] for one in found if one["status"] == status}
        for status in ("passed", "failed", "xfail")
    }
    assert not by_status["failed"]
    assert set(by_status["xfail"]) == set(expected)
    assert len(by_status["passed"]) > 30
    assert all(expected.values())


@pytest.mark.filterwarnings("ignore:no qid was given")
@pytest.mark.parametrize(
    "estimator",
    [
        ranker("irsvm", tol=1e-12, l2=0.01),
        ranker("ranknet", hidden_layer_sizes=(4,), epochs=8, model__precision="double"),
    ],
    ids=["irsvm", "ranknet"],
)
def test_with_exact_training_a_weight_of_2_is_the_document_twice(estimator):
    check_sample_weight_equivalence_on_dense_data(type(estimator).__name__, estimator)


# --- numbers at the edge ---------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e50, 1e160, 1e200])
@pytest.mark.parametrize("name", registry.RANKERS)
def test_huge_features_are_refused_or_give_a_model_that_can_be_loaded(tmp_path, name, size):
    data = DATA._replace(X=DATA.X * size)
    made = make(name, models_of(name)[0])
    if size > 1e150 and not getattr(made._part_of("model"), "compares_values", False):
        with pytest.raises(DataError, match=r"feature column 0 has .* whose squares overflow"):
            made.fit(data)
        return
    made.fit(data)
    assert np.isfinite(made.predict(data)).all()
    made.save(tmp_path / "model.rw")
    again = load_model(tmp_path / "model.rw")
    np.testing.assert_array_equal(again.predict(data), made.predict(data))


def test_the_feature_whose_squares_overflow_is_named():
    X = np.where(np.arange(DATA.n_features) == 3, 1e160, 1.0) * DATA.X
    names = tuple(f"x{number}" for number in range(DATA.n_features))
    huge = DATA._replace(X=X, feature_names=names)
    for data in (huge, huge._replace(X=sparse.csr_array(X))):
        with pytest.raises(DataError, match=r"feature 'x3' has values of .*e\+160, whose squares"):
            ranker("memr").fit(data)
    with pytest.raises(DataError, match=r"feature column 3 has values"):
        ranker("memr", solver="online").partial_fit(X, DATA.y, qid=DATA.query_of_row())
    assert np.isfinite(ranker("lambdamart", n_estimators=3).fit(huge).predict(huge)).all()


@pytest.mark.parametrize("offset", [1e9, 1e15])
@pytest.mark.parametrize("name", ["classification", "linear_regression", "memr", "prank"])
@pytest.mark.filterwarnings("ignore:feature column:UserWarning")
def test_features_far_from_zero_are_learned_from(name, offset):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 3)), np.repeat(np.arange(60), 10)
    y = np.clip(np.round(X[:, 0] + X[:, 1]), -1, 2) + 1
    data = RankingData.from_arrays(X + offset, y, qid=qid)
    assert ndcg(data, ranker(name).fit(data).predict(data)) > 0.95


def test_a_feature_that_hardly_varies_for_where_it_is_is_warned_of():
    X = DATA.X.astype(np.float64) / np.abs(DATA.X).max() + 1e12 * (np.arange(DATA.n_features) == 1)
    with pytest.warns(UserWarning, match=r"feature column 1 varies by .* around 1e\+12.*subtract"):
        ranker("memr").fit(DATA._replace(X=X))


def test_a_model_whose_parameters_are_not_finite_is_neither_fitted_nor_saved(tmp_path):
    made = ranker("memr").fit(DATA)
    made.model_ = replace(made.model_, coef=made.model_.coef * np.nan)
    with pytest.raises(DataError, match="the fitted model's coef is not finite"):
        made.save(tmp_path / "model.rw")
    assert not list(tmp_path.iterdir())

    class Diverging:
        def solve(self, problem, start=None, callback=None):
            return solved(problem.size)

    def solved(size):
        from rankwright.core.types import SolveResult

        return SolveResult(np.full(size, np.inf), 0.0, 0.0, 1, "", [0.0])

    with pytest.raises(DataError, match="coef is not finite"):
        ranker("memr", solver=Diverging()).fit(DATA)

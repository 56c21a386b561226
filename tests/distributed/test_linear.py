"""Linear models over partitions: the same bits for any number of workers, and near the whole."""

import gc
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

from rankwright import registry
from rankwright.data.ranking_data import concatenate
from rankwright.distributed import fit
from rankwright.distributed.linear import ObjectiveSpec, PartObjective
from rankwright.distributed.partitions import Partitions
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses import loss
from rankwright.models.linear import Linear
from rankwright.rankers.base import Ranker, ranker

DATA = small_data(queries=12, documents=12, features=4)


def is_smooth(name):
    traits = loss(name).traits
    return traits.smooth and traits.integrable and not traits.stochastic


SMOOTH = [name for name in registry.LOSSES if is_smooth(name)]
CONVEX = [name for name in SMOOTH if loss(name).traits.convex]
OTHERS = [name for name in registry.LOSSES if not is_smooth(name)]


def composed(made, solver, **more):
    return Ranker(made, Linear(**{"l2": 0.1, **more}), solver=solver)


@pytest.fixture(scope="module")
def parts(client):
    return Partitions.of(DATA, n_parts=3, client=client)


@pytest.fixture(scope="module")
def local(parts):
    return parts.local()


# --- the contract ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMOOTH)
def test_two_workers_find_the_weights_that_one_process_finds(name, parts, local):
    over, here = fit(composed(name, "lbfgs"), parts), fit(composed(name, "lbfgs"), local)
    assert over.coef_.any()
    np.testing.assert_array_equal(over.coef_, here.coef_)
    assert over.model_.intercept == here.model_.intercept
    assert over.solution_.value == here.solution_.value


@pytest.mark.parametrize("name", CONVEX)
def test_convex_losses_end_where_a_fit_to_the_whole_does(name, local):
    over = fit(composed(name, "lbfgs", tol=1e-9), local)
    whole = composed(name, "lbfgs", tol=1e-9).fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(over.model_.intercept, whole.model_.intercept, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(over.predict(DATA), whole.predict(DATA), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "solver"), [("ranknet", "lbfgs"), ("squared", "tron")])
def test_the_number_of_workers_changes_no_bit(name, solver, cluster_of, local):
    here = fit(composed(name, solver), local).coef_
    for workers in (1, 2, 3):
        over = fit(composed(name, solver), DATA, n_parts=3, client=cluster_of(workers))
        np.testing.assert_array_equal(over.coef_, here)


@pytest.mark.parametrize("name", SMOOTH)
def test_an_answer_does_not_depend_on_earlier_questions(name):
    """So a worker that takes over for a lost one answers with the same bits."""
    made, (v, w, u) = loss(name), np.random.default_rng(0).normal(size=(3, 4))
    largest = float(made.largest(DATA)) if hasattr(made, "largest") else None
    spec = ObjectiveSpec(made, None, np.ones(4), None, 1.0, largest)
    objective = PartObjective(DATA, 0, spec)
    objective.grad(v)
    value, gradient = objective.grad(w)
    moved = pickle.loads(pickle.dumps(objective))  # noqa: S301
    again, gradient_again = moved.grad(w)
    assert again == value
    np.testing.assert_array_equal(gradient_again, gradient)
    objective.grad(v)
    product = objective.hess_vec(w, u)
    np.testing.assert_array_equal(PartObjective(DATA, 0, spec).hess_vec(w, u), product)


@pytest.mark.filterwarnings("ignore:valid holds the same queries:UserWarning")
def test_workers_keep_nothing_after_a_fit(parts):
    """The workers of these tests are in this process."""
    most = []

    def objectives():
        gc.collect()
        return sum(type(each) is PartObjective for each in gc.get_objects())

    before = objectives()
    fit(composed("ranknet", "lbfgs"), parts, parts, progress=lambda *_: most.append(objectives()))
    assert most == [before + 3]
    for _ in range(100):
        if objectives() == before:
            break
        parts.client.run(gc.collect)
    assert objectives() == before


# --- solvers ---------------------------------------------------------------------------------


def test_tron_ends_where_it_ends_over_the_whole(local):
    over, whole = fit(composed("ranknet", "tron"), local), composed("ranknet", "tron").fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("ranknet", "sgd"),
        ("ranknet", "online"),
        ("position_svm", "bundle"),
        ("rocarea_svm", "column_generation"),
        ("retarget", "alternating"),
        ("domination", "coordinate"),
        *((name, None) for name in OTHERS),
    ],
)
def test_other_solvers_are_refused_and_those_that_run_are_named(name, solver, local):
    with pytest.raises(IncompatibleError, match="linear models take lbfgs and tron") as error:
        fit(Ranker(name, "linear", solver=solver), local)
    if solver is not None:
        assert str(error.value).startswith(f"solver '{solver}' runs in one process; over part")


def test_an_l1_penalty_is_refused(local):
    with pytest.raises(UsageError, match="lbfgs does not support l1"):
        fit(composed("ranknet", "lbfgs", l1=0.1), local)


# --- what is known of all data -----------------------------------------------------------------


def test_missing_values_are_filled_with_the_mean_of_all_parts(local):
    X = DATA.X.copy()
    X[::7, 1] = np.nan
    X[:48, 2] = np.nan  # of this feature the first part knows nothing
    gappy = replace(DATA, X=X)
    cut = [gappy.select(slice(0, 4)), gappy.select(slice(4, 12))]
    made = {"missing": "mean", "tol": 1e-9}
    over = fit(composed("ranknet", "lbfgs", **made), Partitions.from_list(cut))
    whole = composed("ranknet", "lbfgs", **made).fit(gappy)
    np.testing.assert_allclose(over.model_.fill, whole.model_.fill, rtol=1e-12)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-6)
    with pytest.raises(DataError, match="missing values"):
        fit(composed("ranknet", "lbfgs"), Partitions.from_list(cut))


def test_sparse_parts_give_what_dense_ones_do(local):
    thin = [replace(p, X=sparse.csr_array(p.X)) for p in local.parts]
    over = fit(composed("ranknet", "tron"), Partitions.from_list(thin))
    np.testing.assert_allclose(over.coef_, fit(composed("ranknet", "tron"), local).coef_, rtol=1e-9)


def test_weights_count_as_over_the_whole(local):
    rng = np.random.default_rng(0)
    heavy = replace(DATA, query_weight=rng.random(12), sample_weight=rng.random(DATA.n_documents))
    cut = [heavy.select(slice(0, 5)), heavy.select(slice(5, 12))]
    made = {"tol": 1e-9}
    over = fit(composed("ranknet", "lbfgs", **made), Partitions.from_list(cut))
    whole = composed("ranknet", "lbfgs", **made).fit(heavy)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-6)


def test_the_pairs_of_ir_svm_are_weighed_by_the_largest_query_of_all_parts():
    uneven = DATA.select([0, 1, 2])
    long = replace(small_data(queries=1, documents=30, features=4, seed=3), qid=np.array([99]))
    made = loss("pair_hinge", pairs="ir")
    over = fit(composed(made, "lbfgs", tol=1e-9), Partitions.from_list([uneven, long]))
    whole = composed(made, "lbfgs", tol=1e-9).fit(concatenate([uneven, long]))
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "params"),
    [("xendcg", {}), ("boltzrank", {}), ("listnet", {"k": 2, "samples": 3})],
)
@pytest.mark.filterwarnings("ignore:lbfgs minimises one fixed objective:UserWarning")
def test_noise_is_sampled_by_the_number_of_a_query_in_all_data(name, params, local):
    over, whole = (composed(loss(name, **params), "lbfgs", max_iter=3) for _ in range(2))
    np.testing.assert_allclose(fit(over, local).coef_, whole.fit(DATA).coef_, rtol=1e-6)


# --- sentences -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:(valid|eval_set) holds the same queries:UserWarning")
@pytest.mark.parametrize("name", registry.RANKERS)
def test_a_ranker_fits_over_partitions_or_says_that_it_runs_in_one_process(name, local):
    made = ranker(name)
    if made.model_name in ("linear", "trees") and made.has_loss:
        few = {"max_iter": 2} if made.model_name == "linear" else {"n_estimators": 2}
        made.set_params(**{f"model__{k}": v for k, v in few.items()})
        if made.model_name == "linear" and not is_smooth_loss(made):
            with pytest.raises(IncompatibleError, match="runs in one process"):
                fit(made, local, DATA)
            return
        over = fit(made, local, DATA)
        assert over.predict(DATA).shape == (DATA.n_documents,)
        assert over.curve_["valid ndcg@10"] or over.solution_.iterations
        return
    with pytest.raises(
        UsageError, match=f"{name} on model '{made.model_name}' runs in one process"
    ):
        fit(made, local)


def is_smooth_loss(made):
    default = getattr(made, "solver", None)
    traits = made.make_loss().traits
    is_smooth = traits.smooth and traits.integrable and not traits.stochastic
    return is_smooth and default in (None, "lbfgs", "tron")


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.filterwarnings("ignore:feature column:UserWarning")
def test_deviations_of_features_far_from_zero_are_those_of_one_process(offset):
    data = DATA._replace(X=DATA.X + offset)
    parts = Partitions.from_list([data.select(slice(0, 3)), data.select(slice(3, None))])
    over = fit(ranker("ranksvm"), parts)
    np.testing.assert_allclose(over.model_.deviation, data.X.std(axis=0), rtol=1e-6)


def test_features_whose_squares_overflow_are_refused():
    parts = Partitions.from_list([DATA._replace(X=DATA.X * 1e160)])
    with pytest.raises(DataError, match="feature column 0 has values whose squares overflow"):
        fit(ranker("ranksvm"), parts)

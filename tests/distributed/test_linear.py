"""Linear models over partitions: the same bits for any number of workers, and near the whole."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from small_data import small_data

from rankwright import registry
from rankwright.data.ranking_data import concatenate
from rankwright.distributed import fit, linear
from rankwright.distributed.linear import PartitionedWork
from rankwright.distributed.partitions import Partitions, partitions
from rankwright.errors import DataError, UsageError
from rankwright.losses import loss
from rankwright.models.linear import Linear
from rankwright.rankers.base import Ranker, ranker
from rankwright.solvers import Alternating, Coordinate
from rankwright.solvers.online import Online, OnlineState

DATA = small_data(queries=12, documents=12, features=4)


def solver_for(name):
    traits = loss(name).traits
    exact = traits.smooth and traits.integrable and not traits.stochastic
    return "lbfgs" if exact else "sgd"


def composed(made, solver, **more):
    short = solver in ("sgd", "online", "column_generation", "alternating")
    passes = {"max_iter": 2} if short else {}
    return Ranker(made, Linear(**{"l2": 0.1, **passes, **more}), solver=solver)


@pytest.fixture(scope="module")
def parts(client):
    return partitions(DATA, n_parts=3, client=client)


@pytest.fixture(scope="module")
def local(parts):
    return parts.local()


# --- the contract ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.LOSSES)
def test_two_workers_find_the_weights_that_one_process_finds(name, parts, local):
    solver = solver_for(name)
    over, here = fit(composed(name, solver), parts), fit(composed(name, solver), local)
    assert over.coef_.any()
    np.testing.assert_array_equal(over.coef_, here.coef_)
    assert over.solution_.value == here.solution_.value


def is_smooth_and_convex(name):
    traits = loss(name).traits
    return traits.smooth and traits.convex and traits.integrable and not traits.stochastic


@pytest.mark.parametrize("name", [*filter(is_smooth_and_convex, registry.LOSSES)])
def test_smooth_convex_losses_end_where_a_fit_to_the_whole_does(name, local):
    over = fit(composed(name, "lbfgs", tol=1e-9), local)
    whole = composed(name, "lbfgs", tol=1e-9).fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("ranknet", "lbfgs"),
        ("retarget", "tron"),
        ("retarget", "alternating"),
        ("position_svm", "bundle"),
        ("rocarea_svm", "column_generation"),
        ("domination", "coordinate"),
        ("lambdarank", "online"),
        ("xendcg", "sgd"),
    ],
)
def test_the_number_of_workers_changes_no_bit(name, solver, cluster_of, local):
    here = fit(composed(name, solver), local).coef_
    for workers in (1, 2, 3):
        found = fit(composed(name, solver), DATA, n_parts=3, client=cluster_of(workers))
        np.testing.assert_array_equal(found.coef_, here)


@pytest.mark.parametrize("name", registry.LOSSES)
def test_an_answer_does_not_depend_on_what_a_worker_was_asked_before(name, local):
    """So a worker that takes over for a lost one answers with the same bits."""
    made, (v, w, u) = loss(name), np.random.default_rng(0).normal(size=(3, 4))
    sums = PartitionedWork(Linear(), made, local, seeded=False)._sums
    sums.grad(v)
    value, gradient = sums.grad(w)
    turned = sums.hess_vec(u) if made.traits.hess_vec else None
    sums.close()
    again, as_before = sums.grad(w)
    sums.close()
    if name == "interval":  # starts from its last solution
        assert again == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(as_before, gradient, rtol=1e-9, atol=1e-12)
        return
    assert again == value
    np.testing.assert_array_equal(as_before, gradient)
    if turned is not None:
        np.testing.assert_array_equal(sums.hess_vec(u), turned)
    sums.close()


@pytest.mark.filterwarnings("ignore:valid holds the same queries:UserWarning")
@pytest.mark.parametrize("place", ["parts", "local"])
def test_workers_keep_nothing_after_a_fit(place, request):
    """The workers of these tests are in this process, so what they keep is to be seen here."""
    data, most = request.getfixturevalue(place), []

    def look(*_):
        most.append(len(linear._part_problems))

    before = set(linear._part_problems)
    fit(composed("ranknet", "lbfgs"), data, data, progress=look)
    assert max(most) >= len(before) + 3
    assert set(linear._part_problems) == before


# --- solvers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "solver"),
    [("ranknet", "tron"), ("retarget", "alternating"), ("position_svm", "bundle")],
)
def test_solvers_end_where_they_end_over_the_whole(name, solver, local):
    over, whole = fit(composed(name, solver), local), composed(name, solver).fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-5, atol=1e-8)


def test_a_difference_of_convex_functions_is_leant_on_in_every_part(local):
    # The objective is not convex: with less l2, rounding errors may lead to another optimum.
    dorm = composed(loss("position_svm", ties="score"), "bundle", l2=0.3)
    over, whole = fit(dorm, local), clone(dorm).fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_blocks_of_columns_end_at_the_optimum_of_single_columns(l1, local):
    over = fit(composed("domination", "coordinate", l1=l1, tol=1e-8), local)
    whole = composed("domination", "coordinate", l1=l1, tol=1e-8).fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-5, atol=1e-7)
    assert over.solution_.optimality <= 1e-8
    assert (over.coef_ == 0).any() == (l1 > 0)


def test_online_steps_are_averaged_by_the_number_of_queries():
    """Two parts of 3 and 9 queries end at the mean of where each walks alone, 3 : 9."""
    cut = [DATA.select(slice(0, 3)), DATA.select(slice(3, 12))]
    model, start = Linear(scale=False), OnlineState.at(np.zeros(4))

    def walked(parts):
        work = PartitionedWork(model, loss("ranknet"), Partitions.from_list(parts), seeded=True)
        with work.open():
            order = np.arange(sum(part.n_queries for part in parts))
            return work.problem(0.1).walk(Online(), start, order)

    few, many, together = walked(cut[:1]), walked(cut[1:]), walked(cut)
    np.testing.assert_allclose(together.w, (3 * few.w + 9 * many.w) / 12, rtol=1e-12)
    np.testing.assert_allclose(together.mean, (3 * few.mean + 9 * many.mean) / 12, rtol=1e-12)
    assert together.t == 9  # the longest walk
    assert together.paid == pytest.approx(few.paid + many.paid)
    assert together.smoothness == max(few.smoothness, many.smoothness)


def test_a_pass_is_the_same_on_workers_that_have_walked_before_and_on_others(local, monkeypatch):
    def made():
        return composed("lambdarank", "online", max_iter=4)

    undisturbed = fit(made(), local).coef_
    walk, walked = linear.PartProblem.walk, []

    def forgetful(piece, *args):
        walked.append(1)
        linear._part_problems.clear()  # as if another worker took over for the next pass
        return walk(piece, *args)

    monkeypatch.setattr(linear.PartProblem, "walk", forgetful)
    np.testing.assert_array_equal(fit(made(), local).coef_, undisturbed)
    assert len(walked) > len(local)


def test_a_pass_knows_nothing_of_the_passes_before_it(local):
    class Looker:
        def walk(self, problem, state, parts):
            before = problem.state()
            Online().walk(problem, state, parts)
            return ["known_parts" in known for known in (before, problem.state())]

    work, start = PartitionedWork(Linear(), loss("ranknet"), local, seeded=True), np.zeros(4)
    with work.open():
        for _ in range(2):
            asked = Looker(), OnlineState.at(start), np.arange(4), work.problem(0.1)._share
            assert work._sums.each("walk", *asked) == [[False, True]] * 3


def test_online_over_one_part_is_online(local):
    one = Partitions.from_list([DATA])
    over, whole = fit(composed("ranknet", "online"), one), composed("ranknet", "online").fit(DATA)
    np.testing.assert_allclose(over.coef_, whole.coef_, rtol=1e-9)


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


@pytest.mark.filterwarnings("ignore:valid holds the same queries:UserWarning")
@pytest.mark.parametrize("name", registry.RANKERS)
def test_a_ranker_fits_over_partitions_or_says_that_it_runs_in_one_process(name, local):
    made = ranker(name)
    if made.model_name in ("linear", "trees") and made.has_loss:
        few = {"max_iter": 2} if made.model_name == "linear" else {"n_estimators": 2}
        over = fit(made.set_params(**{f"model__{k}": v for k, v in few.items()}), local, DATA)
        assert over.predict(DATA).shape == (DATA.n_documents,)
        assert over.curve_["valid ndcg@10"] or over.solution_.iterations
        return
    with pytest.raises(
        UsageError, match=f"{name} on model '{made.model_name}' runs in one process"
    ):
        fit(made, local)


def test_steps_that_need_one_process_are_refused(local):
    with pytest.raises(UsageError, match="runs in one process"):
        fit(Ranker("retarget", solver=Alternating(learning_rate=0.5)), local)
    with pytest.raises(UsageError, match="runs in one process"):
        fit(Ranker("domination", solver=Coordinate(step="bound")), local)


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

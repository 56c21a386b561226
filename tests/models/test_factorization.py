from dataclasses import replace
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from rankwright.core.types import SolveResult
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses import loss
from rankwright.models.factorization import SHARES, Factorization
from rankwright.rankers.base import Ranker

EXACT = {"tol": 1e-10, "max_iter": 5000}


def ratings(users=12, items=8, share=0.7, seed=0):
    """Two tastes and some noise; each user rates about ``share`` of the items from 0 to 4."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items)) + rng.normal(size=items)
    user, item = np.nonzero(rng.random((users, items)) < share)
    y = np.clip(np.round(2 + taste[user, item] + 0.3 * rng.normal(size=len(user))), 0, 4)
    X = sparse.csr_array((np.ones(len(item)), item, np.arange(len(item) + 1)), (len(item), items))
    return RankingData.from_arrays(X, y, qid=user)


DATA = ratings()


def rounds(name="query_offset", data=DATA, valid=None, solver=None, start=None, **params):
    model = Factorization(**{"l2": 0.3, "n_factors": 8, **params})
    return [*model.rounds(loss(name), data, valid, solver=solver, start=start, random_state=1)]


def fit(*args, **params):
    return rounds(*args, **params)[-1].model()


def rated_by(fitted, user):
    row = int(fitted.numbers_of(np.array([user]))[0])
    return fitted.rated[fitted.rated_begin[row] : fitted.rated_begin[row + 1]].tolist()


def by_nuclear_norm(data, l2, l2_bias):
    """The least of squared error with free levels, in which l2 weighs the trace norm."""
    users, items = data.n_queries, data.n_features
    M, b, level = cp.Variable((users, items)), cp.Variable(items), cp.Variable(users)
    user, item = data.query_of_row(), data.X.indices
    s = cp.hstack([M[u, i] + b[i] + level[u] for u, i in zip(user, item, strict=True)])
    error = 0.5 * cp.sum_squares(s - data.y) / users
    penalty = l2 / np.sqrt(users) * cp.normNuc(M) + l2_bias / 2 * cp.sum_squares(b)
    problem = cp.Problem(cp.Minimize(error + penalty))
    problem.solve(cp.SCS, eps=1e-7, max_iters=100_000)
    return problem.value, (M.value + b.value)[user, item]


@pytest.mark.parametrize("method", ["als", "joint", "alternating"])
def test_with_enough_factors_it_is_the_trace_norm_problem(method):
    assert loss("query_offset").bind(DATA).value(np.zeros(DATA.n_documents)) == pytest.approx(
        sum(0.5 * ((y - y.mean()) ** 2).sum() for y in np.split(DATA.y, DATA.indptr[1:-1]))
    )
    least, scores = by_nuclear_norm(DATA, 0.3, 0.05)
    fitted = fit(method=method, l2_bias=0.05, n_rounds=200, **EXACT)
    assert fitted.solution.value == pytest.approx(least, rel=1e-5)
    found = fitted.scores_of(DATA)
    centred = [s - s.mean() for s in np.split(found - scores, DATA.indptr[1:-1])]
    assert np.concatenate(centred) == pytest.approx(0.0, abs=5e-3)


def test_vectors_vanish_from_the_largest_penalty_on():
    path = rounds(l2="auto", valid=ratings(seed=4), **EXACT)
    assert [r.number for r in path] == [*range(1, len(SHARES) + 1)]
    penalties = np.array([r.model().l2 for r in path])
    assert penalties / penalties[0] == pytest.approx(np.array(SHARES) / SHARES[0])
    half = fit(l2="auto").l2
    below, above = (fit(l2=2 * half * share, **EXACT) for share in (0.97, 1.03))
    assert np.abs(below.user_factors).max() > 0.01
    assert np.abs(above.user_factors).max() < 1e-3


@pytest.mark.parametrize("method", ["als", "joint", "alternating"])
@pytest.mark.parametrize("name", ["ranknet", "retarget", "listnet", "all_threshold"])
def test_any_smooth_loss_either_way_comes_to_a_flat_place(name, method):
    exact = EXACT | ({"tol": 1e-13} if method == "als" else {})
    fitted = fit(name, method=method, n_factors=2, n_rounds=400, **exact)
    assert fitted.solution.optimality < 1e-4


def test_losses_with_kinks_are_solved_in_turns():
    with pytest.raises(IncompatibleError, match="lbfgs, which needs a smooth loss"):
        fit("rocarea_svm", method="joint")
    turns = {"method": "alternating", "solver": "bundle", "tol": 1e-4, "n_factors": 2}
    curve = fit("rocarea_svm", n_rounds=4, max_iter=200, **turns).solution.curve
    assert all(later <= before * (1 + 1e-3) for before, later in pairwise(curve))
    hasty = fit("rocarea_svm", n_rounds=1, max_iter=1, **turns).solution.value
    assert curve[-1] < 0.9 * hasty


class Theirs:
    """Anyone's solver, which knows the value and gradient of a problem alone."""

    def solve(self, problem, start=None, *, callback=None):
        def both(w):
            gradient = np.empty(problem.size)
            return problem.grad(w, gradient), gradient

        found = minimize(both, start, jac=True, method="BFGS")
        return SolveResult(found.x, found.fun, np.abs(found.jac).max(), found.nit, "theirs")


@pytest.mark.parametrize("method", ["auto", "alternating"])
def test_anyones_solver_is_as_good(method):
    own = fit("ranknet", method=method, solver=Theirs(), n_factors=2)
    best = fit("ranknet", n_factors=2, **EXACT).solution.value
    assert own.solution.value == pytest.approx(best, rel=0.05)


def test_auto_is_least_squares_where_they_serve():
    def same(first, second):
        return first.user_factors.tobytes() == second.user_factors.tobytes()

    assert same(fit("retarget"), fit("retarget", method="als"))
    assert same(fit("retarget", solver="lbfgs"), fit("retarget", method="joint"))
    assert same(fit("approx_ndcg"), fit("approx_ndcg", method="joint"))  # not convex
    wide = replace(DATA, X=np.ones((len(DATA.y), 3)))
    assert same(fit("retarget", data=wide), fit("retarget", data=wide, method="joint"))
    kinks = {"n_rounds": 1, "max_iter": 3}
    assert same(fit("rocarea_svm", **kinks), fit("rocarea_svm", method="alternating", **kinks))


def test_users_folded_in_get_the_vectors_they_would_have():
    exact = {"tol": 1e-13, "max_iter": 5000}
    fitted = fit("ranknet", n_factors=2, **exact)
    model = Factorization(n_factors=2, **exact)
    again = model.fold_in(loss("ranknet"), DATA, fitted)
    assert again.scores_of(DATA) == pytest.approx(fitted.scores_of(DATA), abs=1e-4)
    strangers = replace(DATA, qid=DATA.qid + 100)
    more = model.fold_in(loss("ranknet"), strangers, fitted)
    assert more.scores_of(strangers) == pytest.approx(fitted.scores_of(DATA), abs=1e-4)
    assert (more.scores_of(DATA) == fitted.scores_of(DATA)).all()
    assert rated_by(more, 105) == rated_by(fitted, 5)
    twice = model.fold_in(loss("ranknet"), DATA.select(np.array([5])), more)
    assert twice.users.tolist() == [*np.delete(more.users, more.numbers_of(np.array([5]))), 5]
    assert all(rated_by(twice, user) == rated_by(more, user) for user in more.users.tolist())
    assert fitted.scores_of(strangers) == pytest.approx(fitted.scores(DATA.X))


def test_it_goes_on_from_a_start():
    first = fit(**EXACT)
    more = fit(start=first, **EXACT)
    assert more.solution.iterations <= 3
    assert more.scores_of(DATA) == pytest.approx(first.scores_of(DATA), abs=1e-4)
    with pytest.raises(UsageError, match="8 items and 8 factors, not 8 and 3"):
        fit(start=first, n_factors=3)


@pytest.mark.parametrize(
    ("method", "turns"), [("als", [*range(1, 7)]), ("joint", [1]), ("alternating", [1, 2, 3])]
)
def test_there_is_a_round_for_each_turn(method, turns):
    valid = ratings(seed=4)
    limits = {"max_iter": 6, "n_rounds": 3, "tol": 0.0}
    path = rounds("ranknet", valid=valid, method=method, n_factors=2, **limits)
    assert [r.number for r in path] == turns
    models = [r.model() for r in path]
    for each, model in zip(path, models, strict=True):
        assert each.valid_scores == pytest.approx(model.scores_of(valid))
        assert each.loss == model.solution.value == model.solution.curve[-1]
        assert each.state is None
    assert all(later <= before for before, later in pairwise(r.loss for r in path))


def test_items_without_ratings_have_nothing():
    wide = replace(
        DATA, X=sparse.csr_array((DATA.X.data, DATA.X.indices, DATA.X.indptr), (len(DATA.y), 11))
    )
    fitted = fit(data=wide)
    assert (fitted.item_factors[8:] == 0.0).all()
    assert (fitted.item_bias[8:] == 0.0).all()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"method": "joint", "solver": "bundle"},
            "method='joint' is solved by lbfgs, not bundle; bundle works with method='alternating'",
        ),
        ({"method": "alternating", "solver": "tron"}, "is solved by lbfgs or bundle, not tron"),
        ({"method": "als", "solver": "lbfgs"}, "method='als' takes no solver; leave solver out"),
    ],
)
def test_what_cannot_be_is_reported(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        fit(**params)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"method": "jont"}, "method must be auto, als, joint or alternating, not 'jont'; did you"),
        ({"n_factors": 0}, "n_factors must be 1 or more"),
        ({"l2": 0.0}, "l2 must be above 0, not 0.0"),
        ({"l2": "much"}, "l2 must be a number or 'auto', not 'much'"),
        ({"l2_bias": "auto"}, "l2_bias must be above 0, not 'auto'"),
        ({"tol": "low"}, "tol must be a number or 'auto', not 'low'"),
        ({"tol": -1.0}, "tol must be 0 or more, not -1"),
        ({"tol": float("nan")}, "tol must be 0 or more, not nan"),
        ({"max_iter": None}, "max_iter must be a whole number or 'auto', not None"),
        ({"max_iter": 0}, "max_iter must be 1 or more, not 0"),
    ],
)
def test_parameters_out_of_range_are_reported(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        Ranker("squared", Factorization(**params)).make_model()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"method": "als", "name": "rocarea_svm"},
            "method='als' needs a smooth loss; loss 'rocarea_svm' is not one. Leave method out",
        ),
        (
            {"method": "als", "name": "boltzrank"},
            "needs documents of one column each.* samples nothing; the loss samples anew",
        ),
        (
            {"method": "als", "data": replace(DATA, X=np.ones((len(DATA.y), 3)))},
            "documents of one column each, as ratings are.*; one has 3. Leave method out",
        ),
    ],
)
def test_what_least_squares_do_not_serve_is_reported(params, sentence):
    with pytest.raises(IncompatibleError, match=sentence):
        fit(**params)

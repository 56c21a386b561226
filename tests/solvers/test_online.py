"""Online gradient descent: its steps, its regret, and going on later."""

import numpy as np
import pytest
from small_data import small_data

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models import Linear
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import Ranker, ranker
from rankwright.solvers.online import Online, OnlineState

DATA = small_data()


class Stream:
    """Parts 1/2 (a_k w - b_k)^2 + l2/2 w^2."""

    def __init__(self, a, b, l2):
        self.a, self.b, self.l2 = np.atleast_2d(a), np.asarray(b, float), l2
        self.n_parts, self.size = self.a.shape

    def value(self, w):
        return 0.5 * np.mean((self.a @ w - self.b) ** 2) + 0.5 * self.l2 * w @ w

    def grad(self, w, out):
        out[:] = self.a.T @ (self.a @ w - self.b) / self.n_parts + self.l2 * w
        return self.value(w)

    def part_grad(self, parts, w, out):
        return Stream(self.a[parts], self.b[parts], self.l2).grad(w, out)

    def begin_pass(self, t, w):
        pass

    def part_smoothness(self, part, floor):
        return max(floor, float(self.a[part] @ self.a[part]))

    def best(self, count):
        a, b = self.a[:count], self.b[:count]
        return np.linalg.solve(a.T @ a / count + self.l2 * np.eye(self.size), a.T @ b / count)


def random_stream(n, l2=1.0, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 3))
    return Stream(a, a @ [1.0, -2.0, 0.5] + rng.normal(size=n), l2)


def test_two_steps_by_hand():
    stream = Stream([[2.0], [1.0]], [1.0, 3.0], l2=0.5)
    first = 0.0 - 2.0 * (2.0 * 0.0 - 1.0) / (0.5 * 1 + 4.0)
    second = first - ((first - 3.0) + 0.5 * first) / (0.5 * 2 + 4.0)  # L stays at the largest, 4
    state = Online().walk(stream, OnlineState.at(np.zeros(1)), np.array([0, 1]))
    assert state.w[0] == pytest.approx(second)
    assert state.mean[0] == pytest.approx((1 * first + 2 * second) / 3)
    assert (state.t, state.smoothness) == (2, 4.0)
    assert state.paid == pytest.approx(0.5 + 0.5 * (first - 3.0) ** 2 + 0.25 * first**2)


def regrets(stream, counts):
    """What was paid above the best fixed weights, after each of ``counts`` steps."""
    state, seen, found = OnlineState.at(np.zeros(3)), 0, []
    for count in counts:
        state = Online().walk(stream, state, np.arange(seen, count))
        seen = count
        shorter = Stream(stream.a[:count], stream.b[:count], stream.l2)
        found.append(state.paid - count * shorter.value(stream.best(count)))
    return np.array(found)


def test_regret_grows_like_the_logarithm():
    """Each tenfold adds about as much: sqrt(T) would add sqrt(10) times what the last one did."""
    counts = np.array([100, 1_000, 10_000])
    regret = np.mean([regrets(random_stream(10_000, seed=seed), counts) for seed in range(5)], 0)
    first, second = np.diff(regret)
    assert 0.0 < second < 1.5 * first
    assert (np.diff(regret / np.sqrt(counts)) < 0.0).all()


def test_the_plain_step_would_overflow_where_this_one_does_not():
    stream = random_stream(300, l2=1e-3)
    stream.a *= 100.0
    w, gradient = np.zeros(3), np.empty(3)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(60):
            stream.part_grad(np.array([t]), w, gradient)
            w = w - gradient / (stream.l2 * (t + 1))
    assert not np.abs(w).max() < 1e100
    state = Online().walk(stream, OnlineState.at(np.zeros(3)), np.arange(300))
    assert np.abs(state.w).max() < 1.0


def test_passes_come_near_to_the_optimum_and_say_how_near():
    stream = random_stream(400)
    found = Online(max_iter=200, tol=1e-5).solve(stream)
    gradient = np.empty(3)
    assert found.value == stream.grad(found.w, gradient)
    assert found.optimality == np.abs(gradient).max() < 0.01
    assert found.stopped == "the weights no longer change"
    np.testing.assert_allclose(found.w, stream.best(400), atol=0.01)


def test_the_mean_is_nearer_than_the_last_weights():
    stream = random_stream(200, l2=1e-3)
    off = [
        np.abs(
            Online(averaging=averaging, random_state=seed).solve(stream).w - stream.best(200)
        ).sum()
        for averaging in (True, False)
        for seed in range(5)
    ]
    assert sum(off[:5]) < 0.5 * sum(off[5:])


def test_the_seed_decides_the_order():
    stream = random_stream(50)
    a, b, c = (Online(max_iter=3, random_state=seed).solve(stream).w for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_no_parts_leave_the_start_as_it_is():
    class Empty(Stream):
        def grad(self, w, out):
            out[:] = self.l2 * w
            return 0.5 * self.l2 * w @ w

    found = Online().solve(Empty(np.empty((0, 3)), [], 1.0), np.ones(3))
    assert (found.w == 1.0).all()
    assert found.iterations == 0


# --- under a ranker --------------------------------------------------------------------------


def online(**more):
    return Ranker("ranknet", solver=Online(**more))


def query(data, q):
    rows = slice(data.indptr[q], data.indptr[q + 1])
    return data.X[rows], data.y[rows], np.full(rows.stop - rows.start, q)


def go(chosen, queries, data=DATA):
    for q in queries:
        X, y, qid = query(data, q)
        chosen.partial_fit(X, y, qid=qid)
    return chosen


def test_query_by_query_is_one_pass_over_all_of_them():
    a, b = (Ranker("squared", Linear(scale=False), solver="online") for _ in range(2))
    go(a, range(30))
    b.partial_fit(DATA)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    assert a.model_.state.t == b.model_.state.t == 30


def test_it_predicts_in_between_and_gets_better():
    valid = small_data(seed=1)
    chosen = go(online(), range(1))
    early = chosen.score(valid)
    late = go(chosen, range(1, 30)).score(valid)
    assert 0.5 < early < late
    assert late > 0.95
    assert len(chosen.curve_["loss"]) == chosen.best_iteration_ == 30


def test_a_saved_model_goes_on_where_it_was(tmp_path):
    straight = go(online(), range(10))
    go(online(), range(5)).save(tmp_path / "m.rw")
    resumed = go(load_model(tmp_path / "m.rw"), range(5, 10))
    assert (resumed.coef_ == straight.coef_).all()
    straight.save(tmp_path / "a.rw")
    resumed.save(tmp_path / "b.rw")
    assert (tmp_path / "a.rw").read_bytes() == (tmp_path / "b.rw").read_bytes()


def test_a_fit_goes_on_too():
    fitted = online(max_iter=2).fit(DATA)
    go(fitted, [3])
    assert fitted.model_.state.t == 61


def test_a_ranker_that_is_online_by_default_goes_on_too():
    assert go(ranker("dorm"), range(3)).model_.state.t == 3
    with pytest.raises(AttributeError, match=r"the model is 'linear' with solver='bundle'\."):
        ranker("dorm", solver="bundle").partial_fit(DATA)


def test_a_query_without_order_changes_nothing():
    X, _, qid = query(DATA, 5)
    chosen = go(online(), range(5))
    before = chosen.coef_.copy()
    chosen.partial_fit(X, np.ones(len(X)), qid=qid)
    assert (chosen.coef_ == before).all()


def test_columns_are_matched_by_name():
    import pandas as pd

    X, y, qid = query(DATA, 1)
    names = list("abcdef")
    frame = pd.DataFrame(X, columns=names)
    a, b = (online().partial_fit(frame, y, qid=qid) for _ in range(2))
    a.partial_fit(frame, y, qid=qid)
    b.partial_fit(frame[names[::-1]], y, qid=qid)
    assert (a.coef_ == b.coef_).all()
    with pytest.raises(DataError, match="6 features"):
        a.partial_fit(X[:, :3], y, qid=qid)


@pytest.mark.parametrize("other", [{"solver": "lbfgs"}, {"model": "trees", "solver": None}])
def test_others_cannot_go_on(other):
    chosen = Ranker("ranknet", **other)
    with pytest.raises(UsageError, match="only a linear model with solver='online' does"):
        chosen.partial_fit(DATA)
    assert not hasattr(chosen, "partial_fit")


def test_a_parameter_of_another_solver_is_reported():
    with pytest.raises(UsageError, match="Online has no parameter 'learning_rate'"):
        Ranker("ranknet", solver="online").set_params(solver__learning_rate=0.1)


@pytest.mark.parametrize("solver", ["online", "sgd"])
def test_rows_queries_and_threads_change_nothing(solver):
    def fit(data, **more):
        return Ranker("ranknet", Linear(max_iter=5), solver=solver, **more).fit(data)

    one = fit(DATA, n_jobs=1).coef_
    assert all((fit(DATA, n_jobs=n).coef_ == one).all() for n in (2, 5))
    rows = np.random.default_rng(0).permutation(DATA.n_documents)
    names = np.array([f"q{(7 * q) % 30}" for q in DATA.query_of_row()])
    shuffled = RankingData.from_arrays(DATA.X[rows], DATA.y[rows], qid=names[rows])
    assert (fit(shuffled).coef_ == one).all()


@pytest.mark.parametrize("loss", ["ranknet", "squared", "gbrank", "retarget"])
def test_no_overflow_on_mq2008(mq2008, loss):
    data = rankwright.load(mq2008 / "Fold1" / "train.txt")
    valid = rankwright.load(mq2008 / "Fold1" / "vali.txt")
    chosen = Ranker(loss, Linear(l2=1e-6, max_iter=5), solver="online").fit(data)
    assert np.abs(chosen.model_.state.w).max() < 10.0
    assert chosen.score(valid) > 0.48

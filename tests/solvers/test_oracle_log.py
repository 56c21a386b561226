"""A log gives old answers again, and goes on with new ones as if nothing had happened."""

import numpy as np
import pytest

from rankwright.core.types import CheckpointState
from rankwright.errors import DataError
from rankwright.solvers.lbfgs import LBFGS
from rankwright.solvers.oracle_log import LoggedProblem, OracleLog, logged, recall
from rankwright.solvers.tron import TRON


class Keeper:
    """A callback that keeps all it is offered, every ``every`` rounds."""

    wants_state = True

    def __init__(self, kept=None, every=1):
        self.begin, self.every, self.last = kept, every, kept.round if kept else 0
        self.kept, self.added = kept, list(kept.added) if kept else []

    def load_state(self):
        return self.begin

    def save_state(self, t, state, added=None):
        if t - self.last >= self.every:
            self.last = t
            self.added.append(added())
            self.kept = CheckpointState(t, state(), list(self.added))


class Valley:
    """log(cosh) along skew axes; counts how often it is asked, and may break down."""

    size = 4
    A = np.array([[3.0, 1.0, 0.0, 0.5], [0.0, 2.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0], [0, 0, 0, 0.3]])

    def __init__(self, breaks_after=None):
        self.asked, self.breaks_after, self._at = 0, breaks_after, None

    def value(self, w):
        return self.grad(w, np.empty(4))

    def grad(self, w, out):
        self._count()
        z = self.A @ w - 1.0
        self._at = z
        out[:] = self.A.T @ np.tanh(z)
        return float(np.log(np.cosh(z)).sum())

    def hess_vec(self, v, out):
        self._count()
        out[:] = self.A.T @ ((1.0 - np.tanh(self._at) ** 2) * (self.A @ v))

    def precondition(self):
        return np.ones(4)

    def _count(self):
        self.asked += 1
        if self.asked == self.breaks_after:
            raise SystemExit


@pytest.mark.parametrize("solver", [LBFGS(), TRON()])
@pytest.mark.parametrize("every", [1, 3])
def test_a_solver_comes_back_whenever_it_was_stopped(solver, every):
    whole = Valley()
    end = solver.solve(whole)
    for moment in range(every + 1, whole.asked + 1):
        first = Keeper(every=every)
        with pytest.raises(SystemExit):
            solver.solve(LoggedProblem(Valley(breaks_after=moment), OracleLog(first)))
        again = Valley()
        found = solver.solve(LoggedProblem(again, OracleLog(Keeper(first.kept))))
        np.testing.assert_array_equal(found.w, end.w)
        assert (found.value, found.curve, found.stopped) == (end.value, end.curve, end.stopped)
        assert again.asked <= whole.asked - first.kept.round + 1  # the place of Hessian products


def test_only_what_is_new_is_written():
    keeper = Keeper(every=4)
    log = OracleLog(keeper)
    for number in range(10):
        log.recall(lambda n=number: (np.full(n, 1.0), n), np.array([number]))
    assert [len(part["checks"]) for part in keeper.added] == [4, 4]
    assert sum(part["values"].size for part in keeper.added) == sum(range(8)) + 8


def test_answers_of_any_shape_come_back():
    keeper = Keeper(every=3)
    given = [(), (np.arange(3.0), 2.5), (np.empty(0), -0.0, np.inf)]
    log = OracleLog(keeper)
    for answer in given:
        log.recall(lambda a=answer: a)
    again = OracleLog(Keeper(keeper.kept))
    for answer in given:
        found = again.recall(lambda: pytest.fail("asked again"))
        assert [part.tolist() for part in found] == [np.atleast_1d(a).tolist() for a in answer]
    assert not again.replays


def test_a_caller_may_change_what_it_was_given():
    keeper = Keeper(every=2)
    log = OracleLog(keeper)
    (first,) = log.recall(lambda: (np.ones(2),))
    first += 5.0
    log.recall(lambda: ())
    (again,) = OracleLog(Keeper(keeper.kept)).recall(lambda: ())
    assert again.tolist() == [1.0, 1.0]


def test_a_run_that_asks_for_something_else_is_refused():
    keeper = Keeper()
    OracleLog(keeper).recall(lambda: (1.0,), np.array([1.0]))
    with pytest.raises(DataError, match="something else in step 1"):
        OracleLog(Keeper(keeper.kept)).recall(lambda: (1.0,), np.array([1.0 + 1e-15]))


class Counter:
    """Answers with how often it was asked: it remembers."""

    size = 1

    def __init__(self):
        self.count = np.zeros(1)

    def value(self, w):
        self.count += 1
        return float(self.count[0])

    def state(self):
        return {"count": self.count}

    def load_state(self, kept):
        self.count[:] = kept["count"]


def test_what_the_problem_remembers_is_put_back_when_the_answers_are_over():
    keeper = Keeper(every=3)
    counter = Counter()
    problem = LoggedProblem(counter, OracleLog(keeper, counter))
    assert [problem.value(np.zeros(1)) for _ in range(5)] == [1, 2, 3, 4, 5]
    counter = Counter()
    problem = LoggedProblem(counter, OracleLog(Keeper(keeper.kept), counter))
    assert [problem.value(np.zeros(1)) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert counter.count[0] == 5


def test_without_checkpoints_nothing_stands_between_solver_and_problem():
    keeper = Keeper()
    keeper.wants_state = False
    problem = Valley()
    assert logged(problem, OracleLog(keeper)) is problem
    assert [part.tolist() for part in recall(problem, lambda p: (p.size,))] == [[4.0]]

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import pytest
from small_data import small_data

from rankwright import registry
from rankwright.core.types import Traits
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses import LambdaRank, PairHinge, RankNet, Squared
from rankwright.rankers.base import Ranker
from rankwright.solvers import LBFGS, SGD, TRON, Bundle
from rankwright.solvers.choice import check_fit, choose_solver, default_solver

SOLVERS = {
    name: SimpleNamespace(needs=frozenset(needs), name=name)
    for name, needs in {
        "tron": {"smooth", "hess_vec"},
        "lbfgs": {"smooth"},
        "sgd": set(),
        "bundle": {"convex"},
    }.items()
}


@pytest.fixture
def few(monkeypatch):
    """Let these solvers be all there are, known by the names above."""
    monkeypatch.setattr(registry, "names", lambda _: list(SOLVERS))
    monkeypatch.setattr(registry, "resolve", lambda _, name: SOLVERS[name])
    monkeypatch.setattr(
        "rankwright.solvers.choice.part_name",
        lambda kind, part: part.name if kind == "solvers" else "lambdarank",
    )


def loss(*methods, **traits):
    """Return a loss whose bound loss has these methods."""
    bound_class = SimpleNamespace(**dict.fromkeys(methods))
    return SimpleNamespace(traits=Traits(**traits), bound_class=bound_class)


@pytest.mark.usefixtures("few")
def test_a_loss_with_all_that_the_solver_needs_passes():
    check_fit(SOLVERS["tron"], loss("hess_vec"))


@pytest.mark.usefixtures("few")
def test_the_sentence_names_what_is_missing_and_what_would_do():
    with pytest.raises(IncompatibleError) as error:
        check_fit(SOLVERS["tron"], loss())
    assert str(error.value) == (
        "tron needs a Hessian-vector product; loss 'lambdarank' has none. Use lbfgs."
    )


@pytest.mark.usefixtures("few")
def test_the_sentence_for_a_property():
    sentence = r"bundle needs a convex loss; loss 'lambdarank' is not one"
    with pytest.raises(IncompatibleError, match=sentence):
        check_fit(SOLVERS["bundle"], loss())


@pytest.mark.usefixtures("few")
def test_the_sentence_for_more_than_one():
    sentence = (
        "tron needs a Hessian-vector product and a smooth loss; "
        "loss 'lambdarank' offers neither. Use sgd."
    )
    with pytest.raises(IncompatibleError, match=sentence):
        check_fit(SOLVERS["tron"], loss(smooth=False, integrable=False))


@pytest.mark.usefixtures("few")
def test_no_solver_at_all(monkeypatch):
    monkeypatch.setattr(registry, "names", lambda _: ["tron"])
    monkeypatch.setattr(registry, "resolve", lambda _, name: SOLVERS["tron"])
    with pytest.raises(IncompatibleError, match="No solver here minimises it"):
        check_fit(SOLVERS["tron"], loss())


@pytest.mark.usefixtures("few")
def test_a_need_that_no_trait_has_is_one_that_no_loss_meets():
    asks = SimpleNamespace(needs=frozenset({"magic"}), name="theirs")
    with pytest.raises(IncompatibleError, match="theirs needs magic; loss 'lambdarank'"):
        check_fit(asks, loss())


def test_the_real_sentence_for_a_registered_loss():
    with pytest.raises(IncompatibleError) as error:
        choose_solver("tron", LambdaRank())
    assert str(error.value) == (
        "tron needs a smooth loss and a loss whose gradient integrates to a value; loss "
        "'lambdarank' offers neither. Use sgd."
    )


def test_the_sentence_imports_no_solver_but_the_one_it_names():
    code = (
        "import sys\n"
        "from rankwright.errors import IncompatibleError\n"
        "from rankwright.losses import LambdaRank\n"
        "from rankwright.models.linear import Linear\n"
        "try:\n"
        "    Linear().solver_for(LambdaRank(), 'tron', 0)\n"
        "except IncompatibleError as error:\n"
        "    print(error)\n"
        "print(*sorted(m for m in sys.modules if m.startswith('rankwright.solvers.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    sentence, imported = done.stdout.splitlines()
    assert sentence.endswith("Use sgd.")
    others = {"alternating", "bundle", "column_generation", "coordinate", "lbfgs"}
    assert not others & {name.rpartition(".")[2] for name in imported.split()}


# --- which one is chosen ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("traits", "name"),
    [
        ({}, "lbfgs"),
        ({"smooth": False}, "online"),
        ({"stochastic": True}, "sgd"),
        ({"integrable": False}, "sgd"),
    ],
)
def test_the_solver_that_suits_a_loss(traits, name):
    assert default_solver(Traits(**traits)) == name


def test_no_solver_given_is_the_one_that_suits():
    assert choose_solver(None, RankNet()) == LBFGS()
    assert choose_solver(None, LambdaRank(), random_state=3) == SGD(random_state=3)


def test_a_name_is_the_solver_with_its_defaults_and_what_was_given():
    assert choose_solver("tron", RankNet()) == TRON()
    given = choose_solver("sgd", RankNet(), max_iter=7, tol=0.5, random_state=3)
    assert given == SGD(max_iter=7, tol=0.5, random_state=3)


def test_an_object_is_taken_as_it_is():
    own = SGD(learning_rate=0.3, random_state=5)
    assert choose_solver(own, RankNet(), random_state=3) is own


def test_limits_beside_a_solver_object_are_refused():
    with pytest.raises(
        UsageError, match=r"pass it to the solver object: TRON\(max_iter=5, tol=0.1\)"
    ):
        choose_solver(TRON(), RankNet(), max_iter=5, tol=0.1)


def test_a_class_is_no_solver():
    with pytest.raises(UsageError, match=r"TRON is a class; pass an object: TRON\(\)"):
        choose_solver(TRON, RankNet())


def test_an_unknown_name_is_answered_by_those_that_are_there():
    with pytest.raises(UsageError, match="lbfgs"):
        choose_solver("lbgfs", RankNet())


def test_an_object_without_solve_is_refused():
    with pytest.raises(UsageError, match="does not solve for the weights"):
        choose_solver(object(), RankNet())


def test_parameters_of_the_wrong_kind_are_refused_before_any_work():
    with pytest.raises(UsageError, match="max_iter must be a whole number"):
        choose_solver(LBFGS(max_iter="many"), RankNet())
    with pytest.raises(UsageError, match="batch_size must be 1 or more"):
        choose_solver(SGD(batch_size=0), RankNet())


def test_kinks_are_for_bundle_and_not_for_lbfgs():
    hinge = PairHinge(form="hinge")
    assert choose_solver("bundle", hinge) == Bundle()
    with pytest.raises(IncompatibleError, match="lbfgs needs a smooth loss"):
        choose_solver("lbfgs", hinge)


def test_anyones_solver_is_as_good():
    @dataclass(frozen=True)
    class Theirs:
        needs: ClassVar[frozenset] = frozenset({"smooth", "hess_vec"})
        steps: int = 3

        def solve(self, problem, start=None):
            """Do nothing."""

    own = Theirs()
    assert choose_solver(own, Squared()) is own
    with pytest.raises(IncompatibleError, match="Theirs needs a smooth loss"):
        choose_solver(own, LambdaRank())


# --- losses that change with the iteration ------------------------------------------------------


class Annealed:
    """A squared loss whose bound loss has ``set_iteration``, as of a temperature that falls."""

    bound_class = Squared().bound_class

    def __init__(self, stochastic=False):
        self.traits = Traits(convex=True, stochastic=stochastic)

    def bind(self, data, *, n_jobs=None):
        bound = Squared().bind(data, n_jobs=n_jobs)
        self.iterations = []
        bound.set_iteration = self.iterations.append
        bound.number_from = lambda first: None
        return bound


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("solver", ["lbfgs", "bundle"])
def test_a_solver_of_one_objective_says_that_it_calls_no_set_iteration(stochastic, solver):
    with pytest.warns(UserWarning, match=f"{solver} minimises one fixed objective.*solver='sgd'"):
        Ranker(Annealed(stochastic), solver=solver).fit(small_data())


@pytest.mark.parametrize("stochastic", [False, True])
def test_a_solver_that_makes_passes_calls_set_iteration(stochastic):
    loss = Annealed(stochastic)
    Ranker(loss, "linear", solver=SGD(max_iter=3)).fit(small_data())
    assert loss.iterations == [0, 1, 2]

"""The protocols between losses, models, solvers and metrics.

A ranking algorithm is a loss, a model and a solver. A loss is a function of scores, grades and
query boundaries; a model computes scores from parameters; a solver minimises a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from rankwright.data.ranking_data import RankingData

F64: TypeAlias = NDArray[np.float64]
I64: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]
FloatMatrix: TypeAlias = "NDArray[np.float32] | NDArray[np.float64] | csr_array[Any]"


@dataclass(frozen=True, slots=True)
class Traits:
    """Mathematical properties of a loss, compared with the requirements of solvers and models.

    Attributes
    ----------
    smooth : bool
        Whether the gradient is continuous.
    convex : bool
        Whether the loss is convex in the scores.
    shift_invariant : bool
        Whether the loss is unchanged if a constant is added to the scores of a query.
    integrable : bool
        Whether ``grad`` is the gradient of ``value``. LambdaRank's is not.
    stochastic : bool
        Whether the bound loss samples in each iteration: `SampledLoss`.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.losses.ListNet().traits.convex
    True
    """

    smooth: bool = True
    convex: bool = False
    shift_invariant: bool = True
    integrable: bool = True
    stochastic: bool = False


class BoundLoss(Protocol):
    """A loss on one data set, with label order, ideal values and work arrays.

    Every bound loss has ``value`` and ``grad``. Solvers and models look for further methods:

    - ``grad_curv(s, out, curv)`` also writes a diagonal of the Hessian, exact or an upper bound.
      Without it, trees and the solver online use a constant curvature;
    - ``grad_queries(lo, hi, s, out)`` returns the value and writes the gradient of queries lo:hi
      only. Networks, which call it from several threads for disjoint ranges, and the solvers sgd
      and online need it;
    - ``hess_vec(v, out)``: `HessianLoss`. The solver tron needs it;
    - ``targets(s, out)`` and ``with_targets(r)``, if the loss is a minimum over targets: write the
      targets for scores ``s``, and return the bound loss with fixed targets. The solver alternating
      needs them;
    - ``by_column(X, total_weight=, deviation=, n_jobs=)`` returns the problem of coordinate descent
      over the columns of a CSC matrix. The solver coordinate needs it;
    - ``convex_part(s, out)`` and ``concave_part(s, out)``, if the loss is M - N with convex M and
      N: return their values and write their gradients. The solver bundle needs them unless the
      loss is convex;
    - ``state`` and ``load_state``: `StatefulLoss`.

    A loss declares these methods before it is bound by the attribute ``bound_class``, the class of
    the bound loss; without it, a loss is taken to have ``value`` and ``grad`` only.
    """

    def value(self, s: F64) -> float:
        """Return the weighted sum of the loss over queries."""

    def grad(self, s: F64, out: F64) -> float:
        """Write the gradient in the scores to ``out`` and return the value."""


class HessianLoss(BoundLoss, Protocol):
    """A bound loss with Hessian products."""

    def hess_vec(self, v: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``v`` to ``out``."""


class StatefulLoss(BoundLoss, Protocol):
    """A bound loss with state, which checkpoints store."""

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays, besides the scores, on which results depend."""

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore the arrays that `state` returned."""


class SampledLoss(StatefulLoss, Protocol):
    """A bound loss that samples noise, orders or rankings; see ``Traits.stochastic``.

    The sample of a query depends only on the seed, the iteration and the number of the query.
    """

    def set_iteration(self, t: int) -> None:
        """Use the samples of iteration ``t``."""

    def number_from(self, first: int) -> None:
        """Set the number of the first query, if the data is a part of a larger data set."""


class Loss(Protocol):
    """Hyper-parameters of a loss: a frozen dataclass without arrays or state.

    A loss can have further methods: ``fixed_targets(data)`` returns y if the loss is
    sum_i w_i/2 (s_i - y_i)^2, which least squares need; ``rule_step(value, derivative)`` returns
    the weight of a rule [x_f > theta] from the loss and its derivative along the rule, for
    additive models; `SurveyedLoss` has ``largest``.
    """

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set; check its parameters and the data."""


class SurveyedLoss(Loss, Protocol):
    """A loss that depends on a maximum over all data, which fits over partitions ask for."""

    def largest(self, data: RankingData) -> float:
        """Return the maximum over ``data``. Maxima of partitions combine with `max`."""

    def bind(
        self, data: RankingData, *, largest: float | None = None, n_jobs: int | None = None
    ) -> BoundLoss:
        """As for every loss; ``largest`` is the maximum over all data, if ``data`` is a part."""


def offers(loss: Any, method: str) -> bool:
    """Return whether a loss that is not bound yet will have a method when it is.

    A loss with ``bind`` only can declare this by a ``bound_class``.
    """
    return hasattr(getattr(loss, "bound_class", None), method)


class Metric(Protocol):
    """A metric of a ranking; frozen, and its ``repr`` is its name: ``ndcg@10``."""

    def per_query(self, s: F64, data: RankingData, out: F64) -> None:
        """Write the value of each query to ``out``; NaN excludes the query from the mean."""


class Problem(Protocol):
    """An objective in variables, to be minimised by a solver."""

    size: int

    def value(self, w: F64) -> float:
        """Return the objective at ``w``."""

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient at ``w`` to ``out`` and return the objective."""


class NewtonProblem(Problem, Protocol):
    """A problem with second derivatives."""

    def hess_vec(self, v: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``v`` to ``out``."""

    def precondition(self) -> F64:
        """Return a positive diagonal close to the Hessian's."""


class StochasticProblem(Problem, Protocol):
    """A mean over parts (queries) with a gradient of each part.

    The objective is the mean over parts of f_k(w) = loss of part k + l2/2 |w|^2.
    """

    n_parts: int
    l2: float

    def begin_pass(self, t: int, w: F64) -> None:
        """Sample the noise of pass ``t``, which starts at ``w``, if the loss has any."""

    def part_grad(self, parts: I64, w: F64, out: F64) -> float:
        """Write the gradient of the mean of f_k over ``parts`` to ``out``; return that mean."""

    def part_smoothness(self, part: int, floor: float) -> float:
        """Return a Lipschitz constant of the gradient of ``part`` without the penalty.

        It holds at the start of the pass. Return ``floor`` if that is larger.
        """


class CutProblem(Protocol):
    """l2/2 |w|^2 + M(w) - N(w), with convex M and N known by their tangent planes."""

    size: int
    l2: float

    def cut(self, w: F64) -> tuple[F64, float, float]:
        """Return a, b and M(w) of the plane a'w + b that touches M from below at ``w``."""

    def concave_part(self, w: F64) -> tuple[F64, float] | None:
        """Return a and b of the plane that touches N at ``w``, or None without an N."""


class TargetProblem(Problem, Protocol):
    """A problem whose loss is a minimum over targets r: a divergence between r and the scores."""

    def targets(self, w: F64, near: F64 | None = None, rate: float = 1.0) -> F64:
        """Return the targets nearest to the scores of ``w``.

        With a ``rate`` below 1, return the targets nearest to a mean of the scores and ``near``.
        """

    def with_targets(self, r: F64) -> Problem:
        """Return the problem with fixed targets ``r``."""


@dataclass(frozen=True, slots=True)
class SolveResult:
    """Result of a solver: the solution, its optimality, and the reason to stop.

    A solver that can be resumed continues from ``state``.
    """

    w: F64
    value: float
    optimality: float
    iterations: int
    stopped: str
    curve: list[float] = field(default_factory=list)
    state: Any = None


VANISHED = "the objective has all but vanished"
"""Reason to stop of a solver if the scale of the targets is almost 0."""


class Solver(Protocol):
    """Minimise a problem; ``needs`` has the traits and methods that the loss must have.

    A solver with the field ``random_state`` visits single queries, whose order in the data depends
    only on their content. A solver with ``by_column = True`` steps along single features, supports
    an l1 penalty, and minimises the problem that ``by_column`` of the loss returns.
    """

    needs: ClassVar[frozenset[str]]

    def solve(self, problem: Problem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""


@dataclass(frozen=True, slots=True)
class Round:
    """A step of a fit: a tree, an epoch, a penalty, a generation.

    Parameters
    ----------
    number : int
        Counted from 1, including the rounds of a model that the fit continues.
    loss : float
        The training objective after the round.
    valid_scores : array, or None without validation data
        Scores of the validation data after the round.
    model : callable
        Builds the fitted model up to this round. It stays callable after later rounds, so that a
        model is built only for the best of them.
    state : callable or None
        Returns the arrays from which ``resume`` continues after this round. None if the model
        cannot be resumed.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> rounds = rw.models.Trees(n_estimators=3).rounds(rw.losses.RankNet(), data)
    >>> [round_.number for round_ in rounds]
    [1, 2, 3]
    """

    number: int
    loss: float
    valid_scores: Any
    model: Callable[[], FittedModel]
    state: Callable[[], dict[str, AnyArray]] | None = None


class FittedModel(Protocol):
    """A fitted model, which computes scores and can be written to a model file.

    Optional: ``scores_of(data, n_jobs=)`` and ``contributions_of(data)`` of a model whose scores
    depend on the query; ``coef``, the weights of a linear model;
    ``importance(kind)`` of trees; ``solution``, the `SolveResult`.
    """

    @property
    def n_features(self) -> int:
        """Number of features."""

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""

    def contributions(self, X: FloatMatrix) -> F64:
        """Return the contribution of each feature to each score, and the remainder last."""

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays of the model, by name."""

    def texts(self) -> dict[str, str]:
        """Return the texts of the model, by name."""


class Model(Protocol):
    """Parameters of a model family: a frozen dataclass that can be fitted under any loss.

    Optional attributes and methods:

    - ``check()`` raises an error if parameters make no sense, and ``check_installed()`` if a
      package is missing; both are called before any work.
    - ``takes_solver``: ``rounds`` has a parameter ``solver``, an object, a name, or None for one
      that suits the loss.
    - ``optimises_metric``: the first argument of ``rounds`` is a `Metric`, and the loss of a round
      is its negative mean (or the mean, if lower values are better).
    - ``resumable``: ``rounds`` has a parameter ``resume``, the arrays of `Round.state`, and rounds
      have a ``state``.
    - ``can_continue(fitted)``: whether ``start`` can be this fitted model.
    - ``boosts``: rounds are many small steps, which early stopping ends by default.
    - ``compares_values``: features are only compared, so that their size does not matter.
    """

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: Any = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Minimise ``loss`` over ``data``, from a fitted model ``start``, and yield each round."""

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedModel:
        """Build the fitted model from the results of `arrays` and `texts`."""

"""The protocols between losses, models, solvers and metrics.

A ranking algorithm is a loss on scores x a model x a solver. A loss knows scores, grades and the
query boundaries; a model knows how parameters make scores; a solver knows a problem.
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
    """What a loss can do, compared once with what a solver or model needs.

    Attributes
    ----------
    family : str
        "pointwise", "pairwise" or "listwise".
    smooth : bool
        Whether the gradient is continuous.
    convex : bool
        Whether the loss is convex in the scores.
    shift_invariant : bool
        Whether adding a constant to the scores of a query changes nothing.
    integrable : bool
        Whether ``grad`` is the gradient of ``value``; LambdaRank's is not.
    stochastic : bool
        Whether the bound loss samples something anew in each iteration: `SampledLoss`.
    stateful : bool
        Whether its answers depend on earlier ones, such as by warm starts: `StatefulLoss`. A
        stochastic loss is one of them and need not say so.
    curvature : bool
        Whether ``grad_curv`` gives a diagonal of the Hessian, exact or an upper bound.
    queries : bool
        Whether the bound loss has the gradient of some queries alone: `QueryLoss`. Networks and
        the solvers sgd and online need it.
    hess_vec : bool
        Whether it has Hessian products: `HessianLoss`.
    targets : bool
        Whether it is a minimum over targets and can be held to fixed ones: `TargetLoss`.
    columns : bool
        Whether it offers steps along single features: `ColumnLoss`.
    difference : bool
        Whether it is a difference of convex functions: `DifferenceLoss`.
    rule_step : bool
        Whether the loss has a formula for the weight of a rule: `RuleLoss`. Additive models use it.
    fixed_targets : bool
        Whether it is half the squared distance of each score from a fixed target: `SquaresLoss`.
        Least squares need it.
    largest : bool
        Whether what it is on a part of the data depends on all of them: `SurveyedLoss`. Fits over
        partitions ask for it.

    Examples
    --------
    >>> import rankwright as rw
    >>> traits = rw.losses.ListNet().traits
    >>> traits.family, traits.convex, traits.hess_vec
    ('listwise', True, True)
    """

    family: str
    smooth: bool = True
    convex: bool = False
    shift_invariant: bool = True
    integrable: bool = True
    curvature: bool = False
    hess_vec: bool = False
    stochastic: bool = False
    targets: bool = False
    columns: bool = False
    difference: bool = False
    queries: bool = False
    stateful: bool = False
    rule_step: bool = False
    fixed_targets: bool = False
    largest: bool = False

    @property
    def convex_parts(self) -> bool:
        """Whether the loss is convex, or a difference of convex functions."""
        return self.convex or self.difference


class BoundLoss(Protocol):
    """A loss on one data set: label order, ideal values, warm starts and buffers live here.

    ``value`` and ``grad`` are all that every loss has. What else one may have is in the protocols
    below, each announced by its trait; no solver or model asks for anything that is not here.
    """

    def value(self, s: F64) -> float:
        """Return the weighted sum of the loss over queries."""

    def grad(self, s: F64, out: F64) -> float:
        """Write the gradient in the scores to ``out`` and return the value."""


class CurvatureLoss(BoundLoss, Protocol):
    """A bound loss with a diagonal of its Hessian: ``traits.curvature`` says so."""

    def grad_curv(self, s: F64, out: F64, curv: F64) -> float:
        """As ``grad``, with a diagonal of the Hessian (exact, or an upper bound) in ``curv``."""


class QueryLoss(BoundLoss, Protocol):
    """A bound loss that can be asked for some queries alone: ``traits.queries`` says so."""

    def grad_queries(self, lo: int, hi: int, s: F64, out: F64) -> float:
        """As ``grad``, for the queries lo:hi alone; other rows are neither read nor written.

        Networks call it from several threads at once, for ranges that do not overlap.
        """


class HessianLoss(BoundLoss, Protocol):
    """A bound loss with Hessian products: ``traits.hess_vec`` says so."""

    def hess_vec(self, v: F64, out: F64) -> None:
        """Write the Hessian at the last ``grad`` times ``v`` to ``out``."""


class TargetLoss(BoundLoss, Protocol):
    """A bound loss that is a minimum over targets, such as IntervalRank's and MEMR's.

    ``traits.targets`` says so.
    """

    def targets(self, s: F64, out: F64) -> None:
        """Write the targets that the inner minimisation chooses for ``s``."""

    def with_targets(self, r: F64) -> HessianLoss:
        """Return the bound loss of scores to fixed targets ``r``."""


class DifferenceLoss(BoundLoss, Protocol):
    """A bound loss M - N with convex M and N: ``traits.difference`` says so."""

    def convex_part(self, s: F64, out: F64) -> float:
        """Write the gradient of M to ``out`` and return M."""

    def concave_part(self, s: F64, out: F64) -> float:
        """Write the gradient of N to ``out`` and return N."""


class ColumnLoss(BoundLoss, Protocol):
    """A bound loss that offers steps along single features: ``traits.columns`` says so."""

    def by_column(
        self, X: Any, *, total_weight: float, deviation: F64, n_jobs: int | None = None
    ) -> Any:
        """Return the problem of coordinate descent over the columns of the CSC matrix ``X``."""


class Stateful(Protocol):
    """What a checkpoint keeps of a bound loss or a problem whose answers depend on earlier ones."""

    def state(self) -> dict[str, AnyArray]:
        """Return what answers depend on besides the scores or weights that are asked about."""

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the one that had this `state`."""


class StatefulLoss(BoundLoss, Stateful, Protocol):
    """A bound loss whose answers depend on earlier ones: ``traits.stateful`` says so."""


class SampledLoss(StatefulLoss, Protocol):
    """A bound loss that samples noise, orders or rankings: ``traits.stochastic`` says so.

    What is sampled for a query depends on the seed, the iteration and the query's number alone.
    """

    def set_iteration(self, t: int) -> None:
        """Take what is sampled in iteration ``t`` from here on."""

    def number_from(self, first: int) -> None:
        """Sample as if the first query had this number: where the data are a part of others."""


CAPABILITIES: dict[str, tuple[str, ...]] = {
    "curvature": ("grad_curv",),
    "queries": ("grad_queries",),
    "hess_vec": ("hess_vec",),
    "targets": ("targets", "with_targets"),
    "difference": ("convex_part", "concave_part"),
    "columns": ("by_column",),
    "stochastic": ("set_iteration", "number_from", "state", "load_state"),
    "stateful": ("state", "load_state"),
}
"""The methods that a bound loss has by each trait that it may have, beside value and grad."""


class Loss(Protocol):
    """Hyper-parameters of a loss: a frozen dataclass without arrays or state.

    ``traits`` and ``bind`` are all that every loss has; the protocols below are announced by traits
    as those of bound losses are.
    """

    @property
    def traits(self) -> Traits:
        """What the loss can do with these parameters."""

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set; check its parameters and what it needs of the data."""


class RuleLoss(Loss, Protocol):
    """A loss with a formula for weights of rules [x_f > theta]: ``traits.rule_step`` says so."""

    def rule_step(self, value: float, derivative: float) -> float:
        """Return how far to go along a rule, from the loss and its derivative along the rule."""


class SquaresLoss(Loss, Protocol):
    """A loss sum_i w_i/2 (s_i - y_i)^2 with fixed y: ``traits.fixed_targets`` says so."""

    def fixed_targets(self, data: RankingData) -> F64:
        """Return y of each document."""


class SurveyedLoss(Loss, Protocol):
    """A loss that depends on the largest of something over all data: ``traits.largest`` says so."""

    def largest(self, data: RankingData) -> float:
        """Return the largest over ``data``; that of all data is the largest of their parts."""

    def bind(
        self, data: RankingData, *, largest: float | None = None, n_jobs: int | None = None
    ) -> BoundLoss:
        """As for every loss; ``largest`` is that of all data, where ``data`` are a part of them."""


class Metric(Protocol):
    """A metric of a ranking; frozen, and its ``repr`` is its name: ``ndcg@10``."""

    def per_query(self, s: F64, data: RankingData, out: F64) -> None:
        """Write the value of each query to ``out`` (NaN: the query is left out of the mean)."""


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

        With a ``rate`` below 1, those nearest to a mean of the scores and the targets ``near``.
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
"""Why a solver stopped where the scale of the targets has gone to 0."""


class Solver(Protocol):
    """Minimise a problem; ``needs`` contains the traits that the loss must have.

    A solver with the field ``random_state`` visits single queries, whose order in the data depends
    only on their content. A solver with ``by_column = True`` steps along single features, supports
    an l1 penalty, and minimises the problem that `ColumnLoss.by_column` returns.
    """

    needs: ClassVar[frozenset[str]]

    def solve(self, problem: Problem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""


class OnlineSolver(Solver, Protocol):
    """A solver that continues with new queries, as ``partial_fit`` needs."""

    def resume(self, problem: StochasticProblem, state: Any) -> SolveResult:
        """Take one step for each part of ``problem``, in their own order, from ``state``."""


@dataclass(frozen=True, slots=True)
class Round:
    """A step of a fit: a tree, an epoch, a penalty, a generation.

    Parameters
    ----------
    number : int
        Counted from 1; the rounds of a model that the fit continues from count.
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
    """What a model has learnt: makes scores, and can be written to a model file.

    Optional: ``scores_of(data, n_jobs=)`` and ``contributions_of(data)`` of a model whose scores
    depend on the query; ``coef``, the weights of a linear model;
    ``importance(kind)`` and ``breakpoints(column)`` of trees; ``solution``, the `SolveResult`.
    """

    @property
    def n_features(self) -> int:
        """Number of features that it takes."""

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each feature adds to each score, and the rest of the score last."""

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
        """Build the fitted model from its own arrays and texts."""

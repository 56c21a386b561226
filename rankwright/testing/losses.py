"""Properties of all losses: `check_loss` checks them for any loss, `loss_checks` lists them.

The data is a few short queries; some have a single document, a single grade or no document.
Gradients are compared with finite differences at random scores, which are not at the kinks of a
loss. A loss that raises `UsageError` for data with weights of documents is checked without them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.core.parallel import documents_per_range
from rankwright.core.parameters import check_parameters, params_of, part_name, resolve_part
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import KernelLoss
from rankwright.testing.contract import (
    Check,
    graded,
    require,
    require_close,
    require_equal,
    run_checks,
    shuffled_within,
)

GRADES = [[2, 0, 1, 1, 0], [1], [0, 0, 0], [3, 1, 4, 0, 1, 2], [], [1, 0]]
RANKED = [0, 3, 5]  # the queries whose documents have different grades
N = sum(map(len, GRADES))
WEIGHT = np.linspace(0.5, 2.0, N)
THREADS = (1, 2, 5)
_CHECKS: list[tuple[Check, tuple[str, ...], tuple[str, ...]]] = []


def check_loss(loss: Any) -> None:
    """Raise `ContractError` unless ``loss`` has the properties of all losses.

    Parameters
    ----------
    loss : loss or str
        An object with ``traits`` and ``bind(data)``, or a name of ``rankwright list losses``.

    Examples
    --------
    >>> from rankwright.losses import ListNet
    >>> check_loss(ListNet())
    """
    made = resolve_part("losses", loss)
    name = getattr(made, "name", None) or part_name("losses", made)
    run_checks(f"loss '{name}'", made, loss_checks(made))


def loss_checks(loss: Any) -> list[Check]:
    """Return the checks of the properties that ``loss`` must have, given its traits and methods.

    Parameters
    ----------
    loss : loss or str

    Returns
    -------
    list of callables
        Each takes the loss, and raises where the property does not hold.

    Examples
    --------
    >>> import rankwright as rw
    >>> loss = rw.losses.ListNet()
    >>> for check in rw.testing.loss_checks(loss)[:2]:
    ...     check(loss)
    """
    part = resolve_part("losses", loss)
    return [
        check
        for check, needs, without in _CHECKS
        if all(_has(part, need) for need in needs) and not any(_has(part, need) for need in without)
    ]


def _has(loss: Any, need: str) -> bool:
    """Return whether a loss has a trait, or its bound loss a method."""
    traits = getattr(loss, "traits", None)
    if hasattr(traits, need):
        return bool(getattr(traits, need))
    return hasattr(loss, "bind") and hasattr(loss.bind(graded(GRADES)), need)


def _promised(*needs: str, without: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Register a check for the losses with the traits and methods ``needs``."""

    def listed(check: Check) -> Check:
        _CHECKS.append((check, needs, without))
        return check

    return listed


# --- what the checks share -----------------------------------------------------------------------


def random_scores(data: RankingData, seed: int = 0, size: float = 1.0) -> F64:
    """Return normal scores for the documents of ``data``."""
    return size * np.random.default_rng(seed).normal(size=data.n_documents)


def value_and_grad(bound: Any, s: F64) -> tuple[float, F64]:
    """Return value and gradient, written to an array of NaN."""
    grad = np.full(len(s), np.nan)
    return bound.grad(s, grad), grad


def with_curvature(bound: Any, s: F64) -> tuple[float, F64, F64]:
    """Return value, gradient and curvature; zeros if the loss has no curvature."""
    if not hasattr(bound, "grad_curv"):
        return *value_and_grad(bound, s), np.zeros(len(s))
    grad, curv = np.full(len(s), np.nan), np.full(len(s), np.nan)
    return bound.grad_curv(s, grad, curv), grad, curv


def central_differences(function: Callable[[F64], Any], s: F64, eps: float = 1e-5) -> F64:
    """Return the derivative of ``function`` in each score."""
    steps = eps * np.eye(len(s))
    return np.array([(function(s + e) - function(s - e)) / (2 * eps) for e in steps])


def many_queries() -> RankingData:
    """Return 60 queries of up to 300 documents."""
    rng = np.random.default_rng(7)
    sizes = rng.integers(0, 300, 60)
    y = rng.integers(0, 5, sizes.sum())
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes)


def takes_weights(loss: Any) -> bool:
    """Return whether a loss supports weights of documents."""
    try:
        loss.bind(graded(GRADES, sample_weight=WEIGHT))
    except UsageError:
        return False
    return True


def _weighted(loss: Any, weight: F64 = WEIGHT, **arrays: Any) -> RankingData:
    """Return the queries with weights of documents, if the loss supports them."""
    own = {"sample_weight": weight} if takes_weights(loss) else {}
    return graded(GRADES, **own, **arrays)


# --- traits --------------------------------------------------------------------------------------


@_promised()
def check_traits(loss: Any) -> None:
    """The traits are a `Traits`, and the methods that they imply exist."""
    traits: Any = getattr(loss, "traits", None)
    require(hasattr(loss, "bind"), "it has no method bind(data).")
    require(isinstance(traits, Traits), "traits must be rankwright.losses.Traits.")
    bound = loss.bind(graded(GRADES))
    methods = ["value", "grad"]
    if traits.stochastic:
        methods += ["set_iteration", "number_from", "state", "load_state"]
    for method in methods:
        claim = "" if method in ("value", "grad") else "traits.stochastic is true, but "
        require(hasattr(bound, method), f"{claim}the bound loss has no {method}.")


@_promised()
def check_bind_leaves_parameters(loss: Any) -> None:
    """Binding and use leave the parameters and the scores as they are."""
    check_parameters(loss)
    before = repr(params_of(loss))
    data = graded(GRADES)
    s = random_scores(data)
    kept = s.copy()
    bound = loss.bind(data)
    bound.value(s)
    value_and_grad(bound, s)
    require(repr(params_of(loss)) == before, "a parameter was changed.")
    require_equal(s, kept, ("the array of scores after use", "before"))


# --- values --------------------------------------------------------------------------------------


@_promised()
def check_methods_agree(loss: Any) -> None:
    """The methods value, grad and grad_curv agree to the last bit."""
    data = graded(GRADES)
    s = random_scores(data)
    bound = loss.bind(data)
    value, grad = value_and_grad(bound, s)
    require_equal(bound.value(s), value, ("value(s)", "what grad returns"))
    require(np.isfinite(grad).all(), "grad leaves rows of its output as they were.")
    if hasattr(bound, "grad_curv"):
        again, gradients, curv = with_curvature(bound, s)
        require_equal(again, value, ("what grad_curv returns", "what grad returns"))
        require_equal(gradients, grad, ("the gradient of grad_curv", "that of grad"))
        require((curv >= 0).all(), "a curvature is negative.")


@_promised("grad_queries")
def check_queries(loss: Any) -> None:
    """Value and gradient of some queries are the same as among all queries."""
    data = graded(GRADES)
    bound = loss.bind(data)
    s = random_scores(data)
    value, grad = value_and_grad(bound, s)
    kept = np.array(bound.per_query) if hasattr(bound, "per_query") else None
    part = np.full(len(s), np.nan)
    some = bound.grad_queries(3, 6, s, part)
    rows = slice(data.indptr[3], data.indptr[6])
    require_equal(part[rows], grad[rows], ("the gradient of grad_queries(3, 6)", "that of grad"))
    require(np.isnan(part[: rows.start]).all(), "grad_queries wrote to rows of other queries.")
    each = [bound.grad_queries(q, q + 1, s, part) for q in range(len(GRADES))]
    require_close(
        sum(each), value, ("the sum of grad_queries over queries", "the value"), rtol=1e-12
    )
    require_close(some, sum(each[3:]), ("grad_queries(3, 6)", "the sum of its parts"), rtol=1e-12)
    if kept is not None:
        require_close(each, kept, ("grad_queries of each query", "per_query"), rtol=1e-12)


# --- derivatives ---------------------------------------------------------------------------------


@_promised("integrable")
def check_gradient(loss: Any) -> None:
    """The gradient is the derivative of the value."""
    data = _weighted(loss)
    bound = loss.bind(data)
    for size in (0.3, 3.0):
        s = random_scores(data, 2, size)
        grad = value_and_grad(bound, s)[1]
        expected = central_differences(bound.value, s)
        names = ("the gradient", "the finite difference of the value")
        require_close(grad, expected, names, rtol=1e-6, atol=1e-7)


@_promised("integrable", "smooth", "grad_curv")
def check_curvature(loss: Any) -> None:
    """The curvature is at least the diagonal of the Hessian."""
    data = _weighted(loss)
    bound = loss.bind(data)
    for size in (0.3, 3.0):
        s = random_scores(data, 3, size)
        diagonal = np.diag(central_differences(lambda x: value_and_grad(bound, x)[1], s))
        curv = with_curvature(bound, s)[2]
        short = curv < diagonal - 1e-6 * np.abs(diagonal).max()
        row = int(short.argmax())
        require(
            not short.any(),
            f"at row {row} it is {curv[row]:.4g}, and finite differences give {diagonal[row]:.4g}, "
            "so Newton steps of trees would be too long; return a larger curvature (from_function: "
            "a third value of the function, or curvature=).",
        )


@_promised("smooth", "integrable", "hess_vec")
def check_hessian_products(loss: Any) -> None:
    """A Hessian-vector product is a finite difference of gradients."""
    data = _weighted(loss, query_weight=np.linspace(1, 2, len(GRADES)))
    bound = loss.bind(data)
    eps, v = 1e-6, random_scores(data, 5)
    for size in (0.3, 3.0):
        s = random_scores(data, 4, size)
        ends = [value_and_grad(bound, s + sign * eps * v)[1] for sign in (1, -1)]
        expected = (ends[0] - ends[1]) / (2 * eps)
        out = np.full(len(s), np.nan)
        value_and_grad(bound, s)
        bound.value(s + v)  # a look elsewhere does not move the Hessian
        bound.hess_vec(v, out)
        names = ("the Hessian-vector product", "the finite difference of gradients")
        require_close(out, expected, names, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@_promised("smooth", "convex", "hess_vec")
def check_hessian(loss: Any) -> None:
    """The Hessian of a convex loss is symmetric, positive semidefinite and finite."""
    exact = getattr(loss, "hessian", None) is not None or not isinstance(loss, KernelLoss)
    tolerance = 1e-9 if exact else 1e-5  # otherwise products are differences of gradients
    few = np.array([1.0, 0, 2, 1, 0, 2, 1, 0, 1, 1, 2, 0, 1, 0, 2, 1, 2])
    data = _weighted(loss, few)
    bound = loss.bind(data)
    rng = np.random.default_rng(8)
    for far in (0.0, 1e4):
        value_and_grad(bound, random_scores(data) + far * rng.choice([-1, 0, 1], size=N))
        H = np.full((N, N), np.nan)
        for row, v in zip(H, np.eye(N), strict=True):
            bound.hess_vec(v, row)
        require(np.isfinite(H).all(), f"at scores of size {far:g} it is not finite.")
        size = np.abs(H).max()
        require_close(H, H.T, ("an entry", "its mirror image"), atol=tolerance * size)
        least = np.linalg.eigvalsh((H + H.T) / 2).min()
        require(least >= -tolerance * size, f"it has the eigenvalue {least:.3g}.")


@_promised("convex")
def check_convexity(loss: Any) -> None:
    """A convex loss lies below its chords and above its tangents."""
    data = graded(GRADES)
    bound = loss.bind(data)
    _check_convex(bound.value, lambda s: value_and_grad(bound, s), data)


def _check_convex(value: Any, with_grad: Any, data: RankingData, seeds: int = 30) -> None:
    for seed in range(seeds):
        a, b = random_scores(data, seed, 3.0), random_scores(data, 100 + seed, 3.0)
        (value_a, grad_a), value_b = with_grad(a), value(b)
        slack = 1e-9 * (abs(value_a) + abs(value_b))
        middle, chord = value((a + b) / 2), (value_a + value_b) / 2
        require(middle <= chord + slack, f"between two points it is {middle:.9g} > {chord:.9g}.")
        tangent = value_a + grad_a @ (b - a)
        require(
            value_b >= tangent - slack,
            f"the gradient is no subgradient: the value is {value_b:.9g}, the tangent "
            f"{tangent:.9g}.",
        )


@_promised()
def check_downhill(loss: Any) -> None:
    """From equal scores a step down the gradient puts better grades higher."""
    data = graded([2 * [0, 1, 1, 2, 0, 2, 1, 0]])
    grad = value_and_grad(loss.bind(data), np.zeros(16))[1]
    worst, best = (grad[data.y == grade].mean() for grade in (0, 2))
    require(worst > best, f"the mean gradient is {worst:.3g} at grade 0 and {best:.3g} at grade 2.")


@_promised("targets")
def check_targets(loss: Any) -> None:
    """With the targets of the loss held fixed, the gradient is that of the loss."""
    data = graded(GRADES)
    bound = loss.bind(data)
    s = random_scores(data)
    r, grad = np.full(len(s), np.nan), value_and_grad(bound, s)[1]
    bound.targets(s, r)
    require(np.isfinite(r).all(), "targets leaves rows of its output as they were.")
    held = value_and_grad(bound.with_targets(r), s)[1]
    names = ("the gradient of with_targets(targets(s))", "that of the loss")
    require_close(held, grad, names, rtol=1e-6, atol=1e-6 * np.abs(grad).max())


@_promised("concave_part")
def check_difference(loss: Any) -> None:
    """The loss is the difference of its two parts, and both are convex."""
    data = graded(GRADES)
    bound = loss.bind(data)
    s = random_scores(data)
    value, grad = value_and_grad(bound, s)

    def part(name: str) -> Any:
        def with_grad(s: F64) -> tuple[float, F64]:
            out = np.full(len(s), np.nan)
            return getattr(bound, name)(s, out), out

        return with_grad

    parts = [part(name) for name in ("convex_part", "concave_part")]
    (m, gradient_m), (n, gradient_n) = (one(s) for one in parts)
    require_close(m - n, value, ("the difference", "the value"), rtol=1e-9, atol=1e-12)
    names = ("the difference of gradients", "the gradient")
    require_close(gradient_m - gradient_n, grad, names, rtol=1e-9, atol=1e-12)
    for one in parts:
        _check_convex(lambda s, one=one: one(s)[0], one, data, seeds=10)


# --- symmetries ----------------------------------------------------------------------------------


@_promised("shift_invariant")
def check_shift(loss: Any) -> None:
    """Adding a constant to the scores of a query changes nothing."""
    data = graded(GRADES)
    bound = loss.bind(data)
    s = random_scores(data)
    value, grad = value_and_grad(bound, s)
    for constant in (2.5, 1e4):
        moved, same = value_and_grad(bound, s + constant * (1 + data.query_of_row()))
        require_close(moved, value, ("the value after a shift", "before"), rtol=1e-8)
        atol = 1e-7 * np.abs(grad).max()
        require_close(same, grad, ("the gradient after a shift", "before"), rtol=1e-7, atol=atol)
    sums = np.add.reduceat(grad, data.indptr[RANKED])
    require_close(sums, np.zeros(len(sums)), ("the gradient's sum", "no shift"), atol=1e-12)


@_promised(without=("stochastic",))
def check_row_order(loss: Any) -> None:
    """The order of documents within a query changes nothing."""
    data = _weighted(loss)
    s = random_scores(data).round(1)
    value, grad = value_and_grad(loss.bind(data), s)
    order = shuffled_within(data, 5)
    weight = data.sample_weight
    moved = RankingData(
        data.X,
        data.y[order],
        data.indptr,
        data.qid,
        sample_weight=None if weight is None else weight[order],
    )
    again, gradients = value_and_grad(loss.bind(moved), s[order])
    require_close(again, value, ("the value of shuffled documents", "before"), rtol=1e-12)
    names = ("the gradient of shuffled documents", "before")
    require_close(gradients, grad[order], names, rtol=1e-9, atol=1e-12)


@_promised(without=("stochastic",))
def check_ties(loss: Any) -> None:
    """Documents of equal score and grade have equal gradients."""
    data = graded([[2, 0, 1, 1, 0, 0, 2, 1], [1, 1, 0, 2]])
    bound = loss.bind(data)
    for s in (np.zeros(12), np.array([1, 0, 1, 1, 0, 2, 1, 1, 3, 3, 3, 0.0])):
        _, grad, curv = with_curvature(bound, s)
        kind = np.stack([data.query_of_row(), data.y, s], axis=1)
        for twins in ((kind == one).all(axis=1) for one in kind):
            for what, found in (("gradients", grad), ("curvatures", curv)):
                apart = np.ptp(found[twins])
                require(apart <= 1e-12, f"their {what} differ by {apart:.3g}.")


# --- queries and weights -------------------------------------------------------------------------


@_promised()
def check_sum_over_queries(loss: Any) -> None:
    """The loss is the sum of the losses of single queries."""
    data = graded(GRADES)
    s = random_scores(data)
    value, grad = value_and_grad(loss.bind(data), s)
    largest = loss.largest(data) if hasattr(loss, "largest") else None
    options = {} if largest is None else {"largest": largest}
    total, gradients = 0.0, []
    for q, (begin, end) in enumerate(pairwise(data.indptr.tolist())):
        if begin == end:
            continue
        alone = loss.bind(data.select([q]), **options)
        if loss.traits.stochastic:
            alone.number_from(q)
        part = value_and_grad(alone, s[begin:end])
        total += part[0]
        gradients.append(part[1])
    require_close(value, total, ("the value", "the sum over queries alone"), rtol=1e-12)
    names = ("the gradient", "that of the queries alone")
    require_close(grad, np.concatenate(gradients), names, rtol=1e-12)


@_promised()
def check_queries_without_order(loss: Any) -> None:
    """Queries with one grade, one document or no document contribute exactly nothing."""
    data = graded([[1, 1, 1], [2], [], [0, 0]])
    bound = loss.bind(data)
    value, grad, curv = with_curvature(bound, random_scores(data))
    require(bound.value(random_scores(data)) == 0.0 == value, f"their value is {value:.6g}.")
    require(not grad.any(), "they have a gradient.")
    require(not curv.any(), "they have a curvature.")


@_promised()
def check_empty_queries(loss: Any) -> None:
    """Queries without documents at the end change nothing."""
    short, long = graded([[2, 0, 1], [1, 0]]), graded([[2, 0, 1], [1, 0], [], []])
    s = random_scores(short)
    before = with_curvature(loss.bind(short), s)
    after = with_curvature(loss.bind(long), s)
    for what, a, b in zip(("value", "gradient", "curvature"), after, before, strict=True):
        require_equal(a, b, (f"the {what} with them", "without"))


@_promised()
def check_query_weights(loss: Any) -> None:
    """The weight of a query multiplies its loss."""
    weight = np.array([2.0, 1.0, 1.0, 0.5, 3.0, 0.0])
    data = graded(GRADES)
    s = random_scores(data)
    plain = loss.bind(data)
    weighted = loss.bind(graded(GRADES, query_weight=weight))
    grad, by_weight = value_and_grad(plain, s)[1], value_and_grad(weighted, s)[1]
    names = ("the gradient of weighted queries", "weight times gradient")
    per_row = np.repeat(weight, data.sizes)
    require_close(by_weight, per_row * grad, names, rtol=1e-12, atol=1e-300)
    if hasattr(plain, "grad_queries"):
        out = np.empty(len(s))
        each = [plain.grad_queries(q, q + 1, s, out) for q in range(len(weight))]
        found = [weighted.grad_queries(q, q + 1, s, out) for q in range(len(weight))]
        names = ("the value of a weighted query", "weight times value")
        require_close(found, weight * each, names, rtol=1e-12)


@_promised(without=("stochastic",))
def check_absent_documents(loss: Any) -> None:
    """A document of weight 0 has no effect, or sample_weight is refused."""
    if not takes_weights(loss):
        return
    weight = np.array([1.0, 0, 2, 1, 1, 2, 1, 0, 1, 1, 2, 0, 1, 0, 2, 1, 2])
    kept = np.flatnonzero(weight)
    data = graded(GRADES, sample_weight=weight)
    begin = np.searchsorted(kept, data.indptr).astype(np.int64)
    less = RankingData(data.X[kept], data.y[kept], begin, data.qid, sample_weight=weight[kept])
    s = random_scores(data)
    value, grad = value_and_grad(loss.bind(data), s)
    again, gradients = value_and_grad(loss.bind(less), s[kept])
    require_close(value, again, ("the value", "that without them"), rtol=1e-10)
    names = ("the gradient", "that without them")
    require_close(grad[kept], gradients, names, rtol=1e-8, atol=1e-9)
    require(not np.delete(grad, kept).any(), "a document of weight 0 has a gradient.")


# --- numbers -------------------------------------------------------------------------------------


@_promised()
def check_large_scores(loss: Any) -> None:
    """Scores of ten thousand give finite values, gradients and curvatures."""
    data = graded([[2, 0, 1, 1, 0, 3, 2, 2, 1, 0, 0, 4], [1, 0]])
    rng = np.random.default_rng(6)
    for seed in range(5):
        s = 1e4 * rng.choice([-1, 0, 1], size=14) + random_scores(data, seed)
        parts: tuple[Any, ...] = with_curvature(loss.bind(data), s)
        for what, found in zip(("value", "gradient", "curvature"), parts, strict=True):
            require(np.isfinite(found).all(), f"the {what} is not finite.")


@_promised()
def check_threads(loss: Any) -> None:
    """One, two and five threads give the same bits."""
    data = many_queries()
    s, v = random_scores(data).round(2), random_scores(data, 1)
    found = []
    with documents_per_range(900):
        for n_jobs in THREADS:
            bound = loss.bind(data, n_jobs=n_jobs)
            value, grad, curv = with_curvature(bound, s)
            parts = [np.array([value]), grad, curv]
            if loss.traits.smooth and hasattr(bound, "hess_vec"):
                product = np.empty(len(s))
                bound.hess_vec(v, product)
                parts.append(product)
            found.append([part.tobytes() for part in parts])
    names = ("value", "gradient", "curvature", "Hessian-vector product")
    for n_jobs, other in zip(THREADS[1:], found[1:], strict=True):
        for what, a, b in zip(names, found[0], other, strict=False):
            require(a == b, f"the {what} of {n_jobs} threads differs from that of one.")


@_promised("stochastic")
def check_iterations(loss: Any) -> None:
    """Samples depend only on the iteration, and a state restores them."""
    data = graded([[2, 0, 1, 1, 0, 3, 2, 2, 1, 0, 0, 4], [1, 0]])
    s = random_scores(data)
    first, other = loss.bind(data), loss.bind(data)
    at_once = [value_and_grad(first, s)[1]]
    for t in (3, 0):
        first.set_iteration(t)
        at_once.append(value_and_grad(first, s)[1])
    names = ("the gradient of iteration 0 after others", "that at the beginning")
    require_equal(at_once[2], at_once[0], names)
    first.set_iteration(3)
    other.load_state({name: np.array(array) for name, array in first.state().items()})
    names = ("the gradient after load_state", "that of the loss whose state it is")
    require_equal(value_and_grad(other, s)[1], at_once[1], names)

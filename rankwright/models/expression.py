"""A score that is a short formula over features, found by genetic programming (RankGP).

The fitness of a formula f is the mean of the measure when documents are ranked by f
(`yeh2007rankgp`), averaged over the orders of documents that f scores alike: a formula that is the
same for all of them gains nothing from the order of the file. `rankwright.solvers.evolve` breeds
the formulas, `rankwright.models.formula` says what they are made of. The best of each generation is
shown to the watch, and the valid data choose between them.

A whole generation is evaluated by one kernel: formulas in postfix code, blocks of rows on a small
stack. A formula met before, after simplification, is not evaluated again.

What a feature adds to a score is its Shapley value, exact, over the m features that f uses:

    phi_j = sum over S without j of |S|! (m - |S| - 1)! / m!  (f(x_S+j) - f(x_S))                (1)

where x_S has the features S of the document and, for the others, their means on the training data.
With the score of those means, f(x of no S), the contributions sum to the score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges
from rankwright.core.types import F64, AnyArray, FloatMatrix, Metric, Watch
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics import base
from rankwright.metrics.evaluate import Evaluator
from rankwright.models.formula import (
    CODES,
    LIMIT,
    NUMBER,
    Formula,
    columns_of,
    from_postfix,
    parts_of,
    postfix,
    size,
    text,
)
from rankwright.models.formula_breeding import Breeding
from rankwright.models.missing import fill_values, filled
from rankwright.solvers.evolve import Evolve
from rankwright.solvers.journal import Journal

_BLOCK = 512  # rows that an operation works on at a time
_ROWS = 1 << 13  # rows of a range for one thread
_AT_ONCE = 1 << 22  # scores of a generation held at a time
_MOST_FEATURES = 16  # of which contributions are still quick

_NUMBER, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MIN, _MAX, _NEGATE, _LOG1P, _SQRT = (
    CODES[name] for name in (NUMBER, "+", "-", "*", "/", "min", "max", "neg", "log1p", "sqrt")
)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _hold(a):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        low = a[i] if a[i] > -LIMIT else -LIMIT
        a[i] = low if low < LIMIT else LIMIT


@kernel
def _apply(op, a, b):  # type: ignore[no-untyped-def]
    """Put ``op`` of a and b into a; functions of one part look at a alone."""
    for i in range(len(a)):
        if op == _ADD:
            a[i] += b[i]
        elif op == _SUBTRACT:
            a[i] -= b[i]
        elif op == _MULTIPLY:
            a[i] *= b[i]
        elif op == _DIVIDE:
            a[i] = a[i] / b[i] if b[i] != 0.0 else 1.0
        elif op == _MIN:
            a[i] = a[i] if a[i] < b[i] else b[i]
        elif op == _MAX:
            a[i] = a[i] if a[i] > b[i] else b[i]
        elif op == _NEGATE:
            a[i] = -a[i]
        elif op == _LOG1P:
            a[i] = math.log1p(abs(a[i]))
        else:
            a[i] = math.sqrt(abs(a[i]))


@kernel
def _evaluate(code, value, columns, stack):  # type: ignore[no-untyped-def]
    """Put the value of one formula for each of the rows into ``stack[0]``."""
    n = columns.shape[1]
    top = 0
    for k in range(len(code)):
        op = code[k]
        if op >= _NUMBER:
            if op == _NUMBER:
                stack[top, :n] = value[k]
            else:
                stack[top, :n] = columns[op]
                _hold(stack[top, :n])
            top += 1
        else:
            if op > _NEGATE:
                top -= 1
            _apply(op, stack[top - 1, :n], stack[top, :n])
            _hold(stack[top - 1, :n])


@kernel
def _evaluate_all(lo, hi, starts, code, value, columns, out):  # type: ignore[no-untyped-def]
    """Put the value of each formula for each of the rows lo:hi into ``out``."""
    longest = 0
    for p in range(len(starts) - 1):
        longest = max(longest, starts[p + 1] - starts[p])
    stack = np.empty((longest // 2 + 2, _BLOCK))
    for first in range(lo, hi, _BLOCK):
        last = min(first + _BLOCK, hi)
        for p in range(len(starts) - 1):
            a, b = starts[p], starts[p + 1]
            _evaluate(code[a:b], value[a:b], columns[:, first:last], stack)
            out[p, first:last] = stack[0, : last - first]


@kernel
def _shapley(lo, hi, code, value, columns, means, share, out):  # type: ignore[no-untyped-def]
    """Write (1) for rows lo:hi; ``share[s]`` is the factor of a set of s features."""
    m = len(means)
    mixed = np.empty((m, 1 << m))
    stack = np.empty((len(code) // 2 + 2, 1 << m))
    for i in range(lo, hi):
        for j in range(m):
            for chosen in range(1 << m):
                mixed[j, chosen] = columns[j, i] if chosen >> j & 1 else means[j]
        _evaluate(code, value, mixed, stack)
        for j in range(m):
            total = 0.0
            for chosen in range(1 << m):
                if not chosen >> j & 1:
                    count = 0
                    for other in range(m):
                        count += chosen >> other & 1
                    total += share[count] * (stack[0, chosen | 1 << j] - stack[0, chosen])
            out[i, j] = total
        out[i, m] = stack[0, 0]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula over features that climbs a measure by genetic programming.

    Parameters
    ----------
    population, n_generations, tournament, crossover, elites, parsimony
        See `rankwright.solvers.evolve.Evolve`; the best generation on valid is kept.
    max_nodes, max_depth, max_features
        The largest formula: its nodes, the operations on its longest way, its features.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Weights of queries count as they do in the measure, which knows no weights of documents.
    """

    population: int = 400
    n_generations: int = 30
    tournament: int = 7
    crossover: float = 0.6
    elites: int = 2
    parsimony: float = 1e-4
    max_nodes: int = 31
    max_depth: int = 8
    max_features: int = 10
    missing: str | None = None

    def fit(
        self,
        metric: Metric,
        data: RankingData,
        *,
        watch: Watch,
        start: FittedExpression | None = None,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> FittedExpression:
        """Breed formulas for a high mean of ``metric``, with that of ``start`` among the first."""
        self._check()
        evolve = Evolve(**{field.name: getattr(self, field.name) for field in fields(Evolve)})
        fill = fill_values(data.X, self.missing)
        whole = replace(data, X=filled(data.X, fill, "formula"))
        _, ordered = in_content_order(whole, n_threads=n_threads)
        train = _Generation(metric, ordered, Journal(watch), n_threads)
        valid = None if watch.valid is None else filled(watch.valid.X, fill, "formula")
        tried: list[FittedExpression] = []

        def show(t: int, best: Formula, fitness: float) -> bool:
            model = _fitted(best, train.means, fill, data)
            tried.append(model)
            on_train = model.scores(whole.X, n_threads=n_threads) if watch.wants_train else None
            on_valid = None if valid is None else model.scores(valid, n_threads=n_threads)
            return watch.seen(t, -fitness, on_train, on_valid)

        species = Breeding(train.varied, self.max_nodes, self.max_depth, self.max_features)
        known = () if start is None else (start.formula,)
        try:
            evolve.run(species, train.fitness, show, start=known, seed=seed)
        except KeyboardInterrupt:  # the best so far is kept
            if not tried:
                raise
            watch.interrupted = True
        return tried[min(watch.best(), len(tried)) - 1]

    def _check(self) -> None:
        for name in ("max_nodes", "max_features"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, not {getattr(self, name)}.")
        if self.max_depth < 1:
            raise UsageError(f"max_depth must be 1 or more, not {self.max_depth}.")
        if self.max_features > _MOST_FEATURES:
            raise UsageError(
                f"max_features must be at most {_MOST_FEATURES}, not {self.max_features}; "
                "a longer formula cannot be explained."
            )

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedExpression:
        """Build the fitted model from its own arrays and texts."""
        used = columns_of(from_postfix(arrays["code"], arrays["value"]))
        if len(arrays["means"]) != len(used) or any(column >= n_features for column in used):
            raise UsageError("the formula does not go with its features.")
        return FittedExpression(
            code=arrays["code"],
            value=arrays["value"],
            means=arrays["means"],
            fill=arrays.get("fill"),
            n_features=n_features,
            written=texts["formula"],
        )


@dataclass(frozen=True, eq=False)
class FittedExpression:
    """A formula, as postfix code and as text.

    Attributes
    ----------
    code, value
        The nodes, as `rankwright.models.formula.postfix` writes them.
    means
        Mean on the training data of each feature that the formula uses, in order of column.
    fill
        What stands for a missing value of each feature, or None.
    written : str
        The formula, with the names of the features and numbers to six digits.
    """

    code: AnyArray
    value: F64
    means: F64
    fill: F64 | None
    n_features: int
    written: str

    @property
    def formula(self) -> Formula:
        """The formula as a tree."""
        return from_postfix(self.code, self.value)

    def describe(self, names: Sequence[str]) -> list[str]:
        """Return a heading and the formula with the ``names`` of features."""
        formula = self.formula
        what = f"a formula of {size(formula)} nodes over {len(self.means)} features"
        lines = [what, f"score = {text(formula, names)}"]
        if any(part[0] == "/" for part in parts_of(formula)):
            lines.append("a quotient is 1 where its divisor is 0")
        return lines

    def scores(self, X: FloatMatrix, *, n_threads: int | None = None) -> F64:
        """Return the value of the formula for each row."""
        code, columns, _ = self._on(X)
        out = np.empty((1, X.shape[0]))
        starts = np.array([0, len(code)])
        bounds = _bounds(X.shape[0], _ROWS)
        map_ranges(
            _evaluate_all, bounds, starts, code, self.value, columns, out, n_threads=n_threads
        )
        scores: F64 = out[0]
        return scores

    def contributions(self, X: FloatMatrix) -> F64:
        """Return Shapley values: one column per feature, and the score of the means last."""
        code, columns, used = self._on(X)
        m = len(used)
        share = np.array([1.0 / (m * math.comb(m - 1, s)) for s in range(m)])
        found = np.empty((X.shape[0], m + 1))
        bounds = _bounds(X.shape[0], _BLOCK)
        map_ranges(_shapley, bounds, code, self.value, columns, self.means, share, found)
        out = np.zeros((X.shape[0], self.n_features + 1))
        out[:, [*used, -1]] = found
        return out

    def arrays(self) -> dict[str, AnyArray]:
        """Return the postfix code, and the means and fill values of features."""
        arrays = {"code": self.code, "value": self.value, "means": self.means}
        return arrays if self.fill is None else {**arrays, "fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return the formula."""
        return {"formula": self.written}

    def _on(self, X: FloatMatrix) -> tuple[AnyArray, F64, list[int]]:
        """Return the code over the features used, their columns, and which they are."""
        used = columns_of(self.formula)
        code = self.code.copy()
        code[code >= 0] = np.searchsorted(used, code[code >= 0])
        return code, _columns(filled(X, self.fill, "formula"), used), used


class _Generation:
    """Training data by columns, and the fitness of formulas on it."""

    def __init__(
        self, metric: Metric, data: RankingData, journal: Journal, n_threads: int | None
    ) -> None:
        assert isinstance(metric, base.Metric)
        self._journal = journal
        ties = "mean" if metric.max_per_group is None else "worst"
        self._measure = replace(metric, ties=ties)
        self._evaluator = Evaluator(data, self._measure, n_threads=n_threads)
        self._columns = _columns(data.X, list(range(data.n_features)))
        self._n_threads = n_threads
        self._known: dict[Formula, float] = {}
        self.means: F64 = self._columns.mean(axis=1)
        spread = np.ptp(self._columns, axis=1)
        self.varied: list[int] = np.flatnonzero((spread > 0.0) | ~(spread > 0.0).any()).tolist()

    def fitness(self, formulas: Sequence[Formula]) -> F64:
        """Return the mean of the measure for each formula, its negative where that falls."""
        unknown = [one for one in dict.fromkeys(formulas) if one not in self._known]
        sizes = np.array([size(one) for one in unknown])
        (found,) = self._journal.recall(lambda: (self._means(unknown),), sizes)
        self._known.update(zip(unknown, found.tolist(), strict=True))
        return np.array([self._known[one] for one in formulas])

    def _means(self, formulas: Sequence[Formula]) -> list[float]:
        at_once = max(1, _AT_ONCE // max(1, self._columns.shape[1]))
        return [
            self._mean(scores)
            for first in range(0, len(formulas), at_once)
            for scores in self._scores(formulas[first : first + at_once])
        ]

    def _mean(self, scores: F64) -> float:
        (mean,) = self._evaluator.means(scores).values()
        if math.isnan(mean):  # no query counts
            return 0.0
        return mean if self._measure.maximise else -mean

    def _scores(self, formulas: Sequence[Formula]) -> F64:
        codes, values = zip(*map(postfix, formulas), strict=True)
        starts = np.concatenate(([0], np.cumsum([len(code) for code in codes])))
        out = np.empty((len(formulas), self._columns.shape[1]))
        made = (starts, np.concatenate(codes), np.concatenate(values), self._columns, out)
        bounds = _bounds(out.shape[1], _ROWS)
        map_ranges(_evaluate_all, bounds, *made, n_threads=self._n_threads)
        return out


def _fitted(tree: Formula, means: F64, fill: F64 | None, data: RankingData) -> FittedExpression:
    code, value = postfix(tree)
    written = text(tree, data.feature_names)
    return FittedExpression(code, value, means[columns_of(tree)], fill, data.n_features, written)


def _columns(X: FloatMatrix, used: Sequence[int]) -> F64:
    """Return some columns of X as rows of float64."""
    part = X[:, used]
    dense = part.toarray() if sparse.issparse(part) else part
    return np.ascontiguousarray(dense.T, np.float64)


def _bounds(n: int, step: int) -> AnyArray:
    return np.append(np.arange(0, n, step), n).astype(np.int64)

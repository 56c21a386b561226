"""A loss written as a plain function of one query's scores and grades.

    def squared(scores, grades):
        return 0.5 * ((scores - grades) ** 2).sum(), scores - grades

    rankwright.Ranker(loss=rankwright.losses.from_function(squared), model="trees")

The function returns the value and the gradient, and may return a curvature (a diagonal of the
Hessian, or an upper bound of it) as third; without one, a constant stands for it. It is called once
per query and iteration, in Python: a kernel of one's own (docs/write-your-own.md) is faster.

As for every loss, the value is the weighted sum over queries, and a query whose documents all have
one grade contributes nothing. A file that calls such a loss ``loss`` brings it to the command line:
``rankwright train ranker --set loss=FILE.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.parameters import (
    Part,
    Positive,
    check_parameters,
    params_of,
    unknown_parameter,
)
from rankwright.core.types import F64, Loss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.old_base import NOTHING, check_lengths, check_queries, order_weight
from rankwright.registry import resolve

Function = Callable[[F64, F64], Any]
_STEP = 1e-6  # of finite differences
_CLOSE = 1e-4


@dataclass(frozen=True, slots=True, repr=False)
class FunctionLoss(Part):
    """The loss that `from_function` makes; see there for the parameters."""

    function: Function
    name: str = ""
    curvature: Positive = 1.0
    smooth: bool = True
    convex: bool = False
    shift_invariant: bool = False
    check: bool = False

    def __repr__(self) -> str:
        return f"from_function({self.name or 'function'})"

    @property
    def traits(self) -> Traits:
        """What the caller says of the function, and gradients of single queries."""
        return Traits(smooth=self.smooth, convex=self.convex, shift_invariant=self.shift_invariant)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundFunction:  # noqa: ARG002
        """Prepare the loss for one data set."""
        if not callable(self.function):
            raise UsageError(f"a loss is made from a function, not from {self.function!r}.")
        check_parameters(self)
        if data.sample_weight is not None:
            raise UsageError(
                f"loss '{self.name or 'function'}' is a function of scores and grades and takes no "
                "weights of documents; leave sample_weight out, or use query_weight."
            )
        return BoundFunction(self, data)


def from_function(
    function: Function,
    *,
    name: str = "",
    curvature: Positive = 1.0,
    smooth: bool = True,
    convex: bool = False,
    shift_invariant: bool = False,
    check: bool = False,
) -> FunctionLoss:
    """Return a loss made of ``function(scores, grades)``, one query at a time, in plain NumPy.

    It works with every model and with every solver that needs no Hessian products. A model trained
    with it can be saved, loaded and used for prediction; the file holds the function's name alone.

    Parameters
    ----------
    function : callable
        Takes the scores and the grades of one query and returns its loss and the gradient in the
        scores; a third value, where there is one, is a curvature for each document.
    name : str
        What messages call the loss; by default the function's own name.
    curvature : float
        Stands for the curvature where the function returns none: trees take Newton steps with it.
    smooth, convex, shift_invariant : bool
        What the function is, which decides on solvers and intercepts. A loss that is not smooth is
        minimised by ``online`` unless another solver is given.
    check : bool
        Compare the gradient with finite differences on the first queries of every data set, and
        raise where they differ.

    Examples
    --------
    >>> import numpy as np
    >>> squared = from_function(lambda s, y: (0.5 * float(((s - y) ** 2).sum()), s - y))
    >>> squared.traits.queries
    True
    """
    own = name or getattr(function, "__name__", type(function).__name__)
    return FunctionLoss(function, own, curvature, smooth, convex, shift_invariant, check)


def from_file(path: str | Path) -> Loss:
    """Return what a Python file calls ``loss``, as ``--set loss=FILE.py`` does.

    The file is run, so take one that you trust. No model file ever names one to run.

    Parameters
    ----------
    path : str or path
        A file that ends in ``.py`` and defines ``loss``: what `from_function` returns, or an object
        of a class of your own. It may import modules that lie beside it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> lines = [
    ...     "from rankwright.losses import from_function",
    ...     "def squared(s, y): return 0.5 * ((s - y) ** 2).sum(), s - y",
    ...     "loss = from_function(squared)",
    ... ]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "squares.py"
    ...     with file.open("w") as written:
    ...         print(*lines, sep=chr(10), file=written)
    ...     from_file(file)
    from_function(squared)
    """
    file = Path(path).resolve()
    if file.suffix != ".py" or not file.is_file():
        raise UsageError(f"there is no Python file {path} to take a loss from.")
    made = _run_file(file).get("loss")
    if made is None:
        raise UsageError(
            f"{path} defines no 'loss'; end it with loss = rankwright.losses.from_function(...)."
        )
    if isinstance(made, type) or not (hasattr(made, "traits") and hasattr(made, "bind")):
        what = f"the class {made.__name__}" if isinstance(made, type) else repr(made)
        raise UsageError(
            f"'loss' of {path} is {what}, and not a loss; of a function "
            "rankwright.losses.from_function(...) makes one, of a class a call."
        )
    found: Loss = made
    return found


def _run_file(file: Path) -> dict[str, Any]:
    """Run a file as a module that is forgotten again, so that other processes are sent its code."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module, before = module_from_spec(spec), sys.modules.get(file.stem)
    sys.path.insert(0, str(file.parent))
    sys.modules[file.stem] = module  # dataclasses look up their module while they are made
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file.name} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
        if before is None:
            del sys.modules[file.stem]
        else:
            sys.modules[file.stem] = before
    return vars(module)


class BoundFunction:
    """A function on one data set."""

    def __init__(self, loss: FunctionLoss, data: RankingData) -> None:
        self._loss, self._data = loss, data
        self._weight = order_weight(data)
        self._per_query = np.zeros(data.n_queries)
        if loss.check:
            self._check_gradient()

    @property
    def per_query(self) -> F64:
        """The weighted loss of each query at the last scores."""
        return self._per_query

    def value(self, s: F64) -> float:
        """Return the weighted sum over queries."""
        check_lengths(self._data.n_documents, s)
        return self._run(0, self._data.n_queries, s, NOTHING, NOTHING)

    def grad(self, s: F64, out: F64) -> float:
        """Write the gradient to ``out`` and return the value."""
        check_lengths(self._data.n_documents, s, out)
        return self._run(0, self._data.n_queries, s, out, NOTHING)

    def grad_curv(self, s: F64, out: F64, curv: F64) -> float:
        """Write the gradient and the curvature, and return the value."""
        check_lengths(self._data.n_documents, s, out, curv)
        return self._run(0, self._data.n_queries, s, out, curv)

    def grad_queries(self, lo: int, hi: int, s: F64, out: F64) -> float:
        """As ``grad``, for the queries lo:hi alone."""
        check_lengths(self._data.n_documents, s, out)
        check_queries(lo, hi, self._data.n_queries)
        return self._run(lo, hi, s, out, NOTHING)

    def _run(self, lo: int, hi: int, s: F64, grad: F64, curv: F64) -> float:
        total = 0.0
        indptr, y = self._data.indptr, self._data.y
        for q in range(lo, hi):
            rows, weight = slice(indptr[q], indptr[q + 1]), self._weight[q]
            self._per_query[q] = 0.0
            if weight == 0.0:
                for array in (grad, curv):
                    if len(array):
                        array[rows] = 0.0
                continue
            value, gradient, curvature = self._ask(q, s[rows].copy(), y[rows].copy())
            self._per_query[q] = weight * value
            total += self._per_query[q]
            if len(grad):
                grad[rows] = weight * gradient
            if len(curv):
                curv[rows] = weight * curvature
        return total

    def _ask(self, q: int, scores: F64, grades: F64) -> tuple[float, F64, F64 | float]:
        """Return value, gradient and curvature of one query, checked."""
        name, size = self._loss.name, len(scores)
        answer = self._loss.function(scores, grades)
        if not isinstance(answer, tuple | list) or len(answer) not in (2, 3):
            raise UsageError(
                f"{name} must return its value and gradient, and may return a curvature; "
                f"it returned {type(answer).__name__}."
            )
        arrays = [np.asarray(part, np.float64) for part in answer]
        if arrays[0].size != 1 or any(part.shape != (size,) for part in arrays[1:]):
            shapes = ", ".join(str(part.shape) for part in arrays)
            raise UsageError(
                f"{name} must return a number and arrays of {size} for query "
                f"{self._data.qid[q]} of {size} documents; the shapes are {shapes}."
            )
        if not all(np.isfinite(part).all() for part in arrays):
            raise DataError(
                f"{name} returned a number that is not finite for query {self._data.qid[q]}."
            )
        curvature: F64 | float = arrays[2] if len(arrays) == 3 else self._loss.curvature
        return float(arrays[0].reshape(())), arrays[1], curvature

    def _check_gradient(self, queries: int = 3) -> None:
        """Raise where the gradient is not that of the value, at random scores."""
        rng = np.random.default_rng(0)
        for q in np.flatnonzero(self._weight)[:queries].tolist():
            grades = self._data.y[self._data.indptr[q] : self._data.indptr[q + 1]]
            scores = rng.normal(size=len(grades))
            gradient = self._ask(q, scores.copy(), grades.copy())[1]
            for i in range(len(scores)):
                ends = []
                for sign in (1.0, -1.0):
                    moved = scores.copy()
                    moved[i] += sign * _STEP
                    ends.append(self._ask(q, moved, grades.copy())[0])
                found = (ends[0] - ends[1]) / (2.0 * _STEP)
                if abs(found - gradient[i]) > _CLOSE * max(1.0, abs(found), abs(gradient[i])):
                    raise UsageError(
                        f"the gradient of {self._loss.name} is not that of its value: for document "
                        f"{i} of query {self._data.qid[q]} it is {gradient[i]:.6g}, and finite "
                        f"differences give {found:.6g}."
                    )


# --- losses by name --------------------------------------------------------------------------
#
# Losses by their names.


def loss(name: str, **params: Any) -> Loss:
    """Return the loss called ``name``, such as ``listmle``, with the given parameters.

    Examples
    --------
    >>> loss("lambdarank", metric="ndcg@10").truncation
    30
    """
    kind = resolve("losses", name)
    known = params_of(kind())
    for param in params:
        if param not in known:
            raise unknown_parameter(f"loss '{name}'", param, known)
    made: Loss = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
    return made

"""Losses from a plain function of the scores and grades of one query.

    def squared(scores, grades):
        return 0.5 * ((scores - grades) ** 2).sum(), scores - grades

    rankwright.Ranker(loss=rankwright.losses.from_function(squared), model="trees")

The function returns the value, the gradient and optionally a curvature (a diagonal of the Hessian,
or an upper bound). It is called once per query and iteration, in Python and in one thread; a kernel
(docs/write-your-own.md) is faster.

A file that defines ``loss`` can be used on the command line: ``rankwright train ranker
--set loss=FILE.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.parameters import Positive, params_of, unknown_parameter
from rankwright.core.types import F64, I64, AnyArray, Loss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.base import BoundKernel, KernelLoss
from rankwright.registry import resolve

Function = Callable[[F64, F64], Any]


class BoundFunction(BoundKernel):
    """A function on one data set."""

    def __init__(self, loss: FunctionLoss, data: RankingData, *, n_jobs: int | None = None) -> None:  # noqa: ARG002
        if data.sample_weight is not None:
            raise UsageError(
                f"loss '{loss.name or 'function'}' is a function of scores and grades and takes no "
                "weights of documents; leave sample_weight out, or use query_weight."
            )
        super().__init__(loss, data, n_jobs=1)

    def on_device(self, torch: Any) -> Any:  # noqa: ARG002
        """Raise: a Python function does not run on a GPU."""
        raise IncompatibleError("it is not computed by kernels.")


@dataclass(frozen=True, slots=True, repr=False)
class FunctionLoss(KernelLoss):
    """A loss that `from_function` returns; see there for the parameters."""

    function: Function
    name: str = ""
    curvature: Positive = 1.0
    smooth: bool = True
    convex: bool = False
    shift_invariant: bool = False

    bound_class = BoundFunction

    def __repr__(self) -> str:
        return f"from_function({self.name or 'function'})"

    @property
    def traits(self) -> Traits:
        """Properties of the function, as declared."""
        return Traits(smooth=self.smooth, convex=self.convex, shift_invariant=self.shift_invariant)

    @property
    def run(self) -> Callable[..., None]:
        """Call the function for each query."""
        return partial(_call_function, self)

    def check(self) -> None:
        """Raise unless the loss has a function."""
        if not callable(self.function):
            raise UsageError(f"from_function needs a function, got {self.function!r}.")

    def terms(self, data: RankingData) -> tuple[F64, AnyArray]:
        """Return the grades, and the ids of queries for messages."""
        return data.y, data.qid


def from_function(
    function: Function,
    *,
    name: str = "",
    curvature: Positive = 1.0,
    smooth: bool = True,
    convex: bool = False,
    shift_invariant: bool = False,
) -> FunctionLoss:
    """Return a loss computed by ``function(scores, grades)``, for one query at a time.

    It works with every model and solver. A model trained with it can be saved, loaded and used for
    prediction; the file has only the name of the function. `rankwright.testing.check_loss` compares
    the gradient with finite differences and checks the declared properties.

    Parameters
    ----------
    function : callable
        Takes the scores and the grades of one query and returns its loss, the gradient in the
        scores and optionally a curvature of each document.
    name : str
        Name of the loss in messages; the name of the function by default.
    curvature : float
        Curvature of each document if the function returns none, for the Newton steps of trees.
    smooth, convex, shift_invariant : bool
        Properties of the function, which determine solvers and intercepts. A loss that is not
        smooth is minimised by ``online`` unless another solver is given.

    Examples
    --------
    >>> import numpy as np
    >>> squared = from_function(lambda s, y: (0.5 * float(((s - y) ** 2).sum()), s - y))
    >>> squared([1.0, 2.0], [0, 1])
    1.0
    """
    name = name or getattr(function, "__name__", type(function).__name__)
    return FunctionLoss(function, name, curvature, smooth, convex, shift_invariant)


def _call_function(
    loss: FunctionLoss, queries: I64, indptr: I64, s: F64, y: F64, qid: AnyArray, *out: F64
) -> None:
    """Write value, gradient and curvature of the queries, as a kernel does."""
    value, grad, curv = out
    for q in queries:
        rows = slice(indptr[q], indptr[q + 1])
        size, place = rows.stop - rows.start, f"query {qid[q]}"
        result = loss.function(s[rows].copy(), y[rows].copy())
        if not isinstance(result, tuple | list) or len(result) not in (2, 3):
            raise UsageError(
                f"{loss.name} must return its value and gradient, and may return a curvature; "
                f"it returned {type(result).__name__}."
            )
        arrays = [np.asarray(part, np.float64) for part in result]
        if arrays[0].size != 1 or any(part.shape != (size,) for part in arrays[1:]):
            shapes = ", ".join(str(part.shape) for part in arrays)
            raise UsageError(
                f"{loss.name} must return a number and arrays of {size} for {place} of {size} "
                f"documents; the shapes are {shapes}."
            )
        if not all(np.isfinite(part).all() for part in arrays):
            raise DataError(f"{loss.name} returned a number that is not finite for {place}.")
        value[q] = arrays[0].item()
        grad[rows] = arrays[1]
        curv[rows] = arrays[2] if len(arrays) == 3 else loss.curvature


def from_file(path: str | Path) -> Loss:
    """Return the object ``loss`` of a Python file, as ``--set loss=FILE.py`` does.

    The file is executed, so use only files that you trust. Model files never execute one.

    Parameters
    ----------
    path : str or path
        A file that ends in ``.py`` and defines ``loss``: the result of `from_function`, or an
        object of your own class. It can import modules in the same folder.

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
        raise UsageError(f"cannot read a loss from {path}: it must be a Python file.")
    loss: Loss | None = _run_file(file).get("loss")
    if loss is None:
        raise UsageError(
            f"{path} defines no 'loss'; end it with loss = rankwright.losses.from_function(...)."
        )
    if isinstance(loss, type) or not (hasattr(loss, "traits") and hasattr(loss, "bind")):
        shown = f"the class {loss.__name__}" if isinstance(loss, type) else repr(loss)
        raise UsageError(
            f"'loss' of {path} is {shown}, not a loss. Make a loss from a function with "
            "rankwright.losses.from_function(...), and from a class by calling it."
        )
    return loss


def _run_file(file: Path) -> dict[str, Any]:
    """Execute a file as a module without registering it, so that pickle sends its code."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module, before = module_from_spec(spec), sys.modules.get(file.stem)
    sys.path.insert(0, str(file.parent))
    sys.modules[file.stem] = module  # dataclasses look up their module when they are defined
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


def loss(name: str, **params: Any) -> Loss:
    """Return the loss with a registered name, such as ``listmle``, and these parameters.

    Examples
    --------
    >>> loss("lambdarank", metric="ndcg@10").truncation
    30
    """
    kind = resolve("losses", name)
    names = params_of(kind())
    for param in params:
        if param not in names:
            raise unknown_parameter(f"loss '{name}'", param, names)
    made: Loss = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
    return made

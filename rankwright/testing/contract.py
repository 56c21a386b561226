"""Run the checks of a contract; an error names the part and the property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import ContractError as ContractError  # public in rankwright.testing

Check = Callable[[Any], None]
"""A function of a part that raises an error; the first line of its docstring is the property."""


def run_checks(what: str, part: Any, checks: Iterable[Check]) -> None:
    """Run all checks on ``part``; raise a `ContractError` for the first failure.

    Parameters
    ----------
    what : str
        Name of the part in messages, such as ``loss 'listnet'``.
    """
    for check in checks:
        contract = (check.__doc__ or check.__name__).partition("\n")[0].rstrip(".")
        try:
            check(part)
        except ContractError as error:
            raise ContractError(f"{what} breaks the contract '{contract}': {error}") from None
        except Exception as error:
            raise ContractError(
                f"{what} breaks the contract '{contract}': {type(error).__name__}: {error}"
            ) from error


def require(holds: Any, sentence: str) -> None:
    """Raise `ContractError` with ``sentence`` unless ``holds``."""
    if not holds:
        raise ContractError(sentence)


def require_close(
    actual: Any,
    expected: Any,
    names: tuple[str, str],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Raise a `ContractError` with the first difference unless numbers or arrays are close.

    Parameters
    ----------
    names : pair of str
        Names of the actual and the expected value in the message.
    """
    a, b = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    require(a.shape == b.shape, f"{names[0]} has the shape {a.shape}, {names[1]} {b.shape}.")
    differs = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        where = f" at row {row}" if a.ndim else ""
        raise ContractError(
            f"{names[0]} is {a.ravel()[row]:.9g}{where}, and {names[1]} is {b.ravel()[row]:.9g}."
        )


def require_equal(actual: Any, expected: Any, names: tuple[str, str]) -> None:
    """Raise `ContractError` unless two numbers or arrays are equal to the last bit."""
    require_close(actual, expected, names)


def graded(grades: Sequence[Sequence[float]], **arrays: Any) -> RankingData:
    """Return data whose queries have these lists of grades; the only feature is 0."""
    y = np.array([grade for query in grades for grade in query], np.float64)
    sizes = [len(query) for query in grades]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **arrays)


def shuffled_within(data: RankingData, seed: int) -> AnyArray:
    """Return row numbers that shuffle the documents of each query."""
    rng = np.random.default_rng(seed)
    spans = zip(data.indptr[:-1], data.indptr[1:], strict=True)
    return np.concatenate([rng.permutation(np.arange(a, b)) for a, b in spans])

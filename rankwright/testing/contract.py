"""Running the properties of a contract: a failure is a sentence that names part and property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import ContractError as ContractError  # public in rankwright.testing

Check = Callable[[Any], None]
"""A property: a function of the part, whose docstring opens with what is promised."""


def run_checks(what: str, part: Any, checks: Iterable[Check]) -> None:
    """Run every check on ``part``; the first that fails is a `ContractError`.

    Parameters
    ----------
    what : str
        What messages call the part, such as ``loss 'listnet'``.
    """
    for check in checks:
        promise = (check.__doc__ or check.__name__).partition("\n")[0].rstrip(".")
        try:
            check(part)
        except ContractError as failed:
            raise ContractError(f"{what} breaks the contract '{promise}': {failed}") from None
        except Exception as error:
            raise ContractError(
                f"{what} breaks the contract '{promise}': {type(error).__name__}: {error}"
            ) from error


def require(holds: Any, sentence: str) -> None:
    """Raise `ContractError` with ``sentence`` unless ``holds``."""
    if not holds:
        raise ContractError(sentence)


def require_close(
    found: Any,
    expected: Any,
    names: tuple[str, str],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Raise `ContractError` unless two numbers or arrays agree, naming the first that differs.

    Parameters
    ----------
    names : pair of str
        What was found and what was expected, in the words of the message.
    """
    a, b = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    require(a.shape == b.shape, f"{names[0]} has the shape {a.shape}, {names[1]} {b.shape}.")
    apart = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if apart.any():
        place = int(np.flatnonzero(apart)[0])
        where = f" at row {place}" if a.ndim else ""
        raise ContractError(
            f"{names[0]} is {a.ravel()[place]:.9g}{where}, and {names[1]} is "
            f"{b.ravel()[place]:.9g}."
        )


def require_equal(found: Any, expected: Any, names: tuple[str, str]) -> None:
    """Raise `ContractError` unless two numbers or arrays agree to the last bit."""
    require_close(found, expected, names)


def graded(grades: Sequence[Sequence[float]], **arrays: Any) -> RankingData:
    """Return data with these lists of grades as queries, and one feature that is 0."""
    y = np.array([grade for query in grades for grade in query], np.float64)
    sizes = [len(query) for query in grades]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **arrays)


def shuffled_within(data: RankingData, seed: int) -> AnyArray:
    """Return row numbers that shuffle the documents of each query."""
    rng = np.random.default_rng(seed)
    spans = zip(data.indptr[:-1], data.indptr[1:], strict=True)
    return np.concatenate([rng.permutation(np.arange(a, b)) for a, b in spans])

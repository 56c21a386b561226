"""Checks of arrays that come from outside, before kernels, which check no bounds, read them.

What a file or a caller brings is declared once, as `ArraySpec`s, and checked by `check_arrays`;
`check_csr` does the same for sparse matrices. Each value is read once, in blocks that stay in the
processor's cache. A refusal is one sentence with the source, the array and the first bad value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.errors import DataError

HIGHEST_GRADE = 2.0**53
"""The highest grade: above it sums of squares overflow, and doubles no longer hold all integers."""

HIGHEST_EXP2_GRADE = 31
"""The highest grade with a gain of 2^g - 1 that makes sense; LightGBM and XGBoost refuse higher."""

_BLOCK = 1 << 16  # values that are looked at twice while they are in the cache
_LAST_LETTER = 0x10FFFF  # of Unicode
_SURROGATES = 0xD800, 0xDFFF  # halves of letters, which no file can hold


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """What an array must be.

    Attributes
    ----------
    name : str
    dtype : str
        Names of types, or letters of their kinds, separated by blanks: ``"float32 float64"``,
        ``"i u"``.
    shape : tuple of int or str
        A length, or the name of a dimension, perhaps with an addend: ``("queries+1",)``. Arrays
        that share a dimension must agree on its length.
    low, high : float, int or None
        The least and the greatest value allowed.
    below : str or None
        A dimension that the values are numbers in, from 0 to one below its length.
    offsets : str or None
        A dimension that the values cut into parts: from 0, never falling, up to its length.
    finite : bool
        Whether NaN and infinity are refused; False leaves values unread if nothing else is asked.
    monotone : bool
        Whether values may not fall.
    optional : bool
        Whether the array may be absent.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    low: float | None = None
    high: float | None = None
    below: str | None = None
    offsets: str | None = None
    finite: bool = True
    monotone: bool = False
    optional: bool = False


def check_arrays(
    specs: Iterable[ArraySpec],
    arrays: Mapping[str, AnyArray],
    where: str = "",
    **lengths: int,
) -> dict[str, int]:
    """Raise unless ``arrays`` are what ``specs`` say; return the length of each dimension.

    Parameters
    ----------
    specs
        Of all arrays that may be there; another is refused.
    arrays
        The arrays by name.
    where
        What an error names first: a file, or part of one.
    **lengths
        Dimensions that are known before: ``features=136``.
    """
    specs = tuple(specs)
    said = f"{where}: " if where else ""
    known = {spec.name for spec in specs}
    for name in arrays:
        if name not in known:
            raise DataError(f"{said}there is an array '{name}', which is not expected.")
    present = []
    for spec in specs:
        if spec.name in arrays:
            present.append(spec)
        elif not spec.optional:
            raise DataError(f"{said}the array '{spec.name}' is missing.")
    for spec in present:
        _check_dtype(spec, arrays[spec.name], said)
        _check_shape(spec, arrays[spec.name], lengths, said)
    for spec in present:
        _check_values(spec, arrays[spec.name], lengths, said)
    return lengths


def check_csr(X: Any, where: str = "X") -> None:
    """Raise unless the arrays of ``X`` make a CSR matrix: lengths, row offsets, column numbers.

    As SciPy's ``check_format(full_check=True)``, in one pass and without changing X.
    """
    starts, indices, values = X.indptr, X.indices, X.data
    for name, array in (("indptr", starts), ("indices", indices), ("data", values)):
        if array.ndim != 1:
            raise DataError(f"{where} is no CSR matrix: its {name} has the shape {array.shape}.")
        if name != "data" and array.dtype.kind != "i":
            raise DataError(f"{where} is no CSR matrix: its {name} has the type {array.dtype}.")
    if len(starts) != X.shape[0] + 1 or len(indices) != len(values):
        raise DataError(
            f"{where} is no CSR matrix: it has {len(starts)} row offsets for {X.shape[0]} rows, "
            f"and {len(indices)} column numbers for {len(values)} values."
        )
    check_offsets(
        starts, min(int(starts[-1]), len(values)), f"{where} is no CSR matrix: its indptr"
    )
    low, high = extremes(indices[: starts[-1]])
    if low < 0 or high >= X.shape[1]:
        raise _bad_column(X, where)


def check_offsets(offsets: AnyArray, end: int, what: str) -> None:
    """Raise unless ``offsets`` begin with 0, never fall and end with ``end``."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end:
        ends = "is empty" if not len(offsets) else f"goes from {offsets[0]} to {offsets[-1]}"
        raise DataError(f"{what} {ends}; it must go from 0 to {end}.")
    at = first_fall(offsets)
    if at is not None:
        raise DataError(
            f"{what} falls from {offsets[at - 1]} to {offsets[at]} at number {at}; "
            "offsets never fall."
        )


def extremes(values: AnyArray) -> tuple[Any, Any]:
    """Return the least and the greatest value, both NaN if one is; of none (0, -1)."""
    if not values.size:
        return 0, -1
    if values.size <= _BLOCK:
        return values.min().item(), values.max().item()
    found = [(block.min(), block.max()) for block in _blocks(values)]
    lows, highs = np.array([low for low, _ in found]), np.array([high for _, high in found])
    return lows.min().item(), highs.max().item()


def first_fall(values: AnyArray) -> int | None:
    """Return the number of the first value below the one before it (or NaN), None without any."""
    for start in range(1, len(values), _BLOCK):
        stop = min(start + _BLOCK, len(values))
        rises = values[start:stop] >= values[start - 1 : stop - 1]
        if not rises.all():
            return start + int(np.flatnonzero(~rises)[0])
    return None


# --- one array -------------------------------------------------------------------------------


def _check_dtype(spec: ArraySpec, array: AnyArray, said: str) -> None:
    for wanted in spec.dtype.split():
        if array.dtype.kind == wanted if len(wanted) == 1 else array.dtype == np.dtype(wanted):
            return
    raise DataError(
        f"{said}the array '{spec.name}' has the type {array.dtype}; "
        f"{' or '.join(_KINDS.get(one, one) for one in spec.dtype.split())} is expected."
    )


_KINDS = {
    "b": "booleans",
    "i": "integers",
    "u": "unsigned integers",
    "f": "floats",
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
}


def _check_shape(spec: ArraySpec, array: AnyArray, lengths: dict[str, int], said: str) -> None:
    fits = array.ndim == len(spec.shape)
    for asked, length in zip(spec.shape, array.shape, strict=False):
        name, _, addend = str(asked).partition("+")
        if isinstance(asked, int):
            fits &= length == asked
        elif length < int(addend or 0):
            fits = False
        else:
            fits &= lengths.setdefault(name, length - int(addend or 0)) == length - int(addend or 0)
    if not fits:
        expected = ", ".join(str(one) for one in spec.shape)
        agreed = ", ".join(
            f"{name} = {length}"
            for name, length in lengths.items()
            if any(str(one).partition("+")[0] == name for one in spec.shape)
        )
        raise DataError(
            f"{said}the array '{spec.name}' has the shape {array.shape}; ({expected}) is expected"
            f"{f' with {agreed}' if agreed else ''}."
        )


def _check_values(spec: ArraySpec, array: AnyArray, lengths: Mapping[str, int], said: str) -> None:
    low, high = spec.low, spec.high
    if spec.below is not None:
        low, high = 0, lengths[spec.below] - 1
    what = f"{said}the array '{spec.name}'"
    if spec.offsets is not None:
        check_offsets(array, lengths[spec.offsets], what)
        return
    if array.dtype.kind == "U" and array.size:
        _check_letters(array, what)
    numbers = array.dtype.kind in "iuf"
    if numbers and array.size and (spec.finite or low is not None or high is not None):
        least, greatest = extremes(array)
        finite = math.isfinite(least) and math.isfinite(greatest)
        if (
            (spec.finite and not finite)
            or (low is not None and not least >= low)
            or (high is not None and not greatest <= high)
        ):
            raise _bad_value(what, array, low, high, finite=spec.finite)
    if spec.monotone and (at := first_fall(array)) is not None:
        raise DataError(f"{what} falls at number {at}, to {array[at]}; it must not.")


def _check_letters(array: AnyArray, what: str) -> None:
    """Raise unless every number in an array of text is a letter, which Python asks for later."""
    letters = np.ascontiguousarray(array).view(np.uint32)
    if extremes(letters)[1] < _SURROGATES[0]:
        return
    bad = (letters > _LAST_LETTER) | ((letters >= _SURROGATES[0]) & (letters <= _SURROGATES[1]))
    if bad.any():
        at = int(np.flatnonzero(bad)[0]) * 4 // array.dtype.itemsize
        raise DataError(f"{what} has a text at number {at} that is not Unicode.")


def _bad_value(
    what: str, array: AnyArray, low: float | None, high: float | None, *, finite: bool
) -> DataError:
    """Return the error that names the first value that is out of range or not finite."""
    flat = array.ravel()
    bad = ~np.isfinite(flat) if finite else np.zeros(len(flat), bool)
    if low is not None:
        bad |= ~(flat >= low)
    if high is not None:
        bad |= ~(flat <= high)
    at = int(np.flatnonzero(bad)[0])
    wanted = ["finite"] if finite and array.dtype.kind == "f" else []
    wanted += [] if low is None else [f"{low} or more"]
    wanted += [] if high is None else [f"{high} or less"]
    return DataError(
        f"{what} has {flat[at]} at number {at}; its values must be {' and '.join(wanted)}."
    )


def without_prefix(prefix: str, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays or texts whose names have a prefix, by the remainder of their names."""
    return {k.removeprefix(prefix): v for k, v in parts.items() if k.startswith(prefix)}


def _bad_column(X: Any, where: str) -> DataError:
    bad = (X.indices < 0) | (X.indices >= X.shape[1])
    at = int(np.flatnonzero(bad)[0])
    row = int(np.searchsorted(X.indptr, at, side="right")) - 1
    return DataError(
        f"{where} is no CSR matrix: row {row} has column {X.indices[at]}, where columns go from 0 "
        f"to {X.shape[1] - 1}."
    )


def _blocks(values: AnyArray) -> Iterator[AnyArray]:
    flat = values.ravel()  # a view, of arrays as files and safetensors bring them
    for start in range(0, len(flat), _BLOCK):
        yield flat[start : start + _BLOCK]

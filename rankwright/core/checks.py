"""Checks of arrays from files and callers, which kernels need, because they check no bounds.

`ArraySpec`s declare the arrays of a file, and `check_arrays` checks them; `check_csr` checks sparse
matrices. Values are read once, in blocks that fit in the processor's cache. An error names the
source, the array and the first bad value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.errors import DataError

HIGHEST_GRADE = 2.0**53
"""The highest grade: above it, sums of squares overflow and doubles do not hold all integers."""

HIGHEST_EXP2_GRADE = 31
"""The highest grade with the gain 2^g - 1; LightGBM and XGBoost refuse higher grades too."""

_BLOCK = 1 << 16  # values that are read twice while they are in the cache
_LAST_CHARACTER = 0x10FFFF  # of Unicode
_SURROGATES = 0xD800, 0xDFFF  # halves of characters, which cannot be encoded


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Type, shape and range of an array.

    Attributes
    ----------
    name : str
    dtype : str
        Names of types, or letters of their kinds, separated by blanks: ``"float32 float64"``,
        ``"i u"``.
    shape : tuple of int or str
        Lengths, or names of dimensions with an optional addend: ``("queries+1",)``. Arrays with the
        same dimension must have the same length there.
    low, high : float, int or None
        The least and the greatest valid value.
    below : str or None
        A dimension; values must be from 0 to one below its length.
    offsets : str or None
        A dimension; values must start with 0, never decrease, and end with its length.
    finite : bool
        Whether NaN and infinity are refused. Values are not read if False and no range is given.
    monotone : bool
        Whether values must not decrease.
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
    """Raise unless ``arrays`` satisfy their ``specs``; return the length of each dimension.

    Parameters
    ----------
    specs
        Specifications of all arrays; other arrays are refused.
    arrays
        The arrays by name.
    where
        Beginning of errors: a file, or a part of one.
    **lengths
        Known lengths of dimensions: ``features=136``.
    """
    prefix = f"{where}: " if where else ""
    by_name = {spec.name: spec for spec in specs}
    for name in arrays:
        if name not in by_name:
            raise DataError(f"{prefix}there is an array '{name}', which is not expected.")
    for name, spec in by_name.items():
        if name not in arrays and not spec.optional:
            raise DataError(f"{prefix}the array '{name}' is missing.")
    for check in (_check_type_and_shape, _check_values):  # values need the lengths of all shapes
        for name, spec in by_name.items():
            if name in arrays:
                check(spec, arrays[name], lengths, f"{prefix}the array '{name}'")
    return lengths


def check_csr(X: Any, where: str = "X") -> None:
    """Raise unless ``X`` is a valid CSR matrix: lengths, row offsets, column numbers.

    Like SciPy's ``check_format(full_check=True)``, but in one pass and without changing X.
    """
    starts, indices, values = X.indptr, X.indices, X.data
    for name, array in (("indptr", starts), ("indices", indices), ("data", values)):
        if array.ndim != 1:
            raise DataError(f"{where} is not a CSR matrix: its {name} has the shape {array.shape}.")
        if name != "data" and array.dtype.kind != "i":
            raise DataError(f"{where} is not a CSR matrix: its {name} has the type {array.dtype}.")
    if len(starts) != X.shape[0] + 1 or len(indices) != len(values):
        raise DataError(
            f"{where} is not a CSR matrix: it has {len(starts)} row offsets for {X.shape[0]} rows, "
            f"and {len(indices)} column numbers for {len(values)} values."
        )
    end = min(int(starts[-1]), len(values))  # the arrays may be longer
    check_offsets(starts, end, f"{where} is not a CSR matrix: its indptr")
    low, high = extremes(indices[: starts[-1]])
    if low < 0 or high >= X.shape[1]:
        raise _bad_column(X, where)


def check_offsets(offsets: AnyArray, end: int, what: str) -> None:
    """Raise unless ``offsets`` begin with 0, never decrease and end with ``end``."""
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
    """Return the least and the greatest value; (NaN, NaN) with a NaN, (0, -1) without values."""
    if not values.size:
        return 0, -1
    flat = values.ravel()  # a view of contiguous arrays, which files and safetensors have
    blocks = [flat[start : start + _BLOCK] for start in range(0, len(flat), _BLOCK)]
    lows, highs = zip(*((block.min(), block.max()) for block in blocks), strict=True)
    return np.min(lows).item(), np.max(highs).item()


def first_fall(values: AnyArray) -> int | None:
    """Return the index of the first value below its predecessor (or NaN), or None."""
    for start in range(1, len(values), _BLOCK):
        stop = min(start + _BLOCK, len(values))
        rises = values[start:stop] >= values[start - 1 : stop - 1]
        if not rises.all():
            return start + int(np.flatnonzero(~rises)[0])
    return None


# --- one array -------------------------------------------------------------------------------


_KINDS = {
    "b": "booleans", "i": "integers", "u": "unsigned integers", "f": "floats", "U": "text",
    "S": "bytes", "M": "dates", "m": "durations",
}  # fmt: skip


def _check_type_and_shape(
    spec: ArraySpec, array: AnyArray, lengths: dict[str, int], what: str
) -> None:
    types = spec.dtype.split()
    # the name of a type means the byte order of the machine, which kernels need
    if not any(
        array.dtype == name if len(name) > 1 else array.dtype.kind == name for name in types
    ):
        raise DataError(
            f"{what} has the type {array.dtype}; "
            f"{' or '.join(_KINDS.get(name, name) for name in types)} is expected."
        )
    is_valid = array.ndim == len(spec.shape)
    for expected, length in zip(spec.shape, array.shape, strict=False):
        dimension, _, addend = str(expected).partition("+")
        if isinstance(expected, int):
            is_valid &= length == expected
        else:
            of_dimension = length - int(addend or 0)
            is_valid &= of_dimension >= 0
            if of_dimension >= 0:
                is_valid &= lengths.setdefault(dimension, of_dimension) == of_dimension
    if not is_valid:
        dimensions = {str(expected).partition("+")[0] for expected in spec.shape}
        agreed = ", ".join(f"{name} = {lengths[name]}" for name in lengths if name in dimensions)
        raise DataError(
            f"{what} has the shape {array.shape}; ({', '.join(map(str, spec.shape))}) is expected"
            f"{f' with {agreed}' if agreed else ''}."
        )


def _check_values(spec: ArraySpec, array: AnyArray, lengths: dict[str, int], what: str) -> None:
    if spec.offsets is not None:
        check_offsets(array, lengths[spec.offsets], what)
        return
    if array.dtype.kind == "U" and array.size:
        _check_characters(array, what)
    low, high = (spec.low, spec.high) if spec.below is None else (0, lengths[spec.below] - 1)
    has_range = spec.finite or low is not None or high is not None
    if array.dtype.kind in "iuf" and array.size and has_range:
        least, greatest = extremes(array)
        is_finite = math.isfinite(least) and math.isfinite(greatest)
        if (
            (spec.finite and not is_finite)
            or (low is not None and not least >= low)
            or (high is not None and not greatest <= high)
        ):
            raise _bad_value(what, array, low, high, finite=spec.finite)
    if spec.monotone and (at := first_fall(array)) is not None:
        raise DataError(f"{what} falls at number {at}, to {array[at]}; it must not.")


def _check_characters(array: AnyArray, what: str) -> None:
    """Raise unless all numbers in an array of text are characters, which Python requires later."""
    codes = np.ascontiguousarray(array).view(np.uint32)
    if extremes(codes)[1] < _SURROGATES[0]:
        return
    bad = (codes > _LAST_CHARACTER) | ((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1]))
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
    expected = ["finite"] if finite and array.dtype.kind == "f" else []
    expected += [] if low is None else [f"{low} or more"]
    expected += [] if high is None else [f"{high} or less"]
    return DataError(
        f"{what} has {flat[at]} at number {at}; its values must be {' and '.join(expected)}."
    )


def without_prefix(prefix: str, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays or texts whose names have a prefix, by the remainder of their names."""
    return {k.removeprefix(prefix): v for k, v in parts.items() if k.startswith(prefix)}


def _bad_column(X: Any, where: str) -> DataError:
    bad = (X.indices < 0) | (X.indices >= X.shape[1])
    at = int(np.flatnonzero(bad)[0])
    row = int(np.searchsorted(X.indptr, at, side="right")) - 1
    return DataError(
        f"{where} is not a CSR matrix: row {row} has column {X.indices[at]}; columns must be from "
        f"0 to {X.shape[1] - 1}."
    )

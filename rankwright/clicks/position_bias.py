"""`Propensity`: the effect of the position on clicks.

A document of relevance r that is shown at position k is clicked with probability

    P(click) = examination_k * r + offset_k                                                     (1)

Without ``offset`` this is the position-based model: users click relevant documents that they
examine. With ``offset`` it is the affine model of trust bias (`vardasbi2020inverse`). Clicks depend
on the product of examination and relevance only, so examination is relative to position 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.data.streams import atomic_text, open_bytes
from rankwright.errors import DataError, UsageError

_FORMAT = "rankwright propensity 1"
_ARRAYS = ("examination", "offset", "low", "high")


@dataclass(frozen=True, slots=True, eq=False)
class Propensity:
    """Probability that users examine each position, relative to the first position.

    Attributes
    ----------
    examination : (K,) float64
        Values of positions 1 to K, above 0.
    offset : (K,) float64 or None
        Share of clicks that the position adds, relative to the first position (trust bias).
        Negative for positions with fewer undeserved clicks than the first.
    low, high : (K,) float64 or None
        95 % confidence intervals of the examination.
    method : str
        Name of the estimator.

    Examples
    --------
    >>> from rankwright.clicks import Propensity
    >>> Propensity.power(1.0, positions=4).examination
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """

    examination: F64
    offset: F64 | None = None
    low: F64 | None = None
    high: F64 | None = None
    method: str = "given"

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.array(getattr(self, name), np.float64))
        if self.examination.ndim != 1 or not len(self.examination):
            raise DataError("examination must be a list of numbers, one for each position from 1.")
        for name in _ARRAYS:
            values = getattr(self, name)
            if values is None:
                continue
            if values.shape != self.examination.shape:
                raise DataError(
                    f"{name} has the shape {values.shape}; one number for each of the "
                    f"{len(self.examination)} positions is expected."
                )
            lowest = -np.inf if name == "offset" else 0.0
            bad = ~((values > lowest) if name == "examination" else (values >= lowest))
            if name != "high":
                bad |= ~np.isfinite(values)
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                above = {"examination": " and above 0", "offset": ""}.get(name, " and 0 or more")
                raise DataError(
                    f"{name} must be finite{above}; position {at + 1} has {values[at]}."
                )

    @classmethod
    def power(cls, eta: float, *, positions: int) -> Propensity:
        """Return the propensity with examination (1/k)^eta, common in simulations."""
        return cls((1.0 / np.arange(1, positions + 1)) ** eta, method=f"(1/k)^{eta:g}")

    @property
    def n_positions(self) -> int:
        """Number of positions."""
        return len(self.examination)

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.3g}" for value in self.examination[:5])
        more = ", ..." if self.n_positions > 5 else ""
        trust = "" if self.offset is None else ", with offsets"
        return f"Propensity([{shown}{more}], {self.n_positions} positions{trust}, {self.method})"

    def at(self, position: AnyArray) -> tuple[F64, F64]:
        """Return examination and offset at each position, from 1; raise beyond the last."""
        places = np.asarray(position)
        if places.dtype.kind not in "iuf" or (places != np.floor(places)).any():
            raise DataError("positions must be whole numbers, 1 for the first.")
        places = places.astype(np.int64)
        if places.size and not 1 <= places.min() <= places.max() <= self.n_positions:
            bad = places.min() if places.min() < 1 else places.max()
            raise DataError(
                f"the data has position {bad}, and the propensity knows 1 to {self.n_positions}; "
                "estimate it on a log with all positions, or leave these documents out."
            )
        examination: F64 = self.examination[places - 1]
        offset = np.zeros(places.shape) if self.offset is None else self.offset[places - 1]
        return examination, offset

    def clipped(self, least: float) -> Propensity:
        """Return a propensity with examination of at least ``least``: less variance, more bias."""
        if not 0.0 < least <= 1.0:
            raise UsageError(f"clip must be above 0 and at most 1; it is {least}.")
        return Propensity(np.maximum(self.examination, least), self.offset, method=self.method)

    def to_dict(self) -> dict[str, Any]:
        """Return lists and texts for `from_dict`."""
        content: dict[str, Any] = {"format": _FORMAT, "method": self.method}
        for name in _ARRAYS:
            values = getattr(self, name)
            if values is not None:
                content[name] = [None if np.isinf(v) else float(v) for v in values]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Propensity:
        """Return the propensity with the content that `to_dict` returned."""
        if content.get("format") != _FORMAT:
            raise DataError(f"not a propensity: 'format' must be '{_FORMAT}'.")
        if "examination" not in content:
            raise DataError("not a propensity: 'examination' is missing.")
        unknown = sorted({*content} - {*_ARRAYS, "method", "format"})
        if unknown:
            raise DataError(f"unknown key '{unknown[0]}' of a propensity.")
        arrays = {name: _numbers(content[name], name) for name in _ARRAYS if name in content}
        return cls(**arrays, method=str(content.get("method", "given")))

    def save(self, path: str | Path) -> None:
        """Write a JSON file, which `Propensity.load` reads."""
        with atomic_text(path) as stream:
            stream.write(json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Propensity:
        """Read a file that `save` wrote."""
        with open_bytes(path) as stream:
            text = stream.read()
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise DataError(f"{path}: not a propensity: the file is not JSON.") from None
        if not isinstance(content, dict):
            raise DataError(f"{path}: not a propensity: a JSON object is expected.")
        try:
            return cls.from_dict(content)
        except (ValueError, TypeError) as error:
            raise DataError(f"{path}: {error}") from error


def _numbers(values: Sequence[float | None], name: str) -> F64:
    if not isinstance(values, list):
        raise DataError(f"'{name}' must be a list of numbers.")
    return np.array([np.inf if value is None else float(value) for value in values])

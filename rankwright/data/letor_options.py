"""The options of reading LETOR text, checked; `Letor.read` describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.errors import UsageError


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What `Letor.read` takes; a value that cannot be raises `UsageError`."""

    dtype: Literal["float64", "float32"] = "float64"
    zero_based: bool | Literal["auto"] = "auto"
    absent: Literal["zero", "missing"] = "zero"
    sparse: bool | None = None
    n_features: int | None = None
    doc_ids: bool = True
    lists: Literal["by_id", "adjacent"] = "by_id"
    max_feature_id: int = 1 << 26
    group_sizes: AnyArray | None = None
    grades: bool = True
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        choices = {
            "dtype": ("float64", "float32"),
            "zero_based": ("auto", True, False),
            "absent": ("zero", "missing"),
            "sparse": (None, True, False),
            "lists": ("by_id", "adjacent"),
        }
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name} must be one of {', '.join(map(repr, allowed))}, "
                    f"not {getattr(self, name)!r}."
                )
        if self.sparse and self.absent == "missing":
            raise UsageError("absent='missing' makes a dense table; leave out sparse=True.")
        if self.n_features is not None and self.n_features < 0:
            raise UsageError(f"n_features must be 0 or more, not {self.n_features}.")
        if not 0 < self.max_feature_id < 2**31 - 1:
            raise UsageError(
                f"max_feature_id must be from 1 to 2^31 - 2, not {self.max_feature_id}."
            )


def _dtype_name(dtype: object) -> str:
    try:
        return np.dtype(dtype).name  # type: ignore[call-overload, no-any-return]
    except TypeError:
        return str(dtype)

"""What all kinds of study data have in common: their options, their shares, and their folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import I64
from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown


def check_options(
    what: str, given: Mapping[str, Any], make: Callable[..., Any], *, own: Iterable[str]
) -> None:
    """Refuse an option that is neither one of ``make``'s, by keyword, nor of the study's own."""
    taken = {p.name for p in signature(make).parameters.values() if p.kind is p.KEYWORD_ONLY}
    known = sorted({*own, *taken} - {"seed"})
    for option in given:
        if option not in known:
            raise UsageError(unknown(f"option of {what}", option, known))


def ends_of_parts(sizes: Sequence[float], n: int) -> I64:
    """Return where train and valid end among n rows, given the shares of train, valid and test."""
    if len(sizes) != 3 or min(sizes) <= 0.0 or abs(sum(sizes) - 1.0) > 1e-9:
        raise UsageError(f"sizes must be three shares above 0 that add up to 1, not {list(sizes)}.")
    ends: I64 = np.rint(np.cumsum(sizes)[:2] * n).astype(np.int64)
    return ends


def folder_with(data_folder: Path | None, study: str, holds: str) -> Path:
    """Return the folder of all data, or say what it is to hold."""
    if data_folder is not None and data_folder.is_dir():
        return data_folder
    raise DataError(
        f"{study} needs its data: pass --data DIR, or let RANKWRIGHT_DATA name the folder that "
        f"holds {holds}" + ("." if data_folder is None else f"; {data_folder} is not a folder.")
    )

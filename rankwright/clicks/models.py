"""Click models by their name, and from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankwright.clicks.base import ClickModel, restored
from rankwright.clicks.chains import CCM, DBN, DCM, SDBN, Cascade
from rankwright.clicks.examination import PBM, UBM, TrustPBM
from rankwright.clicks.rates import DCTR, GCTR, RCTR
from rankwright.errors import UsageError
from rankwright.registry import unknown

MODELS: dict[str, type[Any]] = {
    kind.name: kind for kind in (GCTR, RCTR, DCTR, PBM, TrustPBM, UBM, Cascade, DCM, SDBN, DBN, CCM)
}


def model(name: str, **params: Any) -> ClickModel:
    """Return the click model of this name, such as ``"pbm"``, with its parameters.

    Examples
    --------
    >>> from rankwright import clicks
    >>> clicks.model("pbm", max_iter=50)
    PBM(max_iter=50)
    """
    if name not in MODELS:
        raise UsageError(unknown("click model", name, MODELS))
    try:
        made: ClickModel = MODELS[name](**params)
    except TypeError as error:
        raise UsageError(f"click model '{name}': {error}.") from None
    return made


def load_model(path: str | Path) -> ClickModel:
    """Read a click model that was written by its method ``save``.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> clicks.SDBN().fit(log).save("sdbn.click")
    >>> clicks.load_model("sdbn.click")
    SDBN()
    """
    return restored(MODELS, path)

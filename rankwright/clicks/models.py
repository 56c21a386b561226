"""Click models by their name."""

from __future__ import annotations

from typing import Any

from rankwright.clicks.base import ClickModel
from rankwright.clicks.chains import DBN, DCM, SDBN, Cascade
from rankwright.clicks.examination import PBM, UBM
from rankwright.clicks.rates import DCTR, GCTR, RCTR
from rankwright.errors import UsageError
from rankwright.registry import unknown

MODELS: dict[str, type[Any]] = {
    kind.name: kind for kind in (GCTR, RCTR, DCTR, PBM, UBM, Cascade, DCM, SDBN, DBN)
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
        click_model: ClickModel = MODELS[name](**params)
    except TypeError as error:
        raise UsageError(f"click model '{name}': {error}.") from None
    return click_model

"""Learning from clicks: simulation, position bias, and rankers without it. Names load on first use.

    from rankwright.clicks import debias, estimate_propensity, simulate
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.clicks.debiasing_gain import debiasing_gain as debiasing_gain
    from rankwright.clicks.propensity import estimate_propensity as estimate_propensity
    from rankwright.clicks.propensity import plot_propensities as plot_propensities
    from rankwright.clicks.simulation import simulate as simulate
    from rankwright.data.click_log import ClickLog as ClickLog
    from rankwright.data.propensity import Propensity as Propensity
    from rankwright.rankers.debiasing import debias as debias

_MODULES = {
    "ClickLog": "rankwright.data.click_log",
    "Propensity": "rankwright.data.propensity",
    "debias": "rankwright.rankers.debiasing",
    "debiasing_gain": "rankwright.clicks.debiasing_gain",
    "estimate_propensity": "rankwright.clicks.propensity",
    "plot_propensities": "rankwright.clicks.propensity",
    "simulate": "rankwright.clicks.simulation",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.clicks' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])

"""Check a loss, metric, model or export of your own against what Rankwright asks of its own.

    import rankwright as rw

    rw.testing.check_loss(MyLoss())

raises `ContractError`, an AssertionError whose sentence names the property that does not hold.
With pytest, a test for each property::

    @pytest.mark.parametrize("check", rw.testing.loss_checks(MyLoss()))
    def test_my_loss(check):
        check(MyLoss())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.errors import ContractError as ContractError
    from rankwright.testing.exports import check_export as check_export
    from rankwright.testing.exports import export_checks as export_checks
    from rankwright.testing.losses import check_loss as check_loss
    from rankwright.testing.losses import loss_checks as loss_checks
    from rankwright.testing.metrics import check_metric as check_metric
    from rankwright.testing.metrics import metric_checks as metric_checks
    from rankwright.testing.models import check_model as check_model
    from rankwright.testing.models import model_checks as model_checks
    from rankwright.testing.rankers import expected_failed_checks as expected_failed_checks

_MODULES = {
    "ContractError": "rankwright.errors",
    "check_export": "rankwright.testing.exports",
    "check_loss": "rankwright.testing.losses",
    "check_metric": "rankwright.testing.metrics",
    "check_model": "rankwright.testing.models",
    "expected_failed_checks": "rankwright.testing.rankers",
    "export_checks": "rankwright.testing.exports",
    "loss_checks": "rankwright.testing.losses",
    "metric_checks": "rankwright.testing.metrics",
    "model_checks": "rankwright.testing.models",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.testing' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])

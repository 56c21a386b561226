"""The model of rankers whose trees were grown by another library: they predict only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from rankwright.core.types import Round
from rankwright.errors import UsageError
from rankwright.models.forest import Forest
from rankwright.models.schema import ModelPart


@dataclass(frozen=True, slots=True, repr=False)
class ImportedTrees(ModelPart):
    """Trees of another library; they predict, and are not fitted again.

    Parameters
    ----------
    library : str
        The library that grew them: LightGBM, XGBoost or CatBoost.
    objective : str
        Their training objective, by the library's own name.
    """

    fitted_class: ClassVar[Any] = Forest

    library: str = ""
    objective: str = ""

    def check(self) -> None:
        """Raise: the model cannot be fitted."""
        advice = (
            "continue it with fit(..., init_model=ranker) of a ranker with trees such as LambdaMART"
            if self.library == "LightGBM"
            else "fit a ranker of Rankwright instead, such as LambdaMART"
        )
        raise UsageError(f"a model of {self.library} predicts and is not fitted again; {advice}.")

    def rounds(self, *_: Any, **__: Any) -> Iterator[Round]:
        """Raise: the model cannot be fitted."""
        self.check()
        yield from ()

"""The arrays and texts of fitted models, declared once by each family, and the base of models.

``restore`` of a fitted model first checks arrays and texts with a `Schema`: kernels do not check
bounds, and files are not trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parameters import Part
from rankwright.core.types import AnyArray
from rankwright.core.types import Round as Round  # public in rankwright.models
from rankwright.errors import DataError, UsageError, quoted

FILL = ArraySpec("fill", "float64", ("features",), optional=True)
"""Replacement of missing values of each feature."""


class ModelPart(Part):
    """Base of models whose fitted models are all of one class, ``fitted_class``."""

    __slots__ = ()

    fitted_class: ClassVar[Any]

    def can_continue(self, fitted: Any) -> bool:
        """Return whether ``start`` can be this fitted model."""
        return isinstance(fitted, self.fitted_class)

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> Any:
        """Check the arrays and texts of a fitted model and build it."""
        return cls.fitted_class.restore(arrays, texts, n_features)


@dataclass(frozen=True, slots=True)
class Schema:
    """The arrays and texts of a model.

    Attributes
    ----------
    arrays : tuple of ArraySpec
    texts : mapping from names to tuples of str
        Possible values of each text; an empty tuple allows all.
    """

    arrays: tuple[ArraySpec, ...]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(
        self, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], **lengths: int
    ) -> dict[str, int]:
        """Raise unless arrays and texts match the schema; return the lengths of dimensions.

        ``lengths`` fixes dimensions in advance, for example ``features``.
        """
        if set(texts) != set(self.texts):
            raise DataError(
                f"it has the texts {_listed(texts)}, where {_listed(self.texts)} are expected."
            )
        for name, values in self.texts.items():
            if values and texts[name] not in values:
                raise DataError(
                    f"its {name} is {quoted(texts[name])}, not one of {_listed(values)}."
                )
        return check_arrays(self.arrays, arrays, "", **lengths)


def refuse_not_finite(model: Any) -> None:
    """Raise if a parameter of a fitted model is NaN or infinite.

    ``unbounded`` of a model names the arrays that are exempt, for example thresholds.
    """
    unbounded = getattr(model, "unbounded", ())
    try:
        arrays = model.arrays()
    except (AttributeError, UsageError):  # a model or kernel of the user that cannot be saved
        return
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name not in unbounded and not np.isfinite(array).all():
            raise DataError(
                f"the fitted model's {name} is not finite: features or grades are too large for "
                "it, or it found no minimum. Scale the features, for example to the deviation 1, "
                "or use a larger penalty (l2) or a smaller learning_rate."
            )


def _listed(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return ", ".join(map(quoted, sorted(names))) or "none"

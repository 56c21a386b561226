"""What a file holds of a model: arrays and texts, declared once by each family.

`restore` of a model checks what it is given against its `Schema` before it builds anything, since
kernels check no bounds and a file may come from anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.types import AnyArray
from rankwright.errors import DataError, UsageError, quoted

FILL = ArraySpec("fill", "float64", ("features",), optional=True)
"""What stands for a missing value of each feature."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The arrays and texts of a model.

    Attributes
    ----------
    arrays : tuple of ArraySpec
    texts : mapping from names to tuples of str
        The values that each text may have; any where the tuple is empty.
    """

    arrays: tuple[ArraySpec, ...]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(
        self, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], **lengths: int
    ) -> dict[str, int]:
        """Raise unless arrays and texts are those of the model; return the lengths of dimensions.

        ``lengths`` are those that are known before, such as ``features``.
        """
        if set(texts) != set(self.texts):
            raise DataError(
                f"it has the texts {_listed(texts)}, where {_listed(self.texts)} are expected."
            )
        for name, known in self.texts.items():
            if known and texts[name] not in known:
                raise DataError(
                    f"its {name} is {quoted(texts[name])}, not one of {_listed(known)}."
                )
        return check_arrays(self.arrays, arrays, "", **lengths)


def refuse_not_finite(model: Any) -> None:
    """Raise if a parameter of a fitted model is NaN or infinite.

    ``unbounded`` of a model names the arrays that are exempt, for example thresholds.
    """
    unbounded = getattr(model, "unbounded", ())
    try:
        arrays = model.arrays()
    except (AttributeError, UsageError):  # a model or a kernel of the user, which no file holds
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

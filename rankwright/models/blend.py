"""A weighted sum of fitted models, fitted by `rankwright.Blend`.

    s(x) = sum_m w_m s_m(x) / d_m                                                              (1)

where w_m is the weight of member m and d_m the usual standard deviation of its scores within a
query. d_m is fixed after the fit, so that a score depends only on the document, and any system that
can evaluate the members can evaluate their sum.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from rankwright import registry
from rankwright.core.checks import ArraySpec, without_prefix
from rankwright.core.parameters import Part
from rankwright.core.types import F64, AnyArray, FittedModel, FloatMatrix, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.schema import Schema

_ABOUT = "blend"
_SCHEMA = Schema(
    (
        ArraySpec("blend.weights", "float64", ("members",), low=0.0),
        ArraySpec("blend.deviations", "float64", ("members",)),
    )
)


@dataclass(frozen=True, eq=False)
class FittedBlend:
    """Fitted members and their weights.

    Attributes
    ----------
    names, kinds : tuple of str
        The name of each member, and of its model in the registry.
    members : tuple of fitted models
    weights, deviations : (m,) float64
        w_m and d_m of (1).
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    members: tuple[FittedModel, ...]
    weights: F64
    deviations: F64
    n_features: int

    split_by: ClassVar[str] = "the members' own contributions"

    def __repr__(self) -> str:
        shares = zip(self.weights, self.names, self.kinds, strict=True)
        return "blend of " + ", ".join(f"{w:.3g} {name} ({kind})" for w, name, kind in shares)

    @property
    def unbounded(self) -> frozenset[str]:
        """Arrays of members that may be infinite."""
        pairs = ((n, getattr(member, "unbounded", ())) for n, member in enumerate(self.members))
        return frozenset(f"{number}.{name}" for number, names in pairs for name in names)

    @property
    def factors(self) -> F64:
        """Factors of the members' scores."""
        return self.weights / self.deviations

    @property
    def looks_at_list(self) -> bool:
        """Whether a score depends on the other documents of the query."""
        return any(getattr(member, "looks_at_list", False) for member in self.members)

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        return self._sum(lambda member: member.scores(X, n_jobs=n_jobs))

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document, for members that depend on the other documents."""
        return self._sum(lambda member: scores_of(member, data, n_jobs=n_jobs))

    def contributions(self, X: FloatMatrix) -> F64:
        """Return the contribution of each feature to each score, and of the rest last."""
        return self._sum(lambda member: member.contributions(X))

    def contributions_of(self, data: RankingData) -> F64:
        """Return `contributions`, for members that depend on the other documents."""

        def of_member(member: Any) -> Any:
            if hasattr(member, "contributions_of"):
                return member.contributions_of(data)
            return member.contributions(data.X)

        return self._sum(of_member)

    def _sum(self, values: Callable[[Any], Any]) -> F64:
        pairs = zip(self.factors, self.members, strict=True)
        return np.asarray(sum(factor * values(member) for factor, member in pairs))  # (1)

    def describe(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Return a heading and a line for each member, by falling weight."""
        parts = zip(self.weights.tolist(), self.names, self.kinds, strict=True)
        return [
            "a weighted sum of rankers, each over the deviation of its scores",
            *(
                f"{weight:.3f}  {name} ({kind})"
                for weight, name, kind in sorted(parts, key=lambda part: -part[0])
            ),
        ]

    # --- files -------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, and the arrays of each member under its number."""
        arrays = {"blend.weights": self.weights, "blend.deviations": self.deviations}
        for number, member in enumerate(self.members):
            arrays |= {f"{number}.{name}": array for name, array in member.arrays().items()}
        return arrays

    def texts(self) -> dict[str, str]:
        """Return names and models of the members, and the texts of each under its number."""
        about = [{"name": n, "model": k} for n, k in zip(self.names, self.kinds, strict=True)]
        texts = {_ABOUT: json.dumps(about, indent=1) + "\n"}
        for number, member in enumerate(self.members):
            texts |= {f"{number}.{name}": text for name, text in member.texts().items()}
        return texts

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedBlend:
        """Build the blend from the arrays and texts of its members after checking them."""
        about = json.loads(texts[_ABOUT])
        weights = {name: array for name, array in arrays.items() if name.startswith("blend.")}
        _SCHEMA.check(weights, {}, members=len(about))
        if not about or not (weights["blend.deviations"] > 0.0).all():
            raise DataError("it has no members, or one whose scores do not differ.")
        numbers = {name.partition(".")[0] for name in {*arrays, *texts}} - {_ABOUT}
        unknown = numbers - {str(number) for number in range(len(about))}
        if unknown:
            raise DataError(f"it has parts of the member {min(unknown)}, which it has not.")
        kinds = tuple(str(member["model"]) for member in about)
        if _ABOUT in kinds:
            raise DataError("a member of a blend is itself one.")
        members = [
            registry.resolve("models", kind).restore(
                without_prefix(f"{number}.", arrays),
                without_prefix(f"{number}.", texts),
                n_features,
            )
            for number, kind in enumerate(kinds)
        ]
        names = tuple(str(member["name"]) for member in about)
        return cls(
            names,
            kinds,
            tuple(members),
            weights["blend.weights"],
            weights["blend.deviations"],
            n_features,
        )


def scores_of(model: Any, data: RankingData, *, n_jobs: int | None = None) -> F64:
    """Return the score of each document by any fitted model."""
    if hasattr(model, "scores_of"):
        return np.asarray(model.scores_of(data, n_jobs=n_jobs))
    return np.asarray(model.scores(data.X, n_jobs=n_jobs))


@dataclass(frozen=True, slots=True, repr=False)
class Blend(Part):
    """The models of the members of a `rankwright.Blend`.

    Parameters
    ----------
    models : tuple of models
    """

    models: tuple[Any, ...] = ()

    restore = staticmethod(FittedBlend.restore)

    @property
    def compares_values(self) -> bool:
        """Whether all members compare values."""
        return all(getattr(member, "compares_values", False) for member in self.models)

    @property
    def takes_categories(self) -> bool:
        """Whether all members accept categories."""
        return all(getattr(member, "takes_categories", False) for member in self.models)

    def check(self) -> NoReturn:
        """Refuse to be fitted as the model of a loss."""
        raise UsageError("a blend is fitted member by member: use rankwright.Blend([...]).")

    def rounds(self, *_: Any, **__: Any) -> Iterator[Round]:
        """Refuse to be fitted as the model of a loss."""
        self.check()

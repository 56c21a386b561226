"""A weighted sum of fitted models, as `rankwright.Blend` fits it.

    s(x) = sum_m w_m s_m(x) / d_m                                                              (1)

with w_m the weight of member m, and d_m the usual standard deviation of its scores within a query.
d_m is a number that was found once, so that a score depends on the document alone, and a system
that holds the members holds their sum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from rankwright import registry
from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import Part
from rankwright.core.types import F64, AnyArray, Callback, FittedModel, FloatMatrix, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.schema import Schema

_ABOUT = "blend"
_OWN = Schema(
    (
        ArraySpec("blend.weights", "float64", ("members",), low=0.0),
        ArraySpec("blend.deviations", "float64", ("members",)),
    )
)


@dataclass(frozen=True, slots=True, repr=False)
class Blend(Part):
    """The models of the members of a blend, which `rankwright.Blend` fits.

    Parameters
    ----------
    models : tuple of models
    """

    models: tuple[Any, ...] = ()

    @property
    def compares_values(self) -> bool:
        """Whether every member does."""
        return all(getattr(member, "compares_values", False) for member in self.models)

    @property
    def takes_categories(self) -> bool:
        """Whether every member does."""
        return all(getattr(member, "takes_categories", False) for member in self.models)

    def check(self) -> None:
        """Refuse to be fitted as the model of a loss."""
        raise UsageError("a blend is fitted member by member: use rankwright.Blend([...]).")

    def fit(
        self,
        loss: Loss,  # noqa: ARG002
        data: RankingData,  # noqa: ARG002
        *,
        callback: Callback,  # noqa: ARG002
        start: Any = None,  # noqa: ARG002
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,  # noqa: ARG002
    ) -> Any:
        """Refuse to be fitted as the model of a loss."""
        self.check()

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedBlend:
        """Build the blend from the arrays and texts of its members, checked."""
        return FittedBlend.restore(arrays, texts, n_features)


@dataclass(frozen=True, eq=False)
class FittedBlend:
    """The members with their weights.

    Attributes
    ----------
    names : tuple of str
        What the members are called.
    kinds : tuple of str
        The model of each, by its name in the registry.
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
        pairs = ((n, getattr(one, "unbounded", ())) for n, one in enumerate(self.members))
        return frozenset(f"{number}.{name}" for number, names in pairs for name in names)

    @property
    def factors(self) -> F64:
        """By what the scores of each member are multiplied."""
        return self.weights / self.deviations

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        total = np.zeros(X.shape[0])
        for factor, member in zip(self.factors, self.members, strict=True):
            total += factor * member.scores(X, n_jobs=n_jobs)  # (1)
        return total

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document; some members may look at the list of its query."""
        total = np.zeros(data.n_documents)
        for factor, member in zip(self.factors, self.members, strict=True):
            if hasattr(member, "scores_of"):
                total += factor * member.scores_of(data, n_jobs=n_jobs)
            else:
                total += factor * member.scores(data.X, n_jobs=n_jobs)
        return total

    @property
    def looks_at_list(self) -> bool:
        """Whether a score depends on the other documents of the query."""
        return any(getattr(member, "looks_at_list", False) for member in self.members)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each feature adds to each score through all members, and the rest last."""
        parts = np.zeros((X.shape[0], self.n_features + 1))
        for factor, member in zip(self.factors, self.members, strict=True):
            parts += factor * member.contributions(X)
        return parts

    def contributions_of(self, data: RankingData) -> F64:
        """Return what each feature adds to each score; members may look at the query's list."""
        parts = np.zeros((data.n_documents, self.n_features + 1))
        for factor, member in zip(self.factors, self.members, strict=True):
            if hasattr(member, "contributions_of"):
                parts += factor * member.contributions_of(data)
            else:
                parts += factor * member.contributions(data.X)
        return parts

    def describe(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Return what it is, and a line for each member, the one of the largest weight first."""
        parts = zip(self.weights.tolist(), self.names, self.kinds, strict=True)
        found = sorted(parts, key=lambda part: -part[0])
        return [
            "a weighted sum of rankers, each over the deviation of its scores",
            *(f"{weight:.3f}  {name} ({kind})" for weight, name, kind in found),
        ]

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, and the arrays of each member under its number."""
        found: dict[str, AnyArray] = {
            "blend.weights": self.weights,
            "blend.deviations": self.deviations,
        }
        for number, member in enumerate(self.members):
            found |= {f"{number}.{name}": array for name, array in member.arrays().items()}
        return found

    def texts(self) -> dict[str, str]:
        """Return what the members are, and the texts of each under its number."""
        about = [{"name": n, "model": k} for n, k in zip(self.names, self.kinds, strict=True)]
        found = {_ABOUT: json.dumps(about, indent=1) + "\n"}
        for number, member in enumerate(self.members):
            found |= {f"{number}.{name}": text for name, text in member.texts().items()}
        return found

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedBlend:
        """Build the blend from the arrays and texts of its members, checked."""
        about = json.loads(texts[_ABOUT])
        own = {name: array for name, array in arrays.items() if name.startswith("blend.")}
        _OWN.check(own, {}, members=len(about))
        if not about or not (own["blend.deviations"] > 0.0).all():
            raise DataError("it has no members, or one whose scores do not differ.")
        known = {f"{number}" for number in range(len(about))}
        others = {name.partition(".")[0] for name in {*arrays, *texts}} - known - {_ABOUT}
        if others:
            raise DataError(f"it has parts of the member {min(others)}, which it has not.")
        names, kinds, members = [], [], []
        for number, each in enumerate(about):
            kind = str(each["model"])
            if kind == _ABOUT:
                raise DataError("a member of a blend is itself one.")
            model = registry.resolve("models", kind)
            restored = model.restore(
                _of_member(number, arrays), _of_member(number, texts), n_features
            )
            names.append(str(each["name"]))
            kinds.append(kind)
            members.append(cast(FittedModel, restored))
        return cls(
            tuple(names),
            tuple(kinds),
            tuple(members),
            own["blend.weights"],
            own["blend.deviations"],
            n_features,
        )


def _of_member(number: int, held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays or texts of one member, under their own names."""
    begin = f"{number}."
    return {
        name.removeprefix(begin): value for name, value in held.items() if name.startswith(begin)
    }

"""What a factorisation has learnt: vectors of users and items, and who rated what.

A user is known by name, an item by its column. Whoever is not there is scored without: by the
biases of the items.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.products import times_vector
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, SolveResult
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.factor_problem import Lists
from rankwright.models.missing import without_gaps

_NONE = np.empty(0, np.int64)
_ARRAYS = ("user_factors", "user_level", "item_factors", "item_bias", "rated_begin", "rated")
_NUMBERS = ("l2", "shift", "top")


@dataclass(frozen=True)
class FittedFactorization:
    """Vectors of users and items, biases, and which columns each user's documents had.

    Columns of X are called items here. ``l2`` is the penalty it was fitted with; ``solution`` tells
    how the solver ended, where the model was just fitted. ``shift`` is
    what was taken off the ratings and ``top`` the highest grade, where the ranker knows them.
    """

    users: AnyArray
    user_factors: F64
    user_level: F64
    item_factors: F64
    item_bias: F64
    rated_begin: I64
    rated: I64
    n_features: int
    l2: float
    shift: float = np.nan
    top: float = np.nan
    solution: SolveResult | None = field(default=None, compare=False)

    @property
    def n_factors(self) -> int:
        """Length of the vectors."""
        return int(self.item_factors.shape[1])

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row for a user of whom nothing is known."""
        return times_vector(without_gaps(X, "factorization"), self.item_bias, n_jobs=n_jobs)

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document for its user, known by ``qid``."""
        X = without_gaps(data.X, "factorization")
        lists = Lists(X, data.indptr, n_jobs=n_jobs)
        U, V = self.user_factors, self.item_factors
        return lists.scores(self.numbers_of(data.qid), U, V, self.item_bias, self.user_level)

    def numbers_of(self, users: AnyArray) -> I64:
        """Return the row of each user's vector, -1 where there is none."""
        number = {user: row for row, user in enumerate(self.users.tolist())}
        return np.array([number.get(user, -1) for user in users.tolist()], np.int64)

    def rated_by(self, user: Any) -> I64:
        """Return the items of a user's documents."""
        row = int(self.numbers_of(np.array([user]))[0])
        return self.rated[self.rated_begin[row] : self.rated_begin[row + 1]] if row >= 0 else _NONE

    def scores_of_items(self, user: Any) -> F64:
        """Return the score of every item for one user."""
        row = int(self.numbers_of(np.array([user]))[0])
        if row < 0:
            return self.item_bias.copy()
        scores: F64 = self.item_bias + self.item_factors @ self.user_factors[row]
        return scores + float(self.user_level[row])

    def with_users(self, data: RankingData, U: F64, level: F64) -> FittedFactorization:
        """Return the model with further users; one that was there is known by the new data."""
        stay = ~np.isin(self.users, data.qid)
        kept = [self.rated_by(user) for user in self.users[stay].tolist()]
        begin, rated = items_of(data)
        begins = np.cumsum([0, *map(len, kept)])
        return replace(
            self,
            users=np.concatenate([self.users[stay], data.qid]),
            user_factors=np.concatenate([self.user_factors[stay], U]),
            user_level=np.concatenate([self.user_level[stay], level]),
            rated_begin=np.concatenate([begins[:-1], begins[-1] + begin]),
            rated=np.concatenate([*kept, rated]),
        )

    def with_side(self, side: F64) -> FittedFactorization:
        """Return the model of items alone, for one fitted to items and their ``side`` features.

        What the features add to bias and vector is added to those of each item (a row of ``side``).
        """
        n = len(side)
        inside = self.rated < n
        counts = np.add.reduceat(np.append(inside, False), self.rated_begin[:-1])
        counts[np.diff(self.rated_begin) == 0] = 0
        return replace(
            self,
            item_factors=self.item_factors[:n] + side @ self.item_factors[n:],
            item_bias=self.item_bias[:n] + side @ self.item_bias[n:],
            rated_begin=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            rated=self.rated[inside],
            n_features=n,
        )

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each column adds to a score for a user of whom nothing is known."""
        dense = X.toarray() if sparse.issparse(X) else X
        return np.column_stack([dense * self.item_bias, np.zeros(X.shape[0])])

    def arrays(self) -> dict[str, AnyArray]:
        """Return vectors, biases, and which items each user rated."""
        return {
            "numbers": np.array([getattr(self, name) for name in _NUMBERS]),
            **{name: getattr(self, name) for name in _ARRAYS},
        }

    def texts(self) -> dict[str, str]:
        """Return the names of the users."""
        try:
            return {"users": json.dumps(self.users.tolist())}
        except TypeError:
            raise UsageError(
                "users must be named by numbers or texts for the model to be saved; they are "
                f"{type(self.users.tolist()[0]).__name__}."
            ) from None

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedFactorization:
        """Build the fitted model from its own arrays and texts."""
        own: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        own |= zip(_NUMBERS, arrays["numbers"].tolist(), strict=True)
        return cls(users=np.array(json.loads(texts["users"])), n_features=n_features, **own)


def items_of(data: RankingData) -> tuple[I64, I64]:
    """Return the items of each user's documents, and where each user's begin."""
    X = sparse.csr_array(data.X)
    begin = X.indptr[data.indptr].astype(np.int64)
    return begin, X.indices.astype(np.int64)

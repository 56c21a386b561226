"""Tests that may be looked at after every session: e-processes and confidence sequences.

Sessions have outcomes x from -1 to 1. An e-process E_n(m) is a number that, where the mean outcome
is m whatever came before, exceeds 1/alpha at any time with probability alpha at most (Ville's
inequality): stopping as soon as it does is a test of level alpha, and the values m that it has not
yet excluded are an interval that covers at every look at once (`howard2021time`,
`johari2022always`). Both tests here need three sums alone, the number n of sessions, S = sum of x
and V = sum of x^2, so that logs are read in parts, and days are added up.

Signs, where x is -1, 0 or 1: of w wins and l losses, a beta mixture (`robbins1970statistical`)

    E(p) = B(a + w, a + l) / B(a, a) / (p^w (1 - p)^l),     p the share of wins                 (1)

with a = 20, for shares of wins around 0.5 +- 0.08; ties do not count. Means of any x in [-1, 1]:
with y = (x - m) / (1 + |m|), which is -1 or more, and psi(b) = -log(1 - b) - b,

    exp(b y - psi(b) y^2) <= 1 + b y     for 0 <= b < 1     (`fan2015exponential`)              (2)

whose expectation is 1: the product over sessions is exp(b sum y - psi(b) sum y^2), and E(m) is its
mean over b and -b, where b is half-normal with the deviation 0.2, on a grid up to 0.9
(`waudbysmith2024estimating` discusses such bets).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from rankwright.core.types import F64

_PRIOR = 20.0
_BETS = np.geomspace(0.9, 2e-3, 24)
_SHARES = _BETS * np.exp(-0.5 * (_BETS / 0.2) ** 2)  # half-normal, on a grid of even ratios
_SHARES /= _SHARES.sum()
_COST = -np.log1p(-_BETS) - _BETS
_HALVINGS = 40
_AT_ONCE = 1 << 15
_MOST_SESSIONS = 1e9


class Sums(NamedTuple):
    """How many sessions, the sum of their outcomes and that of the squares: numbers or arrays."""

    n: F64
    total: F64
    squares: F64

    def at(self, places: Any) -> Sums:
        """Return the sums at some places of arrays."""
        return Sums(self.n[places], self.total[places], self.squares[places])

    def times(self, factor: float) -> Sums:
        """Return the sums of so many times the sessions."""
        return Sums(self.n * factor, self.total * factor, self.squares * factor)


@dataclass(frozen=True, slots=True)
class SignTest:
    """Tests whether wins and losses are equally frequent, by (1)."""

    null = 0.5
    ends = (0.0, 1.0)

    def estimate(self, sums: Sums) -> F64:
        """Return the share of wins; 0.5 where there is neither a win nor a loss."""
        wins = (sums.squares + sums.total) / 2.0
        decided = np.where(sums.squares > 0.0, sums.squares, 1.0)
        return np.where(sums.squares > 0.0, wins / decided, self.null)

    def log_e(self, sums: Sums, p: float | F64 = 0.5) -> F64:
        """Return log E(p)."""
        wins, losses = (sums.squares + sums.total) / 2.0, (sums.squares - sums.total) / 2.0
        mixed = special.betaln(_PRIOR + wins, _PRIOR + losses) - special.betaln(_PRIOR, _PRIOR)
        found: F64 = mixed - special.xlogy(wins, p) - special.xlog1py(losses, -np.asarray(p))  # (1)
        return found


@dataclass(frozen=True, slots=True)
class MeanTest:
    """Tests whether the mean outcome is 0, by (2)."""

    null = 0.0
    ends = (-1.0, 1.0)

    def estimate(self, sums: Sums) -> F64:
        """Return the mean outcome."""
        return sums.total / np.where(sums.n > 0.0, sums.n, 1.0)

    def log_e(self, sums: Sums, m: float | F64 = 0.0) -> F64:
        """Return log E(m)."""
        scale = 1.0 + np.abs(m)
        total = np.atleast_1d((sums.total - sums.n * m) / scale)
        squares = (sums.squares - 2.0 * m * sums.total + sums.n * m * m) / scale**2
        squares = np.atleast_1d(np.maximum(squares, 0.0))
        found = np.empty(len(total))
        for lo in range(0, len(total), _AT_ONCE):
            here = slice(lo, lo + _AT_ONCE)
            won, cost = total[here, None] * _BETS, squares[here, None] * _COST
            each = np.logaddexp(won - cost, -won - cost)  # (2)
            found[here] = special.logsumexp(each, axis=1, b=_SHARES) - math.log(2.0)
        return found if np.ndim(sums.total) or np.ndim(m) else found[0]


Test = SignTest | MeanTest


def confidence_sequence(test: Test, sums: Sums, alpha: float) -> tuple[F64, F64]:
    """Return the ends of the interval after each of the sums: what the test does not exclude."""
    n, total, squares = (np.atleast_1d(np.asarray(one, np.float64)) for one in sums)
    sums, goal = Sums(n, total, squares), math.log(1.0 / alpha)
    ends = []
    for end in test.ends:
        inside = test.estimate(sums)
        outside = np.full(len(n), end)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2.0
            kept = test.log_e(sums, middle) < goal
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        reached = np.abs(inside - end) < 1e-9
        ends.append(np.where(reached, end, inside))
    return ends[0], ends[1]


def sessions_needed(test: Test, sums: Sums, alpha: float) -> int | None:
    """Return after how many sessions of the same mean and spread the test decides.

    None where that is more than 1e9, or where there is no effect.
    """
    goal, n = math.log(1.0 / alpha), float(sums.n)
    if not n:
        return None
    low, high = 0.0, _MOST_SESSIONS / n
    if not test.log_e(sums.times(high)) >= goal:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if test.log_e(sums.times(middle)) >= goal:
            high = middle
        else:
            low = middle
    return math.ceil(high * n)

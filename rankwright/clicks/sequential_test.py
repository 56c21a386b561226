"""Sequential tests: e-processes and confidence sequences, valid at any number of looks.

Sessions have outcomes x from -1 to 1. Suppose that the mean outcome is m given all earlier ones.
An e-process E_n(m) then exceeds 1/alpha at any time with a probability of at most alpha (Ville's
inequality). Stopping as soon as it does is a test of level alpha. The values of m that it has not
excluded yet are an interval that covers at all looks together (`howard2021time`,
`johari2022always`). Both tests here need only three sums: the number n of sessions, S = sum of x
and V = sum of x^2.

The sign test is for outcomes -1, 0 and 1. With w wins and l losses it is a beta mixture
(`robbins1970statistical`)

    E(p) = B(a + w, a + l) / B(a, a) / (p^w (1 - p)^l),     p the share of wins                 (1)

with a = 20, for shares of wins around 0.5 +- 0.08. Ties do not count. The test of means is for any
x in [-1, 1]. With y = (x - m) / (1 + |m|), which is at least -1, and psi(b) = -log(1 - b) - b,

    exp(b y - psi(b) y^2) <= 1 + b y     for 0 <= b < 1     (`fan2015exponential`)              (2)

which has the expectation 1. The product over sessions is exp(b sum y - psi(b) sum y^2). E(m) is its
mean over b and -b, where b is half-normal with the deviation 0.2, on a grid up to 0.9
(`waudbysmith2024estimating` discusses these bets).
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
    """Number of sessions, sum of their outcomes and sum of squares: numbers or arrays."""

    n: F64
    total: F64
    squares: F64

    def at(self, places: Any) -> Sums:
        """Return the elements of arrays at these indices."""
        return Sums(self.n[places], self.total[places], self.squares[places])

    def times(self, factor: float) -> Sums:
        """Return the sums of sessions that are repeated ``factor`` times."""
        return Sums(self.n * factor, self.total * factor, self.squares * factor)


@dataclass(frozen=True, slots=True)
class SignTest:
    """Test of whether wins and losses are equally frequent, (1)."""

    null = 0.5
    ends = (0.0, 1.0)

    def estimate(self, sums: Sums) -> F64:
        """Return the share of wins; 0.5 without wins and losses."""
        wins = (sums.squares + sums.total) / 2.0
        decided = np.where(sums.squares > 0.0, sums.squares, 1.0)
        return np.where(sums.squares > 0.0, wins / decided, self.null)

    def log_e(self, sums: Sums, p: float | F64 = 0.5) -> F64:
        """Return log E(p)."""
        wins, losses = (sums.squares + sums.total) / 2.0, (sums.squares - sums.total) / 2.0
        mixed = special.betaln(_PRIOR + wins, _PRIOR + losses) - special.betaln(_PRIOR, _PRIOR)
        log_e: F64 = mixed - special.xlogy(wins, p) - special.xlog1py(losses, -np.asarray(p))  # (1)
        return log_e


@dataclass(frozen=True, slots=True)
class MeanTest:
    """Test of whether the mean outcome is 0, (2)."""

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
        log_e = np.empty(len(total))
        for lo in range(0, len(total), _AT_ONCE):
            here = slice(lo, lo + _AT_ONCE)
            won, cost = total[here, None] * _BETS, squares[here, None] * _COST
            each = np.logaddexp(won - cost, -won - cost)  # (2)
            log_e[here] = special.logsumexp(each, axis=1, b=_SHARES) - math.log(2.0)
        return log_e if np.ndim(sums.total) or np.ndim(m) else log_e[0]


Test = SignTest | MeanTest


def confidence_sequence(test: Test, sums: Sums, alpha: float) -> tuple[F64, F64]:
    """Return the ends of the interval that the test does not exclude, for each of the sums."""
    n, total, squares = (np.atleast_1d(np.asarray(values, np.float64)) for values in sums)
    sums, goal = Sums(n, total, squares), math.log(1.0 / alpha)
    ends = []
    for end in test.ends:
        inside = test.estimate(sums)
        outside = np.full(len(n), end)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2.0
            covered = test.log_e(sums, middle) < goal
            inside = np.where(covered, middle, inside)
            outside = np.where(covered, outside, middle)
        reached = np.abs(inside - end) < 1e-9
        ends.append(np.where(reached, end, inside))
    return ends[0], ends[1]


def sessions_needed(test: Test, sums: Sums, alpha: float) -> int | None:
    """Return the number of sessions of the same mean and spread after which the test decides.

    None if it is more than 1e9, or without an effect.
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

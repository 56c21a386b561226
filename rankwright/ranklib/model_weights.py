"""RankLib's models on one line: ``feature:weight`` terms, or ``feature:threshold:weight`` steps.

    score = b + sum w_f x_f              Coordinate Ascent, Linear Regression (b is feature 0)   (1)
    score = sum over terms w x_f         AdaRank; a feature may come back                        (2)
    score = sum over steps w [x_f > t]   RankBoost                                               (3)

Sums are in float64 and in the order of the line, features in float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.errors import quoted
from rankwright.ranklib.columns import columns
from rankwright.ranklib.java_numbers import java_double
from rankwright.ranklib.text_lines import TextLines


@dataclass(frozen=True)
class _Line:
    """A line of entries, each of a feature; in the order of the file."""

    features: I64

    @property
    def n_features(self) -> int:
        """The highest number of a feature."""
        return int(self.features.max(initial=0))

    def renumbered(self, numbers: I64) -> Self:
        """Return the model with feature f called ``numbers[f]``."""
        return replace(self, features=numbers[self.features])


@dataclass(frozen=True)
class Terms(_Line):
    """Weights of features; feature 0 is a constant."""

    weights: F64

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row."""
        total = np.zeros(X.shape[0])
        total += self.constant
        features = self.features.tolist()
        x = columns(X, features)
        for feature, weight in zip(features, self.weights.tolist(), strict=True):
            if feature > 0:
                total += weight * x[feature]  # (1), (2)
        return total

    def coefficients(self, n_features: int) -> F64:
        """Return one weight per feature, for features 1 to ``n_features``."""
        coef = np.zeros(n_features + 1)
        np.add.at(coef, self.features, self.weights)
        return coef[1:]

    @property
    def constant(self) -> float:
        """What is added to every score."""
        return float(self.weights[self.features == 0].sum())

    def text(self) -> str:
        """Return the line."""
        pairs = zip(self.features.tolist(), self.weights.tolist(), strict=True)
        return " ".join(f"{feature}:{java_double(weight)}" for feature, weight in pairs)


@dataclass(frozen=True)
class Steps(_Line):
    """Thresholds on features, and what exceeding them is worth."""

    thresholds: F64
    weights: F64

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row."""
        total = np.zeros(X.shape[0])
        x = columns(X, self.features.tolist())
        for feature, threshold, weight in self._rows():
            total += weight * (x[feature] > threshold)  # (3)
        return total

    def text(self) -> str:
        """Return the line."""
        return " ".join(f"{f}:{java_double(t)}:{java_double(w)}" for f, t, w in self._rows())

    def _rows(self) -> list[tuple[int, float, float]]:
        columns = (self.features.tolist(), self.thresholds.tolist(), self.weights.tolist())
        return list(zip(*columns, strict=True))


def parse_linear(lines: TextLines) -> Terms:
    """Parse weights by feature, each once; 0 may be among them."""
    terms = _terms(lines, least=0)
    seen: set[int] = set()
    for feature in terms.features.tolist():
        if feature in seen:
            lines.fail(f"feature {feature} has a weight already")
        seen.add(feature)
    return terms


def parse_terms(lines: TextLines) -> Terms:
    """Parse weights of features that may come back."""
    return _terms(lines, least=1)


def parse_steps(lines: TextLines) -> Steps:
    """Parse ``feature:threshold:weight``."""
    rows = _parts(lines, 3, "feature:threshold:weight")
    features = [lines.whole(row[0], "the feature", 1) for row in rows]
    thresholds = [lines.number(row[1], "the threshold") for row in rows]
    weights = [lines.number(row[2], "the weight") for row in rows]
    return Steps(np.array(features, np.int64), np.array(thresholds), np.array(weights))


def _terms(lines: TextLines, least: int) -> Terms:
    rows = _parts(lines, 2, "feature:weight")
    features = [lines.whole(row[0], "the feature", least) for row in rows]
    weights = [lines.number(row[1], "the weight") for row in rows]
    return Terms(np.array(features, np.int64), np.array(weights))


def _parts(lines: TextLines, width: int, form: str) -> list[list[str]]:
    rows = []
    for word in lines.next_line(f"a line of {form}").partition("#")[0].split():
        rows.append(word.split(":"))
        if len(rows[-1]) != width:
            lines.fail(f"{quoted(word)} is not of the form {form}")
    lines.end()
    return rows

"""``vespa``: a rank profile with the model as ranking expressions.

Features are attributes of the document (float fields of the same names): ``attribute(name)``, which
is NaN where a document has none. A tree is nested ``if (x < t, yes, no)``, the form that Vespa
evaluates fastest and in float32: so t is the float32 next above the threshold, written out exactly;
``!(x >= t)`` sends NaN to yes. Vespa has a fast path for a sum of trees and nothing else: the
initial score is added outside of the function that holds them. Put the file into
``schemas/SCHEMA/`` of the application package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy.special import expit

from rankwright.core.types import F64
from rankwright.export.target import (
    KEPT,
    REFUSED,
    SINGLE,
    EngineTarget,
    Job,
    ParityError,
    Release,
    Written,
    accepts_missing,
    float32_thresholds,
    strictly_above,
)
from rankwright.models.portable import Blend, Linear, Network, OneKind, PortableForest, forest_in
from rankwright.ranklib.java_numbers import java_double


class Vespa(EngineTarget):
    """A rank profile for Vespa's application package."""

    families = frozenset({"linear", "additive", "trees", "network", "blend"})
    single = True
    evaluator = "a strict reader of rank profiles and their expressions"
    releases = (Release(engine="vespa", since=(8,), missing="goes where the split says"),)

    def write(self, job: Job) -> Written:
        """Return NAME.profile."""
        model, thresholds = job.model, None
        forest = forest_in(model)
        if forest is not None:
            forest.check_numeric(self.name)
            forest.check_depth(self.name)
            thresholds = float32_thresholds(forest, strictly_above(forest.threshold))
        functions: dict[str, str] = {}
        if isinstance(model, Blend):
            for k, part in enumerate(model.parts, 1):
                expression = _expression(part, job.names, functions, f"part{k}_")
                functions[f"part{k}"] = expression
            score = " + ".join(f"part{k}" for k in range(1, len(model.parts) + 1))
        else:
            score = _expression(model, job.names, functions, "")
        takes = accepts_missing(model)
        return Written(
            files={f"{job.title}.profile": _profile(job.title, functions, score).encode()},
            epsilon=SINGLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
            thresholds=thresholds,
            notes=("Fields must be attributes of type float under the names of the features.",),
            oldest=job.release,
        )

    def scores_on(
        self,
        release: Release,  # noqa: ARG002
        folder: Path,
        about: Mapping[str, Any],
        X: F64,
    ) -> F64:
        """Return the scores by the reader below."""
        names = [feature["name"] for feature in about["features"]]
        return score_profile(folder / f"{about['name']}.profile", names, X)


def _profile(title: str, functions: dict[str, str], score: str) -> str:
    lines = [f"rank-profile {title} inherits default {{"]
    for name, expression in {**functions, "score": score}.items():
        lines += [f"    function {name}() {{", "        expression {"]
        lines += [f"            {line}" for line in expression.split("\n")]
        lines += ["        }", "    }"]
    return "\n".join([*lines, "    first-phase {", "        expression: score", "    }", "}", ""])


def _expression(
    model: OneKind, names: tuple[str, ...], functions: dict[str, str], prefix: str
) -> str:
    """Return a model as an expression; the functions that it calls begin with ``prefix``."""
    if isinstance(model, PortableForest):
        score = _trees(model, strictly_above(model.threshold), names)
        if not model.offset:
            return score
        functions[f"{prefix}forest"] = score
        return f"{prefix}forest + {java_double(model.offset)}"
    features = _features(names, model.fill, functions, prefix)
    if isinstance(model, Linear):
        score = _weighted(model.coef, features)
        return f"{score} + {java_double(model.intercept)}" if model.intercept else score
    return _network(model, features, functions, prefix)


def _trees(model: PortableForest, cuts: Any, names: tuple[str, ...]) -> str:
    missing_left = model.missing_left

    def nested(node: int) -> str:
        if model.left[node] == node:
            return java_double(model.value[node])
        x = f"attribute({names[int(model.feature[node])]})"
        cut = java_double(float(cuts[node]))
        holds = f"!({x} >= {cut})" if missing_left[node] else f"{x} < {cut}"
        return f"if ({holds}, {nested(int(model.left[node]))}, {nested(int(model.right[node]))})"

    return " +\n".join(nested(int(root)) for root in model.roots)


def _features(
    names: tuple[str, ...], fill: F64 | None, functions: dict[str, str], prefix: str
) -> list[str]:
    """Return an expression for each feature; with ``fill``, a function that fills its gaps."""
    plain = [f"attribute({name})" for name in names]
    if fill is None:
        return plain
    for name, x, value in zip(names, plain, fill.tolist(), strict=True):
        functions[f"{prefix}filled_{name}"] = f"if (isNan({x}), {java_double(value)}, {x})"
    return [f"{prefix}filled_{name}" for name in names]


def _weighted(weights: Any, terms: list[str]) -> str:
    kept = [
        f"{java_double(w)} * {term}" for w, term in zip(weights.tolist(), terms, strict=True) if w
    ]
    return " +\n".join(kept) or "0.0"


def _network(model: Network, h: list[str], functions: dict[str, str], prefix: str) -> str:
    *hidden, (last, constant) = model.layers
    for number, (weight, bias) in enumerate(hidden, 1):
        names = []
        for unit in range(weight.shape[1]):
            total = f"{_weighted(weight[:, unit], h)} +\n{java_double(bias[unit])}"
            names.append(f"{prefix}layer{number}_unit{unit + 1}")
            functions[names[-1]] = f"{model.activation}({total})"
        h = names
    return f"{_weighted(last[:, 0], h)} +\n{java_double(constant[0])}"


# --- reading -----------------------------------------------------------------------------------
# A strict reader of rank profiles: functions, ``first-phase`` and ranking expressions.
#
# Expressions are numbers, ``attribute(name)``, calls of functions, + - * /, comparisons, ``!`` and
# ``if (condition, yes, no)``, in double precision, for all rows at once; a comparison with NaN is
# 0.


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+(?:E-?\d+)?)|(?P<word>[A-Za-z_][\w-]*)|(?P<sign><=|>=|[-+*/<>!(),{}:]))"
)
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "isNan": lambda z: np.isnan(z).astype(np.float64),
    "relu": lambda z: np.maximum(z, 0.0),
    "sigmoid": expit,
    "tanh": np.tanh,
    "elu": lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0))),
}
_FRAMES = 20_000


def score_profile(path: Path, names: list[str], X: F64) -> F64:
    """Return the score of each row of attributes in the order of ``names``."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParityError(f"{path} cannot be read: {error}.") from None
    columns = {name: X[:, j] for j, name in enumerate(names)}
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))  # deep trees are nested as deeply
    try:
        return np.broadcast_to(_Profile(path, text, columns).score(), len(X)).copy()
    finally:
        sys.setrecursionlimit(before)


class _Profile:
    """One rank profile: its tokens, and the functions read so far."""

    def __init__(self, path: Path, text: str, columns: dict[str, F64]) -> None:
        self._path, self._columns = path, columns
        self._tokens = _tokens(path, text)
        self._at = 0
        self._functions: dict[str, Any] = {}

    def score(self) -> Any:
        """Read the profile and return what its first phase scores."""
        self._expect("rank-profile")
        self._take()
        if self._peek() == "inherits":
            self._take()
            self._take()
        self._expect("{")
        first = None
        while (word := self._take()) != "}":
            if word == "function":
                name = self._take()
                if name in self._functions or name in _FUNCTIONS:
                    self._fail(f"function {name} appears twice")
                self._expect("(", ")", "{")
                self._functions[name] = self._expression()
                self._expect("}")
            elif word == "first-phase":
                self._expect("{")
                first = self._expression()
                self._expect("}")
            else:
                self._fail(f"'{word}' is not expected in a rank profile")
        if first is None or self._peek():
            self._fail("it has no first-phase, or goes on after its end")
        return first

    def _expression(self) -> Any:
        self._expect("expression")
        if self._take() == "{":
            found = self._compared()
            self._expect("}")
            return found
        return self._compared()

    def _compared(self) -> Any:
        left = self._sum()
        sign = self._peek()
        if sign not in ("<", "<=", ">", ">="):
            return left
        self._take()
        right = self._sum()
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
        return compare[sign](left, right).astype(np.float64)

    def _sum(self) -> Any:
        total = self._product()
        while (sign := self._peek()) in ("+", "-"):
            self._take()
            term = self._product()
            total = total + term if sign == "+" else total - term
        return total

    def _product(self) -> Any:
        total = self._single()
        while (sign := self._peek()) in ("*", "/"):
            self._take()
            factor = self._single()
            total = total * factor if sign == "*" else total / factor
        return total

    def _single(self) -> Any:
        word = self._take()
        if word == "-":
            return -self._single()
        if word == "!":
            return (self._single() == 0.0).astype(np.float64)
        if word == "(":
            found = self._compared()
            self._expect(")")
            return found
        if word[:1].isdigit():
            return np.float64(word)
        if word == "attribute":
            self._expect("(")
            name = self._take()
            self._expect(")")
            if name not in self._columns:
                self._fail(f"there is no feature '{name}'")
            return self._columns[name]
        if word == "if":
            self._expect("(")
            holds = self._compared()
            self._expect(",")
            yes = self._compared()
            self._expect(",")
            no = self._compared()
            self._expect(")")
            return np.where(holds != 0.0, yes, no)
        if word in _FUNCTIONS:
            self._expect("(")
            inside = self._compared()
            self._expect(")")
            return _FUNCTIONS[word](inside)
        if word not in self._functions:
            self._fail(f"there is no function '{word}'")
        return self._functions[word]

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        word = self._peek()
        if not word:
            self._fail("it ends in the middle")
        self._at += 1
        return word

    def _expect(self, *words: str) -> None:
        for word in words:
            found = self._take()
            if found != word:
                self._fail(f"'{word}' is expected where '{found}' stands")

    def _fail(self, what: str) -> NoReturn:
        raise ParityError(f"{self._path} would be refused: {what}.")


def _tokens(path: Path, text: str) -> list[str]:
    found, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParityError(
                f"{path} would be refused: '{text[at : at + 20].strip()}' is no token."
            )
        found.append(match[match.lastgroup or 0])
        at = match.end()
    return found

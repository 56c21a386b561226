"""RankLib's text models: read strictly into plain values, scored as RankLib does, written again.

The first line names the ranker, ``## LambdaMART``; further lines of ``##`` hold its settings. What
follows, the body, is one of three kinds:

- ``<ensemble>`` blocks of trees (`Ensembles`): MART, LambdaMART, Random Forests;
- ``feature:weight`` (`Terms`) or ``feature:threshold:weight`` (`Steps`), on one line: Coordinate
  Ascent, Linear Regression, AdaRank, RankBoost;
- features, sizes of layers and weights by neuron (`Network`): RankNet, LambdaRank, ListNet.

Features are numbered from 1 and have float32 precision, whatever the data has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

import numpy as np
from scipy import sparse
from scipy.special import expit

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.data.streams import atomic_text, decoded, open_bytes
from rankwright.errors import DataError, quoted
from rankwright.ranklib.java_numbers import F32, java_double, java_float
from rankwright.registry import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Body(Protocol):
    """What follows the settings of a model text."""

    @property
    def n_features(self) -> int:
        """The highest number of a feature that it uses."""

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row, in RankLib's own arithmetic."""

    def text(self) -> str:
        """Return the text, as RankLib writes it."""

    def renumbered(self, numbers: I64) -> Self:
        """Return the model with feature f called ``numbers[f]``; 0 stays 0."""


@dataclass(frozen=True)
class ModelText:
    """A model of RankLib: the ranker's name, its settings as (name, value), and what it learnt."""

    name: str
    settings: tuple[tuple[str, str], ...]
    body: Body

    @property
    def n_features(self) -> int:
        """The highest number of a feature that the model uses."""
        return self.body.n_features

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row, in RankLib's own arithmetic."""
        return self.body.scores(X)

    def with_features(self, features: Sequence[int]) -> ModelText:
        """Return the model with its features 1, 2, ... called by these numbers."""
        return replace(self, body=self.body.renumbered(np.array([0, *features])))

    def text(self) -> str:
        """Return the whole text, as RankLib writes it."""
        lines = [f"## {self.name}"]
        for name, value in self.settings:
            colon = name.startswith(("Layer ", "Train with"))
            lines.append(f"## {name}{':' if colon else ' ='} {value}")
        return "\n".join(lines) + "\n" + self.body.text()


def read_model_text(path: str | Path) -> ModelText:
    """Read a model file of RankLib, plain or compressed."""
    with open_bytes(path) as stream:
        return parse_model_text(decoded(stream.read(), path), str(path))


def parse_model_text(text: str, name: str = "the model text") -> ModelText:
    """Parse a model text; ``name`` is what an error calls it."""
    lines = TextLines(text, name)
    first = lines.next_line("'## ' and the name of a ranker, such as ## LambdaMART")
    kind = first.removeprefix("##").strip()
    if not first.startswith("##"):
        lines.fail("this is no model of RankLib, which begins with '## ' and the ranker's name")
    if kind.lower() not in _PARSERS:
        known = [name for name, _ in _PARSERS.values()]
        raise DataError(f"{lines.place()}: {unknown('ranker of RankLib', kind, known)}")
    settings = []
    while (line := lines.peek()) is not None and line.startswith("##"):
        about = lines.next_line("a setting").removeprefix("##").strip()
        cut = ":" if "=" not in about else "="
        key, _, value = about.partition(cut)
        settings.append((key.strip(), value.strip()))
    spelled, parse = _PARSERS[kind.lower()]
    return ModelText(spelled, tuple(settings), parse(lines))


def write_model_text(model: ModelText, path: str | Path) -> None:
    """Write a model text; the file appears whole or not at all."""
    with atomic_text(path) as stream:
        stream.write(model.text())


# --- lines and features ------------------------------------------------------------------------


_MOST = 1 << 26  # as for the features of a data file
_DIGITS = 100


class TextLines:
    """Goes through a text line by line; blank lines are passed over."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines = text.removeprefix("\ufeff").splitlines()
        self._at = 0  # of the line to come
        self._last = 0  # number of the line that was taken last, from 1

    def peek(self) -> str | None:
        """Return the next line without its blanks at the ends, or None after the last."""
        while self._at < len(self._lines) and not self._lines[self._at].strip():
            self._at += 1
        return self._lines[self._at].strip() if self._at < len(self._lines) else None

    def next_line(self, wanted: str) -> str:
        """Take the next line; ``wanted`` says what the text lacks if there is none."""
        line = self.peek()
        if line is None:
            raise DataError(f"{self.name} ends where {wanted} is expected; is it truncated?")
        self._at += 1
        self._last = self._at
        return line

    def end(self) -> None:
        """Refuse a text that goes on."""
        if self.peek() is not None:
            rest = self.next_line("nothing")
            self.fail(f"nothing is expected after the model, but there is {quoted(rest)}")

    def place(self) -> str:
        """Return the file and the number of the last line taken."""
        return f"{self.name}, line {self._last}"

    def fail(self, what: str) -> NoReturn:
        """Raise the sentence for an error in the last line taken."""
        raise DataError(f"{self.place()}: {what}.")

    def whole(self, text: str, what: str, least: int = 0) -> int:
        """Return a whole number from ``least`` on."""
        if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS or int(text) < least:
            self.fail(f"{what} {quoted(text)} is not a whole number from {least} on")
        if int(text) > _MOST:
            self.fail(f"{what} {text} is beyond {_MOST}, the highest that is taken")
        return int(text)

    def number(self, text: str, what: str) -> float:
        """Return a finite number."""
        try:
            value = float(text if "_" not in text else "")
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{what} {quoted(text)} is not a number")
        return value


def columns(X: FloatMatrix, features: Iterable[int]) -> dict[int, F64]:
    """Return features by number, rounded to float32; 0 beyond the last, and where missing."""
    by_column: Any = sparse.csc_array(X) if sparse.issparse(X) else X
    return {feature: _column(by_column, feature) for feature in set(features)}


def matrix(X: FloatMatrix, features: list[int]) -> F64:
    """Return the features of these numbers, side by side."""
    found = np.empty((X.shape[0], len(features)))
    by_number = columns(X, features)
    for place, feature in enumerate(features):
        found[:, place] = by_number[feature]
    return found


def _column(X: Any, feature: int) -> F64:
    if feature > X.shape[1]:
        return np.zeros(X.shape[0])
    taken = X[:, [feature - 1]]
    values = (taken if isinstance(taken, np.ndarray) else taken.toarray()).ravel()
    single: F64 = values.astype(np.float32).astype(np.float64)
    return np.where(np.isnan(single), 0.0, single)


# --- trees -------------------------------------------------------------------------------------
# ``<ensemble>`` blocks, in either spelling of blanks around values.
#
# A split sends a document left where x <= threshold, both in float32. An ensemble adds up its
# trees, rounding to float32 after each; Random Forests are the mean of their ensembles:
#
#     s_0 = 0,   s_t = float32(s_{t-1} + weight_t output_t(x)),   score = mean of s_T          (1)


_TOKEN = re.compile(r"<[^<>]*>|[^<>]+|[<>]")
_TREE = re.compile(r'<tree id="(?P<id>[^"]*)" weight="(?P<weight>[^"]*)">')
_SIDES = ("left", "right")
_ROWS = 4096


@kernel
def _score_rows(lo, hi, X, feature, threshold, below, output, root, weight, first, out):
    for i in range(lo, hi):
        total = 0.0
        for e in range(len(first) - 1):
            s = np.float32(0.0)
            for t in range(first[e], first[e + 1]):
                node = root[t]
                while feature[node] >= 0:
                    node = below[node, 0 if X[i, feature[node]] <= threshold[node] else 1]
                s = np.float32(np.float64(s) + weight[t] * output[node])  # (1)
            total += np.float64(s)
        out[i] = total / (len(first) - 1)


@dataclass(frozen=True)
class Tree:
    """Nodes in the order of the text, the root first; a leaf has feature 0 and no children."""

    weight: float
    feature: I64
    threshold: F32
    left: I64
    right: I64
    output: F64


@dataclass(frozen=True)
class Ensembles:
    """Ensembles of trees: one, or those of Random Forests."""

    ensembles: tuple[tuple[Tree, ...], ...]
    forest: bool = False

    @property
    def trees(self) -> list[Tree]:
        """All trees, one ensemble after the other."""
        return [tree for ensemble in self.ensembles for tree in ensemble]

    @property
    def n_features(self) -> int:
        """The highest number of a feature."""
        return max((int(tree.feature.max()) for tree in self.trees), default=0)

    def split_counts(self) -> dict[int, int]:
        """Return how often each feature is split on, by its number."""
        every = [tree.feature[tree.feature > 0] for tree in self.trees]
        joined = np.concatenate([np.empty(0, np.int64), *every])
        features, counts = np.unique(joined, return_counts=True)
        return dict(zip(features.tolist(), counts.tolist(), strict=True))

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row."""
        trees, n = self.trees, X.shape[0]
        used = np.array(sorted(self.split_counts()), np.int64)
        root = np.cumsum([0, *(len(tree.feature) for tree in trees)])[:-1]
        place = np.full(self.n_features + 1, -1)
        place[used] = np.arange(len(used))
        below = np.concatenate([np.stack([tree.left, tree.right], 1) for tree in trees])
        shift = np.repeat(root, [len(tree.feature) for tree in trees])
        nodes = (
            place[np.concatenate([tree.feature for tree in trees])],
            np.concatenate([tree.threshold for tree in trees]),
            below + shift[:, None],
            np.concatenate([tree.output for tree in trees]),
        )
        weight = np.array([tree.weight for tree in trees])
        first = np.cumsum([0, *map(len, self.ensembles)])
        out = np.empty(n)
        bounds = row_ranges(n, _ROWS)
        map_ranges(_score_rows, bounds, matrix(X, used.tolist()), *nodes, root, weight, first, out)
        return out

    def renumbered(self, numbers: I64) -> Ensembles:
        """Return the model with feature f called ``numbers[f]``."""
        renamed = [
            tuple(replace(tree, feature=numbers[tree.feature]) for tree in ensemble)
            for ensemble in self.ensembles
        ]
        return replace(self, ensembles=tuple(renamed))

    def text(self) -> str:
        """Return the blocks, in Random Forests each with an empty line below."""
        below = "\n" if self.forest else ""
        return "\n" + "".join(ensemble_text(ensemble) + below for ensemble in self.ensembles)


def ensemble_text(ensemble: Sequence[Tree]) -> str:
    """Return one ``<ensemble>`` block."""
    lines = ["<ensemble>"]
    for number, tree in enumerate(ensemble, 1):
        lines.append(f'\t<tree id="{number}" weight="{java_float(tree.weight)}">')
        lines += _split_lines(tree)
        lines.append("\t</tree>")
    return "\n".join([*lines, "</ensemble>", ""])


def _split_lines(tree: Tree) -> Iterator[str]:
    waiting: list[tuple[int, str, int]] = [(0, "", 2)]  # node (or -1: close), side, depth
    while waiting:
        node, side, depth = waiting.pop()
        tabs = "\t" * depth
        if node < 0:
            yield f"{tabs}</split>"
            continue
        yield f'{tabs}<split pos="{side}">' if side else f"{tabs}<split>"
        waiting.append((-1, "", depth))
        if tree.feature[node] > 0:
            yield f"{tabs}\t<feature> {tree.feature[node]} </feature>"
            yield f"{tabs}\t<threshold> {java_float(tree.threshold[node])} </threshold>"
            waiting.append((int(tree.right[node]), "right", depth + 1))
            waiting.append((int(tree.left[node]), "left", depth + 1))
        else:
            yield f"{tabs}\t<output> {java_double(tree.output[node])} </output>"


def parse_trees(lines: TextLines) -> Ensembles:
    """Parse one ensemble."""
    tokens = _Tokens(lines)
    found = _ensemble(tokens)
    lines.end()
    return Ensembles((found,))


def parse_forest(lines: TextLines) -> Ensembles:
    """Parse one ensemble or more."""
    tokens = _Tokens(lines)
    found = [_ensemble(tokens)]
    while lines.peek() is not None:
        found.append(_ensemble(tokens))
    return Ensembles(tuple(found), forest=True)


class _Tokens:
    """Tags and the texts between them; blanks at their ends do not count."""

    def __init__(self, lines: TextLines) -> None:
        self.lines = lines
        self._rest: list[str] = []

    def take(self, wanted: str) -> str:
        while not self._rest:
            found = [token.strip() for token in _TOKEN.findall(self.lines.next_line(wanted))]
            self._rest = [token for token in reversed(found) if token]
        return self._rest.pop()

    def expect(self, tag: str) -> None:
        token = self.take(tag)
        if token != tag:
            self.lines.fail(f"{tag} is expected where {quoted(token)} stands")

    def value(self, name: str) -> str:
        """Take a text and the tag that closes it."""
        text = self.take(f"the value of <{name}>")
        self.expect(f"</{name}>")
        return text


def _ensemble(tokens: _Tokens) -> tuple[Tree, ...]:
    tokens.expect("<ensemble>")
    trees: list[Tree] = []
    while (token := tokens.take("</ensemble>")) != "</ensemble>":
        match = _TREE.fullmatch(token)
        if match is None:
            tokens.lines.fail(
                f'<tree id="..." weight="..."> is expected where {quoted(token)} stands'
            )
        text = java_float(tokens.lines.number(match["weight"], "the weight of the tree"))
        weight = float(np.float32(tokens.lines.number(text, "the weight of the tree")))
        trees.append(_tree(tokens, weight))
        tokens.expect("</tree>")
    if not trees:
        tokens.lines.fail("the ensemble has no tree")
    return tuple(trees)


def _tree(tokens: _Tokens, weight: float) -> Tree:
    lines = tokens.lines
    feature: list[int] = []
    threshold: list[float] = []
    output: list[float] = []
    child: list[list[int]] = []
    path: list[int] = []
    while True:
        token = tokens.take("</split>")
        if token == "</split>" and path:
            node = path.pop()
            if feature[node] > 0 and len(child[node]) < 2:
                lines.fail(f"the split lacks its {_SIDES[len(child[node])]} part")
            if not path:
                break
            continue
        _check_opening(tokens, token, path, feature, child)
        if path:
            child[path[-1]].append(len(feature))
        path.append(len(feature))
        child.append([])
        if (inside := tokens.take("<feature> or <output>")) == "<feature>":
            feature.append(lines.whole(tokens.value("feature"), "the feature", 1))
            tokens.expect("<threshold>")
            threshold.append(lines.number(tokens.value("threshold"), "the threshold"))
            output.append(0.0)
        elif inside == "<output>":
            feature.append(0)
            threshold.append(0.0)
            output.append(lines.number(tokens.value("output"), "the output"))
        else:
            lines.fail(f"<feature> or <output> is expected where {quoted(inside)} stands")
    children = np.array([pair or [-1, -1] for pair in child], np.int64)
    with np.errstate(over="ignore"):
        single = np.array(output).astype(np.float32).astype(np.float64)
        cuts = np.array(threshold).astype(np.float32)
    if not (np.isfinite(single).all() and np.isfinite(cuts).all()):
        lines.fail("a number of this tree is beyond float32, which RankLib's trees are in")
    return Tree(weight, np.array(feature, np.int64), cuts, children[:, 0], children[:, 1], single)


def _check_opening(
    tokens: _Tokens, token: str, path: list[int], feature: list[int], child: list[list[int]]
) -> None:
    if not path:
        wanted = "<split>"
    elif feature[path[-1]] == 0 or len(child[path[-1]]) == 2:
        wanted = "</split>"
    else:
        wanted = f'<split pos="{_SIDES[len(child[path[-1]])]}">'
    if token != wanted:
        tokens.lines.fail(f"{wanted} is expected where {quoted(token)} stands")


# --- weights and steps -------------------------------------------------------------------------
# Models on one line: ``feature:weight`` terms, or ``feature:threshold:weight`` steps.
#
#     score = b + sum w_f x_f              Coordinate Ascent, Linear Regression (b: feature 0)  (2)
#     score = sum over terms w x_f         AdaRank; a feature may come back                     (3)
#     score = sum over steps w [x_f > t]   RankBoost                                            (4)
#
# Sums are in float64 and in the order of the line, features in float32.


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
                total += weight * x[feature]  # (2), (3)
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
            total += weight * (x[feature] > threshold)  # (4)
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


# --- networks ----------------------------------------------------------------------------------
# RankNet, LambdaRank, and ListNet, whose network has no hidden layer.
#
#     h_0 = x,   h_k = sigmoid(W_{k-1}' h_{k-1} + b_k),   score = h_K, of one neuron           (5)
#
# The text lists the features, the number of hidden layers, their sizes, and for each neuron a line
# ``layer neuron weights``. The last neuron of layer 0 is the constant 1; its weights are the b of
# every later layer, one after the other.


@dataclass(frozen=True)
class Network:
    """Weights from layer to layer (rows: from, columns: to) and a constant per layer."""

    features: tuple[int, ...]
    weights: tuple[F64, ...]
    constants: tuple[F64, ...]

    @property
    def n_features(self) -> int:
        """The highest number of a feature."""
        return max(self.features)

    @property
    def hidden(self) -> list[int]:
        """Sizes of the hidden layers."""
        return [layer.shape[1] for layer in self.weights[:-1]]

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row, between 0 and 1."""
        h = matrix(X, list(self.features))
        for weights, constant in zip(self.weights, self.constants, strict=True):
            h = expit(_product(h, weights) + constant)  # (5)
        scores: F64 = h[:, 0]
        return scores

    def renumbered(self, numbers: I64) -> Network:
        """Return the model with feature f called ``numbers[f]``."""
        return replace(self, features=tuple(numbers[list(self.features)].tolist()))

    def text(self) -> str:
        """Return features, sizes of layers and a line per neuron."""
        lines = [" ".join(map(str, self.features)), str(len(self.hidden))]
        lines += [str(size) for size in self.hidden]
        for layer, weights in enumerate(self.weights):
            rows = [*weights]
            if layer == 0:
                rows.append(np.concatenate(self.constants))
            for neuron, row in enumerate(rows):
                values = " ".join(java_double(value) for value in row.tolist())
                lines.append(f"{layer} {neuron} {values}")
        return "\n".join(lines) + "\n"


def parse_network(lines: TextLines) -> Network:
    """Parse features, sizes of layers and a line per neuron."""
    words = lines.next_line("the line of feature numbers").split()
    features = tuple(lines.whole(word, "the feature", 1) for word in words)
    if len(set(features)) < len(features):
        lines.fail("a feature is listed twice")
    n_hidden = lines.whole(lines.next_line("the number of hidden layers"), "the number of layers")
    hidden = [
        lines.whole(lines.next_line("the size of a hidden layer"), "the size of the layer", 1)
        for _ in range(n_hidden)
    ]
    sizes = [len(features), *hidden, 1]
    weights, constants = [], np.empty(0)
    for layer, (here, below) in enumerate(pairwise(sizes)):
        rows = [_neuron(lines, layer, neuron, below) for neuron in range(here)]
        weights.append(np.array(rows))
        if layer == 0:
            constants = np.array(_neuron(lines, 0, here, sum(sizes[1:])))
    lines.end()
    of_layer = np.split(constants, np.cumsum(sizes[1:])[:-1])
    return Network(features, tuple(weights), tuple(of_layer))


def _neuron(lines: TextLines, layer: int, neuron: int, width: int) -> list[float]:
    words = lines.next_line(f"the weights of neuron {neuron} of layer {layer}").split()
    if words[:2] != [str(layer), str(neuron)]:
        lines.fail(f"the weights of neuron {neuron} of layer {layer} are expected here")
    if len(words) != width + 2:
        lines.fail(f"there are {len(words) - 2} weights where {width} are expected")
    return [lines.number(word, "the weight") for word in words[2:]]


def _product(h: F64, weights: F64) -> F64:
    """Return h times weights, summed neuron after neuron as RankLib does."""
    total = np.zeros((h.shape[0], weights.shape[1]))
    for j in range(h.shape[1]):
        total += h[:, j, None] * weights[j]
    return total


_BODY_PARSERS: dict[str, Callable[[TextLines], Body]] = {
    "MART": parse_trees,
    "LambdaMART": parse_trees,
    "Random Forests": parse_forest,
    "Coordinate Ascent": parse_linear,
    "Linear Regression": parse_linear,
    "AdaRank": parse_terms,
    "RankBoost": parse_steps,
    "RankNet": parse_network,
    "LambdaRank": parse_network,
    "ListNet": parse_network,
}
_PARSERS = {name.lower(): (name, parse) for name, parse in _BODY_PARSERS.items()}

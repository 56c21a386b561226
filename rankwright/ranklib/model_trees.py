"""RankLib's trees: ``<ensemble>`` blocks, in either spelling of blanks around values.

A split sends a document left where x <= threshold, both in float32. An ensemble adds up its trees,
rounding to float32 after each; Random Forests are the mean of their ensembles:

    s_0 = 0,   s_t = float32(s_{t-1} + weight_t output_t(x)),   score = mean of s_T           (1)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.errors import quoted
from rankwright.ranklib.columns import matrix
from rankwright.ranklib.java_numbers import F32, java_double, java_float
from rankwright.ranklib.text_lines import TextLines

_TOKEN = re.compile(r"<[^<>]*>|[^<>]+|[<>]")
_TREE = re.compile(r'<tree id="(?P<id>[^"]*)" weight="(?P<weight>[^"]*)">')
_SIDES = ("left", "right")
_ROWS = 4096

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _score_rows(lo, hi, X, feature, threshold, below, output, root, weight, first, out):  # type: ignore[no-untyped-def]
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


# --- API -------------------------------------------------------------------------------------


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


# --- parsing ---------------------------------------------------------------------------------


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

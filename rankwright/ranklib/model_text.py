"""RankLib's text models: read strictly into plain values, scored as RankLib does, written again.

The first line names the ranker, ``## LambdaMART``; further lines of ``##`` hold its settings. What
follows is one of three kinds:

- ``<ensemble>`` blocks of trees: MART, LambdaMART, Random Forests (`model_trees`);
- ``feature:weight`` or ``feature:threshold:weight``, on one line: Coordinate Ascent, Linear
  Regression, AdaRank, RankBoost (`model_weights`);
- features, sizes of layers and weights by neuron: RankNet, LambdaRank, ListNet (`model_network`).

Features are numbered from 1 and have float32 precision, whatever the data has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.data.streams import atomic_text, decoded, open_bytes
from rankwright.errors import DataError
from rankwright.ranklib.text_lines import TextLines
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
    """Parse a model text; ``name`` is what a fault calls it."""
    lines = TextLines(text, name)
    first = lines.next_line("'## ' and the name of a ranker, such as ## LambdaMART")
    kind = first.removeprefix("##").strip()
    parsers = _parsers()
    if not first.startswith("##"):
        lines.fail("this is no model of RankLib, which begins with '## ' and the ranker's name")
    if kind.lower() not in parsers:
        known = [name for name, _ in parsers.values()]
        raise DataError(f"{lines.place()}: {unknown('ranker of RankLib', kind, known)}")
    settings = []
    while (line := lines.peek()) is not None and line.startswith("##"):
        about = lines.next_line("a setting").removeprefix("##").strip()
        cut = ":" if "=" not in about else "="
        key, _, value = about.partition(cut)
        settings.append((key.strip(), value.strip()))
    spelled, parse = parsers[kind.lower()]
    return ModelText(spelled, tuple(settings), parse(lines))


def write_model_text(model: ModelText, path: str | Path) -> None:
    """Write a model text; the file appears whole or not at all."""
    with atomic_text(path) as stream:
        stream.write(model.text())


def _parsers() -> dict[str, tuple[str, Callable[[TextLines], Body]]]:
    from rankwright.ranklib.model_network import parse_network
    from rankwright.ranklib.model_trees import parse_forest, parse_trees
    from rankwright.ranklib.model_weights import parse_linear, parse_steps, parse_terms

    by_name: dict[str, Callable[[TextLines], Body]] = {
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
    return {name.lower(): (name, parse) for name, parse in by_name.items()}

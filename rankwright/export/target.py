"""What every target of an export is: files from a model, and an evaluator that reads them again.

The evaluator must not share code with the writer: another tool where there is one, else a strict
reader of the format's grammar. A target states the precision of its numbers, what becomes of
missing values, and how it transforms scores, if it does; `rankwright.export.folder` puts that into
``export.json`` and makes the vectors that prove it.
"""

from __future__ import annotations

import json
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright import registry
from rankwright.core.parameters import both, either
from rankwright.core.types import F64, I64
from rankwright.data.frames import Categories
from rankwright.errors import RankwrightError, UsageError
from rankwright.models.portable import HIGHEST, Blend, OneKind, Portable, PortableForest
from rankwright.models.thresholds import not_above
from rankwright.rankers.base import Ranker

SINGLE, DOUBLE = 2.0**-23, 2.0**-52
_SECONDS = 300
_LARGEST = 1e30  # which leaves room for sums in single precision

KEPT = "a missing value (NaN) scores as in the model"
REFUSED = "the model takes no missing values: give every feature a number"


class ParityError(RankwrightError, ValueError):
    """An export does not hold, or does not score as the model it was made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Versions of an engine, from ``since`` on, whose scoring code answers alike.

    Attributes
    ----------
    engine
        Its name on the command line.
    since
        The first of these versions.
    missing
        What becomes of a missing value there.
    setup
        How the engine is run or fed, where that matters.
    """

    engine: str
    since: tuple[int, ...]
    missing: str
    setup: str = ""

    @property
    def version(self) -> str:
        """The first version, as text."""
        return ".".join(map(str, self.since))


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be exported: a fitted ranker, its model in parts, its features' names.

    ``release`` has the versions of the engine that it is for; None where a target has none.
    """

    ranker: Ranker
    model: Portable
    names: tuple[str, ...]
    title: str
    release: Release | None = None

    @property
    def one_kind(self) -> OneKind:
        """The model, for a target that holds no blend, which `Target.check` has refused."""
        assert not isinstance(self.model, Blend)
        return self.model

    @property
    def categories(self) -> dict[str, Categories]:
        """The categories of features that have some, by their names in the export."""
        given = getattr(self.ranker, "feature_names_in_", ())
        known = getattr(self.ranker, "categories_", {})
        pairs = zip(self.names, map(str, given), strict=False)
        return {name: known[own] for name, own in pairs if own in known}


@dataclass(frozen=True, slots=True)
class Written:
    """What a target made of a model.

    Attributes
    ----------
    files
        Contents by name.
    epsilon
        How much the format rounds a number, relative to its size.
    missing
        A sentence on missing values.
    takes_missing : (d,) bool
        The features whose missing values score as in the model.
    offset, scale
        A score s of the model is scale s + offset in the export.
    sigmoid
        The export's score is the logistic function of that.
    thresholds
        For each split, the highest number that the export sends left, where it cannot hold the
        model's own threshold.
    upload
        Requests that bring the files to their engine.
    notes
        What the user should know, a sentence each.
    oldest
        The oldest release on which the export scores as the model, None where there are none.
    """

    files: Mapping[str, bytes]
    epsilon: float
    missing: str
    takes_missing: Any
    offset: float = 0.0
    scale: float = 1.0
    sigmoid: bool = False
    thresholds: F64 | None = None
    upload: tuple[dict[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    oldest: Release | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


class Target(ABC):
    """Base of the targets; a subclass writes files and reads them again.

    Attributes
    ----------
    families : set of str
        The kinds of models that the format holds.
    single : bool
        Whether features are float32 there.
    evaluator : str
        Who reads the export again.
    releases : tuple of Release
        The engines that read the format, by version, the newest first; of two that differ in their
        setup alone, the first is the one that exports are written for.
    """

    families: ClassVar[frozenset[str]]
    single: ClassVar[bool]
    evaluator: ClassVar[str]
    lacks: ClassVar[str] = ""
    releases: ClassVar[tuple[Release, ...]] = ()

    @property
    def name(self) -> str:
        """The name in the registry."""
        return registry.name_of("exports", type(self)) or type(self).__name__

    def check(self, job: Job) -> None:
        """Refuse a model that the format does not hold, with a sentence."""
        family = job.model.family
        if isinstance(job.model, Blend) and family not in self.families:
            kinds = both(list(dict.fromkeys(part.family for part in job.model.parts)))
            raise UsageError(
                f"{self.name} holds one kind of model, and this blend has parts of several "
                f"({kinds}); export it to {either(_holding(family))}, blend members of one kind, "
                "or take one model, as auto does with ensemble=False."
            )
        if family not in self.families:
            families = ", ".join(sorted(self.families))
            article = "an" if family == "additive" else "a"
            raise UsageError(
                f"{self.name} has no place for {article} {family} model{self.lacks}; "
                f"it holds {families}."
            )
        if not job.model.largest <= _LARGEST:
            raise UsageError(
                f"the model has the number {job.model.largest:.3g}, and sums of numbers above "
                f"{_LARGEST:g} overflow in other systems; fit it on scaled features."
            )

    @abstractmethod
    def write(self, job: Job) -> Written:
        """Return the files of the export."""

    @abstractmethod
    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return what the files in ``folder`` score each row, by an evaluator of their own."""


def _holding(family: str) -> list[str]:
    """Return the names of our targets that hold a family of models."""
    return [
        name for name in registry.EXPORTS if family in registry.resolve("exports", name).families
    ]


class EngineTarget(Target):
    """Base of the targets whose engine has versions that answer differently."""

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores on the version that the export was written for."""
        engine = about.get("engine") or {"name": about["format"], "version": None}
        release = self.release(engine["name"], engine["version"])
        return self.scores_on(release, folder, about, X)

    @abstractmethod
    def scores_on(self, release: Any, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return what the files score each row on a release; NaN where it answers by an error."""

    def release(self, engine: str, version: str | None) -> Release:
        """Return the release that has a version of an engine, or the newest."""
        known = [release for release in self.releases if release.engine == engine]
        if not known:
            engines = ", ".join(dict.fromkeys(release.engine for release in self.releases))
            raise UsageError(f"{self.name} is not read by '{engine}', only by {engines}.")
        if version is None:
            return known[0]
        if not re.fullmatch(r"\d+(\.\d+)*", version):
            raise UsageError(f"a version is numbers and dots, such as 3.8, not '{version}'.")
        numbers = tuple(map(int, version.split(".")))
        for release in known:
            if release.since <= numbers:
                return release
        raise UsageError(
            f"{engine} {version} is older than {known[-1].version}, the first version that exports "
            f"are written for; give the version of {engine} itself, not of a plugin."
        )

    def releases_for(self, family: str) -> tuple[Release, ...]:  # noqa: ARG002
        """Return the releases whose answers to a family of models are known."""
        return self.releases

    def oldest(self, engine: str) -> Release:
        """Return the oldest release of an engine."""
        return [own for own in self.releases if own.engine == engine and not own.setup][-1]


def accepts_missing(model: Portable) -> Any:
    """Whether the model takes missing values of each feature: all of a forest's."""
    if isinstance(model, Blend):
        return np.all([accepts_missing(part) for part in model.parts], axis=0)
    if isinstance(model, PortableForest):
        return np.ones(model.n_features, bool)
    return ~np.isnan(model.fill_value)


# --- engines without a direction per split -------------------------------------------------------


class Input(NamedTuple):
    """A feature as an engine reads it: its name there, its column, its value where missing."""

    name: str
    column: int
    missing: float


def filled_inputs(forest: PortableForest, names: Sequence[str]) -> tuple[list[Input], I64]:
    """Return inputs that are never missing and score as the forest does, and that of each node.

    A number takes the place of a missing value: the lowest or the highest, which go left or right
    at every split. A feature whose missing values go left at some splits and right at others is
    read twice, under two names.
    """
    inputs: list[Input] = []
    of_node = np.zeros(len(forest.left), np.int64)
    used, left = set(names), forest.missing_left
    for column, (name, number) in enumerate(zip(names, forest.fill_value.tolist(), strict=True)):
        at = forest.splits[forest.feature[forest.splits] == column]
        of_node[at] = len(inputs)
        inputs.append(Input(name, column, HIGHEST if np.isnan(number) else number))
        if np.isnan(number):
            of_node[at[left[at]]] = len(inputs)
            inputs.append(Input(unused_name(f"{name}_or_lowest", used), column, -HIGHEST))
    return inputs, of_node


def filled_thresholds(forest: PortableForest) -> F64:
    """Return thresholds that send `filled_inputs` where the forest sends missing values.

    A split between all numbers and missing values, at an infinite threshold, takes the lowest or
    the highest number for missing.
    """
    second = float(np.nextafter(np.float32(HIGHEST), np.float32(0)))
    low, high = np.maximum(forest.threshold, -HIGHEST), np.minimum(forest.threshold, second)
    return np.where(forest.missing_left, low, high)


def unused_name(name: str, used: set[str]) -> str:
    """Return ``name``, with _ after it while it is in ``used``, and add it there."""
    while name in used:
        name += "_"
    used.add(name)
    return name


# --- thresholds in float32 -----------------------------------------------------------------------


def strictly_above(threshold: F64) -> Any:
    """Return t with x < t where x <= threshold, for all x in float32; at most the highest."""
    highest = np.float32(np.finfo(np.float32).max)
    with np.errstate(over="ignore", under="ignore"):
        above = np.nextafter(not_above(threshold), np.float32(np.inf))
    return np.minimum(above, highest)


def model_thresholds(forest: PortableForest, single: bool) -> F64:
    """Return the highest number that each split of the model sends left."""
    return not_above(forest.threshold).astype(np.float64) if single else forest.threshold


def float32_thresholds(forest: PortableForest, cuts: F64) -> F64 | None:
    """Return the highest number that x < ``cuts`` sends left, unless that is as in the model.

    Only a threshold at the top of float32 cannot be represented: nothing finite is above it.
    """
    own = not_above(forest.threshold).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        found = np.nextafter(cuts, np.float32(-np.inf))
    return None if np.array_equal(own, found) else found.astype(np.float64)


def shortest(value: Any) -> str:
    """Return a float32 in the fewest digits that identify it."""
    return repr(float(str(np.float32(value))))


# --- evaluators ---------------------------------------------------------------------------------


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; twice the same key, NaN or broken text is refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key appears twice")
        return found

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON number")

    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise ParityError(f"{path} cannot be read: {error}.") from None


def run_evaluator(command: Sequence[str], given: bytes, failure: str) -> bytes:
    """Return what a program answers to ``given``.

    One that fails, or takes longer than five minutes, is a `ParityError` that begins with
    ``failure`` and ends with the last line of its complaint.
    """
    try:
        ran = subprocess.run(
            command, input=given, capture_output=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ParityError(f"{failure}: no answer within {_SECONDS} seconds.") from None
    if ran.returncode:
        lines = ran.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1][:200] if lines else f"the program ends with {ran.returncode}"
        raise ParityError(f"{failure}: {reason}")
    return ran.stdout


def as_scores(answer: bytes, n: int, failure: str) -> F64:
    """Return ``n`` scores from the bytes of as many doubles."""
    if len(answer) != 8 * n:
        raise ParityError(f"{failure}: {len(answer)} bytes are not {n} scores.")
    return np.frombuffer(answer, np.float64)

"""Feature vectors that find out where an export scores differently, and what they should score.

- random: documents near the thresholds, or around the mean document;
- threshold: the way to a split, whose threshold is hit exactly, then by the numbers next to it;
- missing: the feature of a split on the way to it, one feature or several, all of them;
- category: codes of categories, one that is beyond them, none;
- extreme: zeros of both signs, the smallest and the largest numbers, ends of float32.

Vectors that the format cannot distinguish are thinned out: any two that remain either score the
same in the model or differ by more than the format rounds, so that their order is not left to
chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.export.target import Job, ParityError, Written, model_thresholds
from rankwright.models.portable import Blend, Portable, PortableForest, forest_in
from rankwright.models.thresholds import not_above

_RANDOM, _SPLITS, _MISSING = 120, 60, 24
_EDGES = (
    0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 1.1754943508222875e-38, 1e-35, -1e-35, 1e-30, 1e-6,
    0.1, 16777216.0, 16777218.0, 1e9, -1e9, 1e18, -1e18,
)  # fmt: skip
_LARGEST_SINGLE = 1e37  # of float32: beyond it sums overflow
_WORST_TOLERANCE = 1e-2  # a score known less well than this says nothing


@dataclass(frozen=True)
class Vectors:
    """Rows of features (NaN: missing), what each is for, its score and how far off it may be."""

    X: F64
    kinds: list[str]
    scores: F64
    tolerance: F64


def parity_vectors(job: Job, written: Written, *, single: bool) -> Vectors:
    """Return vectors with the scores that the export of ``job`` should give them."""
    made = list(_sampled(job.model, written, single))
    made += _of_categories(job, [x for kind, x in made if kind == "random"])
    X = np.array([x for _, x in made])
    kinds = [kind for kind, _ in made]
    if single:
        with np.errstate(over="ignore", under="ignore"):
            X = X.astype(np.float32).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        raw = job.ranker._fitted().scores(X, n_jobs=1)
        error = job.model.error(X, written.epsilon)
        size = job.model.error(X, 1.0)
    usable = np.isfinite(raw) & np.isfinite(error) & (size < (_LARGEST_SINGLE if single else 1e300))
    usable &= ~_between_thresholds(job.model, written, X, single)
    usable &= ~np.isinf(X).any(axis=1)  # on the way to a split that no number reaches
    scores = written.scale * raw + written.offset
    tolerance = abs(written.scale) * error + written.epsilon * (np.abs(scores) + 2.0**-100)
    if written.sigmoid:
        scores = 1.0 / (1.0 + np.exp(-np.clip(scores, -700, 700)))
        tolerance = tolerance / 4.0 + 4 * written.epsilon
    spread = float(np.std(scores[:_RANDOM][usable[:_RANDOM]])) if usable[:_RANDOM].any() else 0.0
    # where nothing is added up, the score is exact however small it is
    usable &= (tolerance <= _WORST_TOLERANCE * np.maximum(np.abs(scores), spread)) | (size == 0.0)
    kept = _distinguishable(np.flatnonzero(usable), scores, tolerance)
    return Vectors(X[kept], [kinds[i] for i in kept], scores[kept], tolerance[kept])


def parity_text(vectors: Vectors) -> str:
    """Return the vectors as lines of JSON."""
    lines = []
    for x, kind, score, tolerance in zip(
        vectors.X.tolist(), vectors.kinds, vectors.scores, vectors.tolerance, strict=True
    ):
        row = {
            "kind": kind,
            "features": [None if value != value else value for value in x],
            "score": float(score),
            "tolerance": float(tolerance),
        }
        lines.append(json.dumps(row, allow_nan=False))
    return "\n".join(lines) + "\n"


def read_parity(path: Path, width: int) -> Vectors:
    """Return the vectors of a file that `parity_text` made, of ``width`` features each."""
    rows: list[list[float]] = []
    kinds, scores, tolerance = [], [], []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ParityError(f"{path} cannot be read: {error.strerror or error}.") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            values = [np.nan if value is None else float(value) for value in row["features"]]
            if len(values) != width:
                raise ValueError
            rows.append(values)
            kinds.append(str(row["kind"]))
            scores.append(float(row["score"]))
            tolerance.append(float(row["tolerance"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise ParityError(f"{path}, line {number}: this is no parity vector.") from None
    if not rows:
        raise ParityError(f"{path} has no vectors; export the model again.")
    return Vectors(np.array(rows), kinds, np.array(scores), np.array(tolerance))


def _sampled(model: Portable, written: Written, single: bool) -> Iterator[tuple[str, F64]]:
    rng = stream(0, "export", "vectors")
    d, forest = model.n_features, forest_in(model)
    sampled = _near_thresholds(forest, rng, d) if forest else _around_centre(model, rng, d)
    for row in sampled:
        yield "random", row
    if forest:
        yield from _at_splits(forest, sampled, rng, written.takes_missing, single)
    edges = [*_EDGES, *([] if single else [1e300, -1e300, 5e-324])]
    for k, edge in enumerate(edges):
        yield "extreme", np.full(d, edge)
        row = sampled[k % len(sampled)].copy()
        row[k % d] = edge
        yield "extreme", row
    if single or forest:
        for end in (3.4028234663852886e38, -3.4028234663852886e38):
            yield "extreme", np.full(d, end)
    takes = np.flatnonzero(written.takes_missing)
    if not len(takes):
        return
    used = np.intersect1d(takes, _used(model)) if len(_used(model)) else takes
    for k, j in enumerate(rng.permutation(used if len(used) else takes)[:_MISSING].tolist()):
        row = sampled[k % len(sampled)].copy()
        row[j] = np.nan
        yield "missing", row
        row = sampled[-1 - k % len(sampled)].copy()
        row[takes[rng.random(len(takes)) < 0.5]] = np.nan
        yield "missing", row
    row = sampled[0].copy()
    row[takes] = np.nan
    yield "missing", row


def _of_categories(job: Job, sampled: list[F64]) -> list[tuple[str, F64]]:
    """Return random vectors whose categories have codes of theirs, one beyond, or none."""
    columns = {job.names.index(name): len(own) for name, own in job.categories.items()}
    rng = stream(0, "export", "categories")
    found = []
    for row in sampled[:_SPLITS] if columns else ():
        made = row.copy()
        for column, count in columns.items():
            code = int(rng.integers(-1, count + 1))
            made[column] = np.nan if code < 0 else code
        found.append(("category", made))
    return found


def _used(model: Portable) -> I64:
    if isinstance(model, PortableForest):
        return np.unique(model.feature[model.splits])
    return np.arange(model.n_features)


def _around_centre(model: Any, rng: np.random.Generator, d: int) -> F64:
    if isinstance(model, Blend):
        return _around_centre(model.parts[-1], rng, d)  # a network, which knows its centre
    centre = getattr(model, "centre", np.zeros(d))
    weight = np.abs(model.coef if hasattr(model, "coef") else model.layers[0][0].max(axis=1))
    spread = np.where(weight > 0, 1.0 / np.maximum(weight, 1e-12), 1.0)
    scale = np.clip(spread / max(float(np.median(spread)), 1e-12), 1e-3, 1e3)
    rows: F64 = centre + rng.normal(size=(_RANDOM, d)) * scale
    rows[::10] = rng.normal(size=rows[::10].shape)
    return rows


def _near_thresholds(forest: PortableForest, rng: np.random.Generator, d: int) -> F64:
    X = rng.normal(size=(_RANDOM, d))
    at = forest.splits
    for f in np.unique(forest.feature[at]).tolist():
        cuts = forest.threshold[at[forest.feature[at] == f]]
        cuts = cuts[np.abs(cuts) < 1e30]
        if len(cuts):
            width = max(np.ptp(cuts), np.abs(cuts).max(), 1e-3) / 4.0
            X[:, f] = rng.choice(cuts, _RANDOM) + rng.normal(size=_RANDOM) * width
            X[::12, f] = np.round(X[::12, f])
    return X


def _at_splits(
    forest: PortableForest, sampled: F64, rng: np.random.Generator, takes_missing: Any, single: bool
) -> Iterator[tuple[str, F64]]:
    """Yield vectors that reach a split with its threshold, a number beside it, or none."""
    parent = np.full(len(forest.left), -1)
    at = forest.splits[~forest.is_set[forest.splits]]
    for node in forest.splits.tolist():
        parent[[forest.left[node], forest.right[node]]] = node
    for k, node in enumerate(rng.permutation(at)[:_SPLITS].tolist()):
        row = sampled[k % len(sampled)].copy()
        low: dict[int, float] = {}
        high: dict[int, float] = {}
        child, above = node, int(parent[node])
        while above >= 0:
            f, cut = int(forest.feature[above]), float(forest.threshold[above])
            if forest.left[above] == child:
                high[f] = min(high.get(f, np.inf), cut)
            else:
                low[f] = max(low.get(f, -np.inf), cut)
            child, above = above, int(parent[above])
        for f in low.keys() | high.keys():
            row[f] = _between(low.get(f), high.get(f), single)
        cut = float(forest.threshold[node])
        for value in _neighbours(cut, single):
            row[forest.feature[node]] = value
            if np.isfinite(value):
                yield "threshold", row.copy()
        if takes_missing[forest.feature[node]]:
            row[forest.feature[node]] = np.nan
            yield "missing", row.copy()


def _between(low: float | None, high: float | None, single: bool) -> float:
    """Return a number above ``low`` and not above ``high``, at an end of the two."""
    if high is not None:
        return float(not_above(np.array([high]))[0]) if single else high
    assert low is not None
    with np.errstate(over="ignore"):
        if single:
            return float(np.nextafter(not_above(np.array([low]))[0], np.float32(np.inf)))
        return float(np.nextafter(low, np.inf))


def _neighbours(cut: float, single: bool) -> list[float]:
    with np.errstate(over="ignore", under="ignore"):
        near = not_above(np.array([cut]))[0]
        floats = [
            near,
            np.nextafter(near, np.float32(-np.inf)),
            np.nextafter(near, np.float32(np.inf)),
        ]
        found = [float(value) for value in floats]
        if not single:
            found += [cut, float(np.nextafter(cut, -np.inf)), float(np.nextafter(cut, np.inf))]
    return found


def _between_thresholds(model: Portable, written: Written, X: F64, single: bool) -> Any:
    """Whether a value lies between a threshold and the one that the export has in its place."""
    found, forest = np.zeros(len(X), bool), forest_in(model)
    if forest is None or written.thresholds is None:
        return found
    own = model_thresholds(forest, single)
    for node in forest.splits[own[forest.splits] != written.thresholds[forest.splits]].tolist():
        ends = sorted((own[node], written.thresholds[node]))
        x = X[:, forest.feature[node]]
        found |= (x > ends[0]) & (x <= ends[1])
    return found


def _distinguishable(rows: I64, scores: F64, tolerance: F64) -> I64:
    """Return rows, in order, of which any two score the same or differ visibly."""
    kept: list[int] = []
    for i in rows[np.argsort(scores[rows], kind="stable")].tolist():
        if kept and scores[kept[-1]] != scores[i]:
            apart = scores[i] - scores[kept[-1]]
            if apart <= 2.0 * (tolerance[i] + tolerance[kept[-1]]):
                continue
        kept.append(i)
    return np.array(sorted(kept), np.int64)

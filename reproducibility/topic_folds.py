"""Collections of documents with many topics, cut into train, valid and test documents.

A study of a topics experiment names its collection and how it is cut::

    topics = { reuters = "Reuters21578", split = "random", sizes = [0.5, 0.25, 0.25] }
    topics = { reuters = "Reuters21578", split = "modapte", valid = 0.25 }
    topics = { clicks = 40_000, queries = 40 }      # see `reproducibility.clicks`

Of Reuters-21578 the stories that an indexer judged are taken, as unigrams with tf-idf weights (log
tf, unit length) that know the train part alone; words of fewer than ``min_stories`` of its stories
are left out. A topic stays where ``min_train`` train stories are on it, and at least one of valid
and one of test, without which there is nothing to measure; no other count of test is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.rng import stream
from rankwright.core.types import I64
from reproducibility.reuters import Story, read_reuters
from rankwright.errors import DataError, UsageError
from reproducibility.clicks import made_clicks
from reproducibility.experiment import Experiment, Study
from reproducibility.study_data import check_options, ends_of_parts, folder_with
from rankwright.registry import unknown

SPLITS = ("random", "modapte")


@dataclass(frozen=True)
class Part:
    """Documents and their grades: ``X`` by rows, ``grades`` documents x topics by columns."""

    X: Any
    grades: Any


@dataclass(frozen=True)
class TopicFold:
    """One cut of a collection."""

    topics: tuple[str, ...]
    train: Part
    valid: Part
    test: Part


def check_source(topics: Mapping[str, Any]) -> None:
    """Refuse a collection that is not known, or an option that it does not have."""
    if ("reuters" in topics) == ("clicks" in topics):
        raise UsageError("topics needs reuters or clicks, one of the two.")
    if "reuters" in topics:
        check_options("topics", topics, reuters_fold, own=("reuters",))
    else:
        check_options("topics", topics, made_clicks, own=("clicks",))


def load_topics(
    experiment: Experiment, data_folder: Path | None, *, seed: int = 0
) -> dict[str, TopicFold]:
    """Read or make up the collection of every study."""
    return {study.name: _fold(study, data_folder, seed) for study in experiment.studies}


def _fold(study: Study, data_folder: Path | None, seed: int) -> TopicFold:
    assert study.topics is not None
    options = dict(study.topics)
    if "clicks" in options:
        names, *parts = made_clicks(options.pop("clicks"), seed=seed, **options)
        return TopicFold(names, *(Part(X, grades) for X, grades in parts))
    folder = options.pop("reuters")
    collection = folder_with(data_folder, study.name, folder) / folder
    return reuters_fold(read_reuters(collection), seed=seed, **options)


# --- Reuters-21578 ---------------------------------------------------------------------------


def reuters_fold(
    stories: Sequence[Story],
    *,
    split: str = "random",
    sizes: Sequence[float] = (0.5, 0.25, 0.25),
    valid: float = 0.25,
    min_train: int = 20,
    min_stories: int = 3,
    seed: int = 0,
) -> TopicFold:
    """Cut the collection and make its features.

    Parameters
    ----------
    split : "random" or "modapte"
    sizes
        Shares of train, valid and test in the random split.
    valid
        Share of ModApte's training stories that are held back.
    min_train, min_stories
        Which topics and which words stay: see the module's text.
    """
    if split not in SPLITS:
        raise UsageError(unknown("split", split, SPLITS))
    judged = [story for story in stories if story.judged]
    parts = _random(judged, sizes, seed) if split == "random" else _modapte(judged, valid, seed)
    chosen = [[judged[i] for i in part] for part in parts]
    topics = _common_topics(chosen, min_train)
    if not topics:
        raise DataError(f"no topic has {min_train} stories in train and any in valid and test.")
    features = _tf_idf([[story.text for story in part] for part in chosen], min_stories)
    train, held, test = (
        Part(X, _grades(part, topics)) for X, part in zip(features, chosen, strict=True)
    )
    return TopicFold(topics, train, held, test)


def _random(judged: Sequence[Story], sizes: Sequence[float], seed: int) -> list[I64]:
    order = stream(seed, "reuters", "random").permutation(len(judged))
    return [np.sort(part) for part in np.split(order, ends_of_parts(sizes, len(judged)))]


def _modapte(judged: Sequence[Story], valid: float, seed: int) -> list[I64]:
    if not 0.0 < valid < 1.0:
        raise UsageError(f"valid is a share between 0 and 1, not {valid}.")
    kind = np.array([story.modapte or "" for story in judged])
    training = np.flatnonzero(kind == "train")
    order = stream(seed, "reuters", "modapte").permutation(training)
    held = round(valid * len(training))
    return [np.sort(order[held:]), np.sort(order[:held]), np.flatnonzero(kind == "test")]


def _common_topics(parts: Sequence[Sequence[Story]], min_train: int) -> tuple[str, ...]:
    counts: list[dict[str, int]] = [{} for _ in parts]
    for count, part in zip(counts, parts, strict=True):
        for story in part:
            for topic in story.topics:
                count[topic] = count.get(topic, 0) + 1
    train, valid, test = counts
    enough = (topic for topic, n in train.items() if n >= min_train)
    return tuple(sorted(topic for topic in enough if topic in valid and topic in test))


def _tf_idf(texts: Sequence[Sequence[str]], min_stories: int) -> list[Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=min_stories)
    try:
        train = words.fit_transform(texts[0])
    except ValueError as fault:
        raise DataError(f"the train stories have no words to go by: {fault}") from None
    return [sparse.csr_array(X) for X in (train, *map(words.transform, texts[1:]))]


def _grades(stories: Sequence[Story], topics: Sequence[str]) -> Any:
    column: Mapping[str, int] = {topic: number for number, topic in enumerate(topics)}
    places = {
        (row, column[topic])
        for row, story in enumerate(stories)
        for topic in story.topics
        if topic in column
    }
    rows, columns = np.array(sorted(places), np.int64).reshape(-1, 2).T
    shape = (len(stories), len(topics))
    return sparse.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)

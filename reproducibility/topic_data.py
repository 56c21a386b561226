"""Collections of documents with many topics, cut into train, valid and test documents.

A study of a topics experiment names its collection and how it is cut::

    topics = { reuters = "Reuters21578", split = "random", sizes = [0.5, 0.25, 0.25] }
    topics = { reuters = "Reuters21578", split = "modapte", valid = 0.25 }
    topics = { clicks = 40_000, queries = 40 }      # see `reproducibility.topic_data`

Of Reuters-21578 the stories that an indexer judged are taken, as unigrams with tf-idf weights (log
tf, unit length) that know the train part alone; words of fewer than ``min_stories`` of its stories
are left out. A topic stays where ``min_train`` train stories are on it, and at least one of valid
and one of test, without which there is nothing to measure; no other count of test is looked at.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.streams import open_bytes
from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown
from reproducibility.experiment import Experiment, Study
from reproducibility.study_data import check_options, ends_of_parts, folder_with

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
        Share of ModApte's training stories in the holdout.
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
        raise DataError(f"the train stories have no usable words: {fault}") from None
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


# --- synthetic clicks ------------------------------------------------------------------------
# Synthetic image search: real-valued click counts on images, each described by a few visual words.
#
# The image set of `stevens2010domination` is not public, so it is made up in its shape: sparse
# rows (200 of 10,000 words there, about 2 %), a ranking function per query over all images,
# feedback that is the number of times an image was selected for the query, and labels that are
# mostly noise.
#
# A theme has ``words`` words; an image shows three themes, and half of its words are drawn from
# them, the others from all words with a chance that falls with their rank (as in text), 1 / (i +
# 10)^0.7. Counts are 1 + geometric, and a row is tf-idf weighted and of unit length. A query
# looks for three themes: w_q is |normal| at their words, by which the utility and the clicks of
# an image are
#
#     u_qi = sum_f w_qf x_if, standardised over the images                                       (1)
#     v_qi = sqrt(1 - noise) u_qi + sqrt(noise) e_qi,     e normal                               (2)
#     clicks_qi = floor(exp(sharpness (v_qi - t_q))) where v_qi > t_q, 0 elsewhere               (3)
#
# where t_q lets the share ``relevant`` of the images through; counts are capped at 1,000. They are
# heavy-tailed: most selected images have one or two clicks, a few have dozens. The images are
# cut into train, valid and test at random; all share the queries.


_MOST_CLICKS = 1_000.0
_THEMES_SHOWN = 3


def made_clicks(
    images: int,
    *,
    queries: int = 40,
    features: int = 5_000,
    row: int = 100,
    themes: int = 100,
    words: int = 20,
    relevant: float = 0.01,
    noise: float = 0.9,
    sharpness: float = 2.0,
    sizes: tuple[float, ...] = (0.5, 0.25, 0.25),
    seed: int = 0,
) -> tuple[tuple[str, ...], tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]:
    """Return the queries' names, and X and clicks of the train, the valid and the test images.

    Parameters
    ----------
    images, queries, features
        How many there are in all.
    row
        Draws of words for an image; some hit the same word.
    themes, words
        What images show, and the words of each theme.
    relevant, noise, sharpness
        Share of images that are selected, share of variance that is noise (2), and how far clicks
        are apart (3).
    sizes
        Shares of train, valid and test.
    """
    ends = ends_of_parts(sizes, images)  # rows are independent, so the first are for train
    if not 0.0 <= noise < 1.0 or not 0.0 < relevant < 1.0:
        raise UsageError("noise and relevant are shares of what there is, below 1.")
    if min(images, queries, row, themes) < 1 or not 1 <= words <= features:
        raise UsageError("clicks need images, queries and words, and no more words than features.")
    rng = stream(seed, "clicks", "themes")
    theme = np.array([rng.choice(features, size=words, replace=False) for _ in range(themes)])
    X = _images(images, features, row, theme, seed)
    clicks = np.empty((images, queries))
    for query in range(queries):
        clicks[:, query] = _clicks(X, query, theme, relevant, noise, sharpness, seed)
    train, valid, test = (
        (X[lo:hi], sparse.csc_array(clicks[lo:hi]))
        for lo, hi in ((0, ends[0]), (ends[0], ends[1]), (ends[1], images))
    )
    return tuple(f"query {number + 1}" for number in range(queries)), train, valid, test


def _images(images: int, features: int, row: int, theme: I64, seed: int) -> Any:
    rng = stream(seed, "clicks", "images")
    shown = rng.integers(len(theme), size=(images, _THEMES_SHOWN))
    half = row // 2
    which = rng.integers(_THEMES_SHOWN, size=(images, half))
    place = rng.integers(theme.shape[1], size=(images, half))
    of_themes = theme[np.take_along_axis(shown, which, axis=1), place]
    chance = (np.arange(features) + 10.0) ** -0.7
    others = rng.choice(features, size=(images, row - half), p=chance / chance.sum())
    drawn = np.hstack([of_themes, others])
    counts = rng.geometric(0.7, size=images * row).astype(np.float64)
    rows = np.repeat(np.arange(images), row)
    X = sparse.csr_array((counts, (rows, drawn.ravel())), shape=(images, features))
    X.sum_duplicates()
    holding = np.bincount(X.indices, minlength=features)
    X.data = np.log1p(X.data) * np.log((1.0 + images) / (1.0 + holding))[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(X.indptr))
    return X


def _clicks(
    X: Any, query: int, theme: I64, relevant: float, noise: float, sharpness: float, seed: int
) -> F64:
    rng = stream(seed, "clicks", "query", query)
    w = np.zeros(X.shape[1])
    sought = theme[rng.choice(len(theme), size=min(_THEMES_SHOWN, len(theme)), replace=False)]
    w[sought.ravel()] = np.abs(rng.normal(size=sought.size))
    utility = X @ w  # (1)
    utility = (utility - utility.mean()) / (utility.std() or 1.0)
    seen = np.sqrt(1.0 - noise) * utility + np.sqrt(noise) * rng.normal(size=X.shape[0])  # (2)
    above = seen - np.quantile(seen, 1.0 - relevant)
    counts: F64 = np.floor(np.exp(np.minimum(sharpness * above, np.log(_MOST_CLICKS))))  # (3)
    return np.where(above > 0.0, counts, 0.0)


# --- reading Reuters-21578 -------------------------------------------------------------------
# Reuters-21578: news stories in SGML, each with its topics, as texts ready for features.
#
# The collection is a folder of ``.sgm`` files, or a tar archive of them, compressed or not, which
# is read without being unpacked. Each story is a ``REUTERS`` element; of its attributes
#
#     TOPICS      YES where an indexer judged the story, be it that no topic fits
#     LEWISSPLIT  TRAIN, TEST or NOT-USED
#     NEWID       its number, from 1 in order of time
#
# the first two make the ModApte split (`lewis1997reuters`): judged stories train or test as
# LEWISSPLIT says, 9,603 and 3,299 of them, and no other story is used. The text of a story is its
# title and its body; stories without a body are one piece of text or a title alone.


_STORY = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_OPENING = re.compile(r"<REUTERS\b")
_ATTRIBUTE = re.compile(r'([A-Z]+)\s*=\s*"([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_ENTRY = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT\b[^>]*>(.*?)</TEXT>", re.DOTALL)
_PIECE = re.compile(r"<(TITLE|BODY)>(.*?)</\1>", re.DOTALL)
_BYLINE = re.compile(r"<(AUTHOR|DATELINE)>.*?</\1>", re.DOTALL)
_TAG = re.compile(r"</?[A-Z]+[^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_DIGIT_ENTITY = re.compile(r"&#([0-9]+);")
_PARTS = {"TRAIN": "train", "TEST": "test"}


@dataclass(frozen=True, slots=True)
class Story:
    """A news story.

    Attributes
    ----------
    number : int
        NEWID.
    text : str
        Title and body, below each other.
    topics : tuple of str
        In the order of the file; often none.
    judged : bool
        Whether an indexer gave it topics, or found that none fits.
    modapte : "train", "test" or None
        Its part in the ModApte split, None where it has none.
    """

    number: int
    text: str
    topics: tuple[str, ...]
    judged: bool
    modapte: str | None


def read_reuters(path: str | Path) -> list[Story]:
    """Return the stories of the collection, by number.

    Parameters
    ----------
    path
        A folder that holds the ``.sgm`` files, also in folders below, or their tar archive; that
        archive; or one ``.sgm`` file.
    """
    stories = [story for name, text in _files(Path(path)) for story in _stories(name, text)]
    if not stories:
        raise DataError(f"{path} holds no story of Reuters-21578 (no REUTERS element).")
    stories.sort(key=lambda story: story.number)
    for one, other in pairwise(stories):
        if one.number == other.number:
            raise DataError(f"{path}: two stories have NEWID {one.number}; is a file duplicated?")
    return stories


def _files(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each ``.sgm`` file."""
    if path.is_file():
        yield from _archive(path) if ".tar" in path.name else [(str(path), _text_of(path))]
        return
    if not path.is_dir():
        raise DataError(f"{path} does not exist; it is to hold Reuters-21578's .sgm files.")
    found = sorted(path.rglob("*.sgm"))
    archives = sorted(path.glob("*.tar*"))
    if found:
        yield from ((str(one), _text_of(one)) for one in found)
    elif archives:
        yield from _archive(archives[0])
    else:
        raise DataError(f"{path} has neither .sgm files nor a .tar archive of them.")


def _text_of(path: Path) -> str:
    with open_bytes(path) as stream:
        return stream.read().decode("latin-1")


def _archive(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.name.endswith(".sgm") else None
                if stream is not None:
                    yield f"{path}, {member.name}", stream.read().decode("latin-1")
    except (tarfile.TarError, EOFError, LZMAError, zlib.error) as fault:
        raise DataError(f"{path} is damaged or no tar archive: {fault}.") from None
    except OSError as fault:
        raise DataError(f"{path} cannot be read: {fault.strerror or fault}.") from None


def _stories(name: str, text: str) -> Iterator[Story]:
    starts = [opening.start() for opening in _OPENING.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        match = _STORY.match(text, start, end)
        attributes = dict(_ATTRIBUTE.findall(match[1])) if match else {}
        number = attributes.get("NEWID", "")
        if match is None or not number.isdecimal():
            line = text.count("\n", 0, start) + 1
            fault = "has no NEWID." if match else "has no end; is the file truncated?"
            raise DataError(f"{name}, line {line}: this story {fault}")
        inner = match[2]
        judged = attributes.get("TOPICS") == "YES"
        topics = _TOPICS.search(inner)
        yield Story(
            number=int(number),
            text=_text(inner),
            topics=tuple(map(_plain, _ENTRY.findall(topics[1]))) if topics else (),
            judged=judged,
            modapte=_PARTS.get(attributes.get("LEWISSPLIT", "")) if judged else None,
        )


def _text(inner: str) -> str:
    """Return title and body, or what there is of text."""
    found = _TEXT.search(inner)
    if found is None:
        return ""
    pieces = dict(_PIECE.findall(found[1]))
    if "BODY" in pieces:
        return "\n".join(_plain(pieces[key]) for key in ("TITLE", "BODY") if key in pieces)
    return _plain(_TAG.sub(" ", _BYLINE.sub(" ", found[1])))


def _plain(marked: str) -> str:
    """Return text without entities and without the wire's control characters."""
    known = _DIGIT_ENTITY.sub(lambda m: chr(int(m[1])) if int(m[1]) < 256 else " ", marked)
    return _CONTROL.sub(" ", unescape(known)).strip()

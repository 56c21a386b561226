"""Reuters-21578: news stories with topics, cut into train, validation and test.

The stories that an indexer judged are taken, as unigrams with tf-idf weights (log tf, unit length)
computed from the train part only; words of fewer than three of its stories are left out. A topic
stays if 20 train stories are on it, and at least one of validation and one of test.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from reproducibility.protocol import generator

_STORY = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([A-Z]+)\s*=\s*"([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_ENTRY = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT\b[^>]*>(.*?)</TEXT>", re.DOTALL)
_PIECE = re.compile(r"<(TITLE|BODY)>(.*?)</\1>", re.DOTALL)
_BYLINE = re.compile(r"<(AUTHOR|DATELINE)>.*?</\1>", re.DOTALL)
_TAG = re.compile(r"</?[A-Z]+[^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_CODE = re.compile(r"&#([0-9]+);")


class Part(NamedTuple):
    """Documents by rows, and their grades: documents x topics, by columns."""

    X: Any
    grades: Any


class TopicFold(NamedTuple):
    """A collection of documents with many topics, cut into three parts."""

    topics: tuple[str, ...]
    train: Part
    valid: Part
    test: Part


@dataclass(frozen=True)
class Story:
    """A judged news story: its number (NEWID), text, topics and LEWISSPLIT."""

    number: int
    text: str
    topics: tuple[str, ...]
    split: str


def random_fold(stories: Sequence[Story], seed: int) -> TopicFold:
    """Cut the stories at random: 50 % train, 25 % validation, 25 % test."""
    order = generator(seed, "reuters", "random").permutation(len(stories))
    cuts = np.rint(np.array([0.5, 0.75]) * len(stories)).astype(int)
    return topic_fold(stories, [np.sort(part) for part in np.split(order, cuts)])


def modapte_fold(stories: Sequence[Story], seed: int) -> TopicFold:
    """Cut by ModApte, with a quarter of its training stories for validation."""
    split = np.array([story.split for story in stories])
    order = generator(seed, "reuters", "modapte").permutation(np.flatnonzero(split == "TRAIN"))
    valid = round(0.25 * len(order))
    test = np.flatnonzero(split == "TEST")
    return topic_fold(stories, [np.sort(order[valid:]), np.sort(order[:valid]), test])


def topic_fold(
    stories: Sequence[Story], parts: Sequence[Any], *, min_train: int = 20, min_stories: int = 3
) -> TopicFold:
    """Return the features and the grades of three parts of the stories."""
    selection = [[stories[i] for i in part] for part in parts]
    train, valid, test = (Counter(t for story in part for t in story.topics) for part in selection)
    topics = sorted(t for t, n in train.items() if n >= min_train and valid[t] and test[t])
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=min_stories)
    words.fit([story.text for story in selection[0]])
    return TopicFold(
        tuple(topics),
        *(
            Part(
                sparse.csr_array(words.transform([story.text for story in part])),
                sparse.csc_array([[float(t in story.topics) for t in topics] for story in part]),
            )
            for part in selection
        ),
    )


# --- reading the collection ----------------------------------------------------------------------


def read_reuters(folder: Path) -> list[Story]:
    """Return the judged stories by number, from the tar archive of .sgm files in a folder."""
    archive = next(iter(sorted(folder.glob("*.tar*"))), None)
    if archive is None:
        raise FileNotFoundError(f"{folder} has no tar archive of Reuters-21578's .sgm files.")
    stories = []
    with tarfile.open(archive) as files:
        for member in files:
            if member.name.endswith(".sgm"):
                content = files.extractfile(member)
                assert content is not None
                stories.extend(parse_stories(content.read().decode("latin-1")))
    return sorted(stories, key=lambda story: story.number)


def parse_stories(text: str) -> Iterator[Story]:
    """Yield the stories of an .sgm file that an indexer judged (TOPICS="YES")."""
    for match in _STORY.finditer(text):
        attributes = dict(_ATTRIBUTE.findall(match[1]))
        if attributes.get("TOPICS") == "YES":
            topics = _TOPICS.search(match[2])
            yield Story(
                int(attributes["NEWID"]),
                _story_text(match[2]),
                tuple(map(_plain, _ENTRY.findall(topics[1]))) if topics else (),
                attributes.get("LEWISSPLIT", ""),
            )


def _story_text(story: str) -> str:
    """Return title and body, or what there is of text."""
    text = _TEXT.search(story)
    if text is None:
        return ""
    pieces = dict(_PIECE.findall(text[1]))
    if "BODY" in pieces:
        return "\n".join(_plain(pieces[key]) for key in ("TITLE", "BODY") if key in pieces)
    return _plain(_TAG.sub(" ", _BYLINE.sub(" ", text[1])))


def _plain(marked: str) -> str:
    """Return text without entities and without the wire's control characters."""
    text = _CODE.sub(lambda code: chr(int(code[1])) if int(code[1]) < 256 else " ", marked)
    return _CONTROL.sub(" ", unescape(text)).strip()

"""Reuters-21578: news stories in SGML, each with its topics, as texts ready for features.

The collection is a folder of ``.sgm`` files, or a tar archive of them, compressed or not, which is
read without being unpacked. Each story is a ``REUTERS`` element; of its attributes

    TOPICS      YES where an indexer judged the story, be it that no topic fits
    LEWISSPLIT  TRAIN, TEST or NOT-USED
    NEWID       its number, from 1 in order of time

the first two make the ModApte split (`lewis1997reuters`): judged stories train or test as
LEWISSPLIT says, 9,603 and 3,299 of them, and no other story is used. The text of a story is its
title and its body; stories without a body are one piece of text or a title alone.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from lzma import LZMAError
from pathlib import Path

from rankwright.data.source import open_bytes
from rankwright.errors import DataError

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
            raise DataError(f"{path}: two stories have NEWID {one.number}; is a file there twice?")
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
            fault = "has no NEWID." if match else "has no end; is the file cut short?"
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

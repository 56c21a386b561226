"""One line of LETOR text, read in Python: either what it says, or a sentence on what is wrong.

A line is ``<grade> qid:<query id> <feature id>:<value> ... # comment``; blanks are spaces, tabs
and carriage returns. The kernels read nearly every line; this reads those that they leave, and is
the one place that knows the grammar's faults by name.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from rankwright.errors import DataError

BLANKS = b" \t\r"
MISSING = frozenset({b"NULL", b"null", b"NaN", b"nan", b"NA"})

_TOKEN = re.compile(rb"[^ \t\r]+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_DOCID = re.compile(rb"docid[ \t\r]*=[ \t\r]*([^ \t\r]+)")
_FORM = "a line reads '<grade> qid:<query id> <feature id>:<value> ...'"
_LONGEST_SHOWN = 40


class Rules(NamedTuple):
    """What lines of a file must keep to."""

    has_qid: bool
    base: int  # the lowest feature id, 0 or 1
    width: int  # the number of features
    top: float  # absolute values must stay below
    fill: bool  # a feature that a line does not name is missing, not 0


class Line(NamedTuple):
    """A line that was read; spans are start and length within it."""

    grade: float
    qid: tuple[int, int]
    columns: list[int]
    values: list[float]
    only_zeros: list[bool]
    document: tuple[int, int] | None


def read_line(line: bytes, rules: Rules, *, limit: str = "") -> Line:
    """Return what ``line`` says, or raise `DataError` on the first thing wrong with it.

    Parameters
    ----------
    line
        Without its newline.
    limit
        What to do about a feature id beyond ``rules.width``.
    """
    head, hash_sign, comment = line.partition(b"#")
    _refuse_binary(head, comment)
    tokens = list(_TOKEN.finditer(head))
    grade = _grade(tokens[0].group())
    qid, features = _query(tokens, rules.has_qid)
    columns: list[int] = []
    values: list[float] = []
    only_zeros: list[bool] = []
    seen: set[int] = set()
    for token in features:
        name, colon, value = token.group().partition(b":")
        if name == b"qid":
            raise DataError(f"{_shown(token.group())} must stand right after the grade.")
        if not colon:
            raise DataError(f"{_shown(token.group())} is not <feature id>:<value>; {_FORM}.")
        column = _column(name, rules, limit)
        if column in seen:
            raise DataError(f"feature id {column + rules.base} is given twice.")
        seen.add(column)
        columns.append(column)
        values.append(_value(name, value, rules.top))
        only_zeros.append(not value.strip(b"+0."))
    document = _document(line, len(head) + 1) if hash_sign else None
    return Line(grade, qid, columns, values, only_zeros, document)


def _refuse_binary(head: bytes, comment: bytes) -> None:
    found = _NOT_TEXT.search(head) or re.search(rb"\x00", comment)
    if found:
        byte = found.group()[0]
        advice = "take it out" if byte else "text in UTF-16 must be saved as UTF-8 first"
        raise DataError(
            f"byte {byte} is a control character, so this is not a text file; {advice}."
        )
    try:
        head.decode()
    except UnicodeDecodeError as fault:
        byte = head[fault.start]
        raise DataError(
            f"byte {byte} is not UTF-8, so this is not a text file; save it as UTF-8 first."
        ) from None


def _grade(token: bytes) -> float:
    if token.startswith(b"qid:"):
        raise DataError(
            f"there is no grade before {_shown(token)}; {_FORM}. Documents without grades can only "
            "be ranked (rankwright rank, or grades=False)."
        )
    if not _NUMBER.fullmatch(token):
        raise DataError(
            f"grade {_shown(token)} is not a number; {_FORM}, without a header line above (delete "
            "it, or start it with #)."
        )
    grade = float(token)
    if grade < 0:
        raise DataError(
            f"grade {_shown(token)} is negative; grades must be 0 or more: shift them all."
        )
    if math.isinf(grade):
        raise DataError(f"grade {_shown(token)} is too large for a number.")
    return grade


def _query(
    tokens: list[re.Match[bytes]], has_qid: bool
) -> tuple[tuple[int, int], list[re.Match[bytes]]]:
    """Return where the query id stands, and the tokens of the features."""
    given = len(tokens) > 1 and tokens[1].group().startswith(b"qid:")
    if not has_qid:
        if given:
            raise DataError(
                f"{_shown(tokens[1].group())} names the query, but the sizes of the queries are "
                "given; leave one of them out."
            )
        return (tokens[0].end(), 0), tokens[1:]
    if not given:
        raise DataError(
            f"there is no qid:<query id> after the grade; {_FORM}, or the sizes of the queries "
            "must be given (group_sizes=..., or a .query file beside it)."
        )
    start = tokens[1].start() + len(b"qid:")
    if start == tokens[1].end():
        raise DataError("the query id after 'qid:' is empty.")
    return (start, tokens[1].end() - start), tokens[2:]


def _column(name: bytes, rules: Rules, limit: str) -> int:
    if not (name.isascii() and name.isdigit()):
        if name[:1] == b"-" and name[1:].isdigit():
            raise DataError(f"feature id {_shown(name)} is negative; ids start at {rules.base}.")
        raise DataError(f"feature id {_shown(name)} is not a whole number; {_FORM}.")
    digits = name.lstrip(b"0") or b"0"
    if len(digits) > 18 or int(digits) >= rules.width + rules.base:
        raise DataError(f"feature id {_shown(digits, quote='')} is {limit}.")
    if int(digits) < rules.base:
        raise DataError(
            "feature id 0 is in a file whose ids start at 1; if they start at 0, "
            "pass zero_based=True (--read zero_based=true)."
        )
    return int(digits) - rules.base


def _value(name: bytes, token: bytes, top: float) -> float:
    if token in MISSING:
        return math.nan
    if not token:
        raise DataError(f"feature {_shown(name, quote='')} has no value after the colon.")
    if _INFINITE.fullmatch(token):
        raise DataError(f"feature value {_shown(token)} is infinite; write NULL for a missing one.")
    if not _NUMBER.fullmatch(token):
        raise DataError(f"feature value {_shown(token)} is not a number.")
    value = float(token)
    if not -top < value < top:
        kind = "float64" if math.isinf(top) else "float32"
        raise DataError(f"feature value {_shown(token)} is too large for {kind}.")
    return value


def _document(line: bytes, start: int) -> tuple[int, int]:
    comment = line[start:]
    start += len(comment) - len(comment.lstrip(BLANKS))
    comment = comment.strip(BLANKS)
    if named := _DOCID.match(comment):
        return start + named.start(1), named.end(1) - named.start(1)
    return start, len(comment)


def _shown(token: bytes, quote: str = "'") -> str:
    text = token.decode(errors="replace")
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "…"
    return f"{quote}{text}{quote}"

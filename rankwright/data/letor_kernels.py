"""Kernels that parse LETOR text, and a parser in Python for the lines that they refuse.

A line is ``<grade> qid:<query id> <feature id>:<value> ... # comment``. Blanks are spaces, tabs and
carriage returns. The text of a kernel ends with a newline, and every loop stops at a newline, so no
loop needs to test for the end of the text. A kernel stops at a line that it cannot parse, which may
be invalid or only unusual: feature ids that do not ascend, or a number with more than 19 digits.
`read_line` then parses the line in Python, or raises an error with the reason.

Numbers are parsed exactly as by ``float``. A decimal w · 10^q with an integer w becomes the nearest
double, ties to even:

    (1)  w <= 2^53 and |q| <= 22: both are doubles, and one operation rounds once  [clinger1990]
    (2)  w < 2^64: the product of w and a 128-bit approximation of 5^q decides     [lemire2021]

Numbers near the middle of two doubles that (2) does not decide, and subnormal numbers, are left to
Python.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from rankwright.core.checks import HIGHEST_GRADE
from rankwright.core.jit import kernel
from rankwright.errors import DataError

_PLUS, _MINUS, _POINT, _ZERO, _SMALL_E = 43, 45, 46, 48, 101
_CASE = 32  # the bit that distinguishes lower case from upper case
_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _COLON, _EQUALS = 9, 10, 13, 32, 35, 58, 61
_IS_BLANK = np.isin(np.arange(256), [_SPACE, _TAB, _RETURN])
_ENDS_TOKEN = _IS_BLANK | np.isin(np.arange(256), [_NEWLINE, _HASH])
_QID, _DOCID = np.frombuffer(b"qid:", np.uint8), np.frombuffer(b"docid", np.uint8)
_NULL, _SMALL_NULL = np.frombuffer(b"NULL", np.uint8), np.frombuffer(b"null", np.uint8)
_NAN, _SMALL_NAN = np.frombuffer(b"NaN", np.uint8), np.frombuffer(b"nan", np.uint8)
_NA = np.frombuffer(b"NA", np.uint8)

MAX_DIGITS = 19  # of an integer below 2^64
_MAX_EXPONENT_DIGITS = 6
_EXACT = np.uint64(1 << 53)
_TEN = 10.0 ** np.arange(23)
_MIN_POWER, _MAX_POWER = -342, 308

ROWS, VALUES, LOWEST_ID, HIGHEST_ID, COMMENTS = range(5)
"""Columns of the counts of `survey`."""
N_COUNTS = 5
_LARGE = 1 << 58  # above every id; ten times it is below 2^63
NO_ID = 1 << 62
"""Lowest feature id of a text without features."""


def _powers_of_five() -> np.ndarray:
    """Return 5^q scaled to 128 bits, high and low half, for each q that a double can need."""
    table = np.empty((_MAX_POWER - _MIN_POWER + 1, 2), np.uint64)
    for q in range(_MIN_POWER, _MAX_POWER + 1):
        five = 5 ** abs(q)
        if q >= 0:
            scaled = (five << 128) >> five.bit_length()
        elif q >= -27:  # rounded up, so that the middle between two doubles is recognised
            scaled = (1 << (five.bit_length() + 127)) // five + 1
        else:
            scaled = (1 << (2 * five.bit_length() + 128)) // five
            scaled >>= scaled.bit_length() - 128
        table[q - _MIN_POWER] = scaled >> 64, scaled & (2**64 - 1)
    return table


_FIVE = _powers_of_five()

# --- kernels: numbers --------------------------------------------------------------------------


@kernel
def at(text, i):
    """Return ``text[i]``; an unsigned index avoids the test for a negative index."""
    return text[np.uint64(i)]


@kernel
def digit_at(text, i):
    """Return the digit at ``i``; a number below 0 or above 9 if the byte is not a digit."""
    return np.int64(text[np.uint64(i)]) - _ZERO


@kernel
def _product(a, b):
    """Return the high and the low half of the 128-bit product of two uint64."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    cross = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (cross >> half), a * b


@kernel
def _nearest(w, q):
    """Return the double nearest to w · 10^q by (2), or NaN if 128 bits do not decide."""
    if w == 0 or q < _MIN_POWER:
        return 0.0
    if q > _MAX_POWER:
        return np.inf
    one, shift = np.uint64(1), 0
    while w >> np.uint64(63) == 0:
        w <<= one
        shift += 1
    high, low = _product(w, _FIVE[q - _MIN_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(w, _FIVE[q - _MIN_POWER, 1])
        low += more
        if low < more:
            high += one
        if low == np.uint64(0xFFFFFFFFFFFFFFFF):
            return np.nan
    top = high >> np.uint64(63)
    mantissa = high >> (top + np.uint64(9))
    exponent = ((217_706 * q) >> 16) + 1086 + np.int64(top) - shift
    if exponent <= 0:  # subnormal
        return np.nan
    odd = mantissa & np.uint64(3) == one
    if odd and low <= one and -4 <= q <= 23 and mantissa << (top + np.uint64(9)) == high:
        mantissa -= one  # in the middle of two doubles: down to the even one
    mantissa = (mantissa + (mantissa & one)) >> one
    if mantissa >> np.uint64(53):
        mantissa >>= one
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf
    bits = (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))
    return np.uint64(bits).view(np.float64)


@kernel
def _significant_digits(text, i, digits):
    """Subtract the leading zeros from the number of digits."""
    while at(text, i) == _ZERO or at(text, i) == _POINT:
        digits -= at(text, i) == _ZERO
        i += 1
    return digits


@kernel
def read_number(text, i):
    """Return the number at ``i``, the position after it, and whether it was parsed."""
    sign = at(text, i)
    negative = sign == _MINUS
    if negative or sign == _PLUS:
        i += 1
    start, w, power = i, np.uint64(0), 0
    digit = digit_at(text, i)
    while 0 <= digit <= 9:
        w = w * np.uint64(10) + np.uint64(digit)
        i += 1
        digit = digit_at(text, i)
    digits = i - start
    if at(text, i) == _POINT:
        i += 1
        point = i
        digit = digit_at(text, i)
        while 0 <= digit <= 9:
            w = w * np.uint64(10) + np.uint64(digit)
            i += 1
            digit = digit_at(text, i)
        power = point - i
        digits -= power
    if digits == 0:
        return 0.0, i, False
    if digits > MAX_DIGITS and _significant_digits(text, start, digits) > MAX_DIGITS:
        return 0.0, i, False
    if at(text, i) | _CASE == _SMALL_E:
        sign = at(text, i + 1)
        i += 2 if sign in (_MINUS, _PLUS) else 1
        start, exponent = i, 0
        digit = digit_at(text, i)
        while 0 <= digit <= 9:
            exponent = exponent * 10 + digit
            i += 1
            digit = digit_at(text, i)
        if not 0 < i - start <= _MAX_EXPONENT_DIGITS:
            return 0.0, i, False
        power += -exponent if sign == _MINUS else exponent
    if w <= _EXACT and -22 <= power <= 22:  # (1)
        value = np.float64(w)
        value = value / _TEN[-power] if power < 0 else value * _TEN[power]
    else:
        value = _nearest(w, power)  # (2)
    return -value if negative else value, i, value == value


@kernel
def stands_at(text, i, token):
    """Return whether the text has the bytes of ``token`` at ``i``."""
    for k in range(len(token)):  # noqa: SIM110 (kernels have no generators)
        if at(text, i + k) != token[k]:
            return False
    return True


@kernel
def _past_missing(text, i):
    """Return the position after a marker of a missing value, or ``i`` if there is none."""
    if stands_at(text, i, _NULL) or stands_at(text, i, _SMALL_NULL):
        return i + 4
    if stands_at(text, i, _NAN) or stands_at(text, i, _SMALL_NAN):
        return i + 3
    return i + 2 if stands_at(text, i, _NA) else i


# --- kernels: lines ----------------------------------------------------------------------------


@kernel
def _past_blanks(text, i):
    while _IS_BLANK[at(text, i)]:
        i += 1
    return i


@kernel
def _past_line(text, i):
    while at(text, i) != _NEWLINE:
        i += 1
    return i + 1


@kernel
def survey(text, counts):
    """Count the rows, stored values and comments of lines, and find the range of feature ids.

    Values whose text contains only zeros, a sign and a point are not stored in CSR. The counts of
    an invalid line are arbitrary, because `read_line` refuses it.
    """
    rows, values, lowest, highest, comments, i = 0, 0, NO_ID, -1, 0, 0
    while i < len(text):
        i = _past_blanks(text, i)
        rows += at(text, i) != _NEWLINE and at(text, i) != _HASH
        comment = at(text, i) == _HASH
        while at(text, i) != _NEWLINE and at(text, i) != _HASH:
            number, start = 0, i
            digit = digit_at(text, i)
            while 0 <= digit <= 9:
                number = min(number, _LARGE) * 10 + digit  # an id of many digits must not wrap
                i += 1
                digit = digit_at(text, i)
            if at(text, i) == _COLON and i > start:
                lowest, highest = min(lowest, number), max(highest, number)
                stored = False
                while at(text, i + 1) > _HASH:
                    i += 1
                    stored |= at(text, i) > _ZERO
                values += stored
                i += 1
            while not _ENDS_TOKEN[at(text, i)]:
                i += 1
            i = _past_blanks(text, i)
        comments += at(text, i) == _HASH and not comment
        i = _past_line(text, i)
    counts[ROWS], counts[VALUES], counts[COMMENTS] = rows, values, comments
    counts[LOWEST_ID], counts[HIGHEST_ID] = lowest, highest


class Rules(NamedTuple):
    """Requirements for the lines of a file.

    Parameters
    ----------
    grades
        Each line must begin with a grade; otherwise the grade of a line without one is 0.
    has_qid
        Each line has a query id.
    first_id
        Feature id of the first column, 0 or 1.
    width
        Number of features.
    limit
        Upper bound of absolute values, exclusive.
    """

    grades: bool
    has_qid: bool
    first_id: int
    width: int
    limit: float


@kernel
def parse(text, i, row, k, rules, y, spans, values, indices, ends):
    """Parse the lines from ``i`` up to the first line that must be parsed in Python.

    Return the position of that line or the length of the text, the next row, and the number of
    stored values. ``values``, ``indices`` and ``ends`` are a CSR matrix, or ``values`` a dense
    matrix row after row if the other two are None. ``spans[row]`` gets the start and end of the
    query id (equal for the same id as in the row before) and of the document id (-1 if the line has
    no comment).
    """
    id_start = id_end = 0
    while i < len(text):
        start, stored = i, k
        i = _past_blanks(text, i)
        if at(text, i) == _NEWLINE or at(text, i) == _HASH:
            i = _past_line(text, i)
            continue
        i, y[row] = _parse_grade(text, i, rules)
        spans[row, 0] = spans[row, 1] = i
        if i >= 0 and rules.has_qid:
            i = _past_query_id(text, i)
            if i >= 0:
                new_start = spans[row, 0] + len(_QID)
                new_id = text[new_start:i]
                if len(new_id) != id_end - id_start or not stands_at(text, id_start, new_id):
                    spans[row, 0], spans[row, 1] = new_start, i
                    id_start, id_end = new_start, i
        if i >= 0:
            i, k = _parse_features(text, i, row, k, rules, values, indices)
        if i >= 0:
            i = _parse_comment(text, i, spans[row])
        if i < 0:
            return start, row, stored
        if ends is not None:
            ends[row] = k
        row += 1
    return i, row, k


@kernel
def _parse_grade(text, i, rules):
    """Return the position of the next token, or -1 for an unusual line, and the grade."""
    if not rules.grades and stands_at(text, i, _QID):
        return i, 0.0
    grade, i, parsed = read_number(text, i)
    if not (parsed and 0 <= grade <= HIGHEST_GRADE and _ENDS_TOKEN[at(text, i)]):
        return -1, 0.0
    return _past_blanks(text, i), grade


@kernel
def _past_query_id(text, i):
    """Return the end of the query id, or -1 if there is none."""
    if not stands_at(text, i, _QID):
        return -1
    start = i + len(_QID)
    i = start
    while at(text, i) > _SPACE and at(text, i) != _HASH:
        i += 1
    return i if i > start and _ENDS_TOKEN[at(text, i)] else -1


@kernel
def _parse_features(text, i, row, k, rules, values, indices):
    """Return the end of the features, or -1 for an unusual line, and the end of their values."""
    last, i = -1, _past_blanks(text, i)
    while at(text, i) != _NEWLINE and at(text, i) != _HASH:
        number, start = 0, i
        digit = digit_at(text, i)
        while 0 <= digit <= 9:
            number = number * 10 + digit
            i += 1
            digit = digit_at(text, i)
        column = number - rules.first_id
        ascends = last < column < rules.width
        if at(text, i) != _COLON or not (ascends and 0 < i - start < MAX_DIGITS):
            return -1, k
        last, start = column, i + 1
        value, i, parsed = read_number(text, start)
        if not parsed:
            i = _past_missing(text, start)
            if i == start:
                return -1, k
            value = np.nan
        elif not -rules.limit < value < rules.limit:
            return -1, k
        if not _ENDS_TOKEN[at(text, i)]:
            return -1, k
        if indices is None:
            values[row * rules.width + column] = value
        elif value != 0.0 or not _only_zeros(text, start, i):
            values[k], indices[k] = value, column
            k += 1
        i = _past_blanks(text, i)
    return i, k


@kernel
def _only_zeros(text, i, end):
    while i < end and at(text, i) <= _ZERO:
        i += 1
    return i == end


@kernel
def _parse_comment(text, i, span):
    """Store the document id: the word after ``docid =``, or else the comment without blanks.

    Return the start of the next line, or -1 if the comment contains a NUL byte.
    """
    if at(text, i) == _NEWLINE:
        span[2], span[3] = -1, -1
        return i + 1
    start = _past_blanks(text, i + 1)
    end = i = start
    while at(text, i) != _NEWLINE:
        if at(text, i) == 0:
            return -1
        i += 1
        if not _IS_BLANK[at(text, i - 1)]:
            end = i
    if stands_at(text, start, _DOCID):
        equals = _past_blanks(text, start + len(_DOCID))
        word = _past_blanks(text, equals + 1) if at(text, equals) == _EQUALS else end
        if word < end:
            start = end = word
            while not (_IS_BLANK[at(text, end)] or at(text, end) == _NEWLINE):
                end += 1
    span[2], span[3] = start, end
    return i + 1


# --- one line in Python ------------------------------------------------------------------------

_BLANKS = b" \t\r"
_MISSING = frozenset({b"NULL", b"null", b"NaN", b"nan", b"NA"})
_TOKEN = re.compile(rb"[^ \t\r]+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_DOCID_WORD = re.compile(rb"docid[ \t\r]*=[ \t\r]*([^ \t\r]+)")
_FORM = "the format of a line is '<grade> qid:<query id> <feature id>:<value> ...'"
_LONGEST_SHOWN = 40


class Line(NamedTuple):
    """A parsed line; the features have ascending columns, the spans are offsets in the line."""

    grade: float
    columns: list[int]
    values: list[float]
    stored: list[bool]
    spans: tuple[int, int, int, int]


def read_line(line: bytes, rules: Rules, highest_id: str) -> Line:
    """Parse a line without its newline, or raise `DataError` with the first error in it.

    Parameters
    ----------
    line
        A line with at least one token.
    rules
        Requirements of the file.
    highest_id
        Reason why a feature id beyond the last column is refused.
    """
    head, hash_sign, comment = line.partition(b"#")
    _refuse_binary(head, comment)
    tokens = list(_TOKEN.finditer(head))
    grade = 0.0
    if rules.grades or not tokens[0].group().startswith(b"qid:"):
        grade = _grade(tokens.pop(0).group())
    query_id = _query_id(tokens, rules.has_qid)
    features: dict[int, tuple[float, bool]] = {}
    for token in tokens:
        column, value = _feature(token.group(), rules, highest_id)
        if column in features:
            raise DataError(f"feature id {column + rules.first_id} appears twice.")
        features[column] = value, max(token.group().partition(b":")[2]) > _ZERO
    columns = sorted(features)
    values = [features[column][0] for column in columns]
    stored = [features[column][1] for column in columns]
    document_id = _document_id(line, len(head) + 1) if hash_sign else (-1, -1)
    return Line(grade, columns, values, stored, (*query_id, *document_id))


def _refuse_binary(head: bytes, comment: bytes) -> None:
    control = _NOT_TEXT.search(head) or re.search(rb"\x00", comment)
    if control:
        byte = control.group()[0]
        advice = "take it out" if byte else "text in UTF-16 must be saved as UTF-8 first"
        raise DataError(
            f"byte {byte} is a control character, so this is not a text file; {advice}."
        )
    try:
        head.decode()
    except UnicodeDecodeError as error:
        byte = head[error.start]
        raise DataError(
            f"byte {byte} is not UTF-8, so this is not a text file; save it as UTF-8 first."
        ) from None


def _grade(token: bytes) -> float:
    if token.startswith(b"qid:"):
        raise DataError(
            f"the grade before {_shown(token)} is missing; {_FORM}. Documents without grades can "
            "only be ranked (rankwright rank, or grades=False)."
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
    if grade > HIGHEST_GRADE:
        raise DataError(f"grade {_shown(token)} is above 2^53; divide all grades by a number.")
    return grade


def _query_id(tokens: list[re.Match[bytes]], has_qid: bool) -> tuple[int, int]:
    """Remove the query id from the tokens and return its span."""
    first = tokens[0].group() if tokens else b""
    if not has_qid:
        if first.startswith(b"qid:"):
            raise DataError(
                f"{_shown(first)} is a query id, but the sizes of the queries were passed; omit "
                "the ids or the sizes."
            )
        return 0, 0
    if not first.startswith(b"qid:"):
        raise DataError(
            f"qid:<query id> is missing after the grade; {_FORM}, or the sizes of the queries "
            "must be given (group_sizes=..., or a .query file with the same name)."
        )
    if first == b"qid:":
        raise DataError("the query id after 'qid:' is empty.")
    start, end = tokens.pop(0).span()
    return start + len(b"qid:"), end


def _feature(token: bytes, rules: Rules, highest_id: str) -> tuple[int, float]:
    """Return the column and the value."""
    name, colon, value = token.partition(b":")
    if name == b"qid":
        raise DataError(f"{_shown(token)} must be directly after the grade.")
    if not colon:
        raise DataError(f"{_shown(token)} is not <feature id>:<value>; {_FORM}.")
    if not (name.isascii() and name.isdigit()):
        if name[:1] == b"-" and name[1:].isdigit():
            raise DataError(
                f"feature id {_shown(name)} is negative; ids start at {rules.first_id}."
            )
        raise DataError(f"feature id {_shown(name)} is not a whole number; {_FORM}.")
    digits = name.lstrip(b"0") or b"0"
    if len(digits) >= MAX_DIGITS or int(digits) >= rules.width + rules.first_id:
        raise DataError(f"feature id {_shown(digits, quote='')} is {highest_id}.")
    if int(digits) < rules.first_id:
        raise DataError(
            "feature id 0 is in a file whose ids start at 1; if they start at 0, "
            "pass zero_based=True (--read zero_based=true)."
        )
    return int(digits) - rules.first_id, _value(name, value, rules.limit)


def _value(name: bytes, token: bytes, limit: float) -> float:
    if token in _MISSING:
        return math.nan
    if not token:
        raise DataError(f"feature {_shown(name, quote='')} has no value after the colon.")
    if _INFINITE.fullmatch(token):
        raise DataError(f"feature value {_shown(token)} is infinite; write NULL for a missing one.")
    if not _NUMBER.fullmatch(token):
        raise DataError(f"feature value {_shown(token)} is not a number.")
    value = float(token)
    if not -limit < value < limit:
        kind = "float64" if math.isinf(limit) else "float32"
        raise DataError(f"feature value {_shown(token)} is too large for {kind}.")
    return value


def _document_id(line: bytes, start: int) -> tuple[int, int]:
    """Return the span of the word after ``docid =``, or else of the comment without blanks."""
    comment = line[start:]
    start += len(comment) - len(comment.lstrip(_BLANKS))
    comment = comment.strip(_BLANKS)
    if word := _DOCID_WORD.match(comment):
        return start + word.start(1), start + word.end(1)
    return start, start + len(comment)


def _shown(token: bytes, quote: str = "'") -> str:
    text = token.decode(errors="replace")
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "…"
    return f"{quote}{text}{quote}"

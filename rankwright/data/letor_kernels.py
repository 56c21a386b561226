"""Parsing LETOR text: numbers, lines and chunks of lines as kernels, odd lines in Python.

A line is ``<grade> qid:<query id> <feature id>:<value> ... # comment``; blanks are spaces, tabs
and carriage returns. Every chunk of text ends with a newline, and every loop stops at one, so no
loop has to ask where the text ends. A line that a kernel is not sure of, be it wrong or only
unusual (a number smaller than 1e-307), is marked and left to `read_line`, which reads it in Python
or says what is wrong with it. Kernels therefore never explain, and never guess.

Numbers are read exactly as ``float`` reads them, and written as briefly as ``repr`` does. A decimal
w · 10^q with integer w becomes the nearest double, ties to even:

    (1)  w <= 2^53 and |q| <= 22: both are doubles, and one operation rounds once  [clinger1990]
    (2)  w < 2^64: the product of w and a 128-bit approximation of 5^q decides     [lemire2021]

The shortest decimal that is read as x is found the other way round:

    (3)  x · 10^k has 17 digits before the point; less than half the gap between doubles away from
         it, the nearest number of 15, 16 or 17 digits is taken                    [adams2018]

What none of them decides (long numbers that are nearly halfway between two doubles, numbers so
small that digits are lost) is left to Python.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from rankwright.core.checks import HIGHEST_GRADE
from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64, AnyArray
from rankwright.errors import DataError

_PLUS, _MINUS, _POINT, _ZERO, _SMALL_E = 43, 45, 46, 48, 101
_CASE = 32  # the bit that tells a small letter from a capital
_NULL, _SMALL_NULL = np.frombuffer(b"NULL", np.uint8), np.frombuffer(b"null", np.uint8)
_NAN, _SMALL_NAN = np.frombuffer(b"NaN", np.uint8), np.frombuffer(b"nan", np.uint8)
_NA = np.frombuffer(b"NA", np.uint8)

MAX_DIGITS = 19  # of an integer below 2^64
_MAX_EXPONENT = 1 << 40  # far more than any digits can make up for
_EXACT = np.uint64(1 << 53)
_TEN = 10.0 ** np.arange(23)
_MIN_POWER, _MAX_POWER = -342, 308
_TENS = 10 ** np.arange(18)
_E16, _E17 = np.uint64(10**16), np.uint64(10**17)

WRITING = {"float64": (1e-290, 53, 15), "float32": (2.0**-126, 24, 6)}
"""For each type: the smallest number `write_number` writes, its bits, and its sure digits."""


def _powers_of_five() -> np.ndarray:
    """Return 5^q scaled to 128 bits, high and low half, for every q a double can need."""
    table = np.empty((_MAX_POWER - _MIN_POWER + 1, 2), np.uint64)
    for q in range(_MIN_POWER, _MAX_POWER + 1):
        five = 5 ** abs(q)
        if q >= 0:
            scaled = (five << 128) >> five.bit_length()
        elif q >= -27:  # rounded up, so that a number halfway between doubles is seen as such
            scaled = (1 << (five.bit_length() + 127)) // five + 1
        else:
            scaled = (1 << (2 * five.bit_length() + 128)) // five
            scaled >>= scaled.bit_length() - 128
        table[q - _MIN_POWER] = scaled >> 64, scaled & (2**64 - 1)
    return table


_FIVE = _powers_of_five()

# --- kernels: numbers, read --------------------------------------------------------------------


@kernel
def at(text, i):  # type: ignore[no-untyped-def]
    """Return ``text[i]``; an unsigned index spares the test for a negative one."""
    return text[np.uint64(i)]


@kernel
def digit_at(text, i):  # type: ignore[no-untyped-def]
    """Return the digit at ``i``; something below 0 or above 9 where there is none."""
    return np.int64(text[np.uint64(i)]) - _ZERO


@kernel
def _product(a, b):  # type: ignore[no-untyped-def]
    """Return the high and the low half of the 128-bit product of two uint64."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    cross = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (cross >> half), a * b


@kernel
def _nearest(w, q):  # type: ignore[no-untyped-def]
    """Return the double nearest to w · 10^q by (2), or NaN where 128 bits do not decide."""
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
    if exponent <= 0:  # so small that digits are lost
        return np.nan
    odd = mantissa & np.uint64(3) == one
    if odd and low <= one and -4 <= q <= 23 and mantissa << (top + np.uint64(9)) == high:
        mantissa -= one  # halfway: down to the even one
    mantissa = (mantissa + (mantissa & one)) >> one
    if mantissa >> np.uint64(53):
        mantissa >>= one
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf
    bits = (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))
    return np.uint64(bits).view(np.float64)


@kernel
def _read_exponent(text, i):  # type: ignore[no-untyped-def]
    """Read what follows an 'e': return the exponent, where it ends, and whether it is one."""
    sign = at(text, i)
    negative = sign == _MINUS
    if negative or sign == _PLUS:
        i += 1
    power, start = 0, i
    digit = digit_at(text, i)
    while 0 <= digit <= 9:
        power = min(power * 10 + digit, _MAX_EXPONENT)
        i += 1
        digit = digit_at(text, i)
    return -power if negative else power, i, i > start


@kernel
def _first_digits(text, start, end):  # type: ignore[no-untyped-def]
    """Return the first 19 digits, from the first that is not 0, as w; and how many follow."""
    w, count, rest = np.uint64(0), 0, 0
    for i in range(start, end):
        digit = digit_at(text, i)
        if digit >= 0 and count == MAX_DIGITS:  # the point is below
            rest += 1
        elif digit >= 0:
            w = w * np.uint64(10) + np.uint64(digit)
            count += 1 if w > 0 else 0
    return w, rest


@kernel
def read_number(text, i):  # type: ignore[no-untyped-def]
    """Return the number at ``i``, where it ends, whether it was read, and if only 0s stand there.

    Only 0s: ``0`` and ``0.000``, but not ``-0`` nor ``0e5``.
    """
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
        return 0.0, i, False, False
    rest = 0
    if digits > MAX_DIGITS:
        w, rest = _first_digits(text, start, i)
        power += rest
    zeros = w == 0 and not negative
    if at(text, i) | _CASE == _SMALL_E:
        given, i, known = _read_exponent(text, i + 1)
        if not known:
            return 0.0, i, False, False
        power += given
        zeros = False
    if w <= _EXACT and -22 <= power <= 22:  # (1)
        value = np.float64(w)
        value = value / _TEN[-power] if power < 0 else value * _TEN[power]
    else:
        value = _nearest(w, power)  # (2)
        if rest > 0 and value != _nearest(w + np.uint64(1), power):  # the digits left out decide
            return 0.0, i, False, False
    return -value if negative else value, i, value == value, zeros


@kernel
def stands_at(text, i, token):  # type: ignore[no-untyped-def]
    """Whether the bytes of ``token`` stand at ``i``."""
    for k in range(len(token)):  # noqa: SIM110 (kernels have no generators)
        if at(text, i + k) != token[k]:
            return False
    return True


@kernel
def past_missing(text, i):  # type: ignore[no-untyped-def]
    """Return where a marker of a missing value at ``i`` ends, or ``i`` where none stands."""
    if stands_at(text, i, _NULL) or stands_at(text, i, _SMALL_NULL):
        return i + 4
    if stands_at(text, i, _NAN) or stands_at(text, i, _SMALL_NAN):
        return i + 3
    return i + 2 if stands_at(text, i, _NA) else i


# --- kernels: numbers, written ------------------------------------------------------------------


@kernel
def _scaled(x):  # type: ignore[no-untyped-def]
    """Return x · 10^k, of 17 digits, as its whole part and the rest; also k."""
    fraction, exponent = math.frexp(x)
    w = np.uint64(fraction * 2.0**53) << np.uint64(11)
    k = 16 - (((exponent - 1) * 78_913) >> 18)  # log10(2) = 78913 / 2^18, nearly
    while True:
        high, low = _product(w, _FIVE[k - _MIN_POWER, 0])
        more, _ = _product(w, _FIVE[k - _MIN_POWER, 1])
        low += more
        if low < more:
            high += np.uint64(1)
        below = np.uint64(63 - exponent - ((217_706 * k) >> 16))  # bits below the point in high
        whole = high >> below
        if _E16 <= whole < _E17:
            rest = (high << (np.uint64(64) - below)) | (low >> below)
            return np.int64(whole), np.float64(rest) * 2.0**-64, k
        k += 1 if whole < _E16 else -1


@kernel
def _shortest(x, bits, digits):  # type: ignore[no-untyped-def]
    """Return c and q with the shortest c · 10^q that is read as x > 0 by (3), and if it is sure.

    ``bits`` are those of the fraction: 53, or 24 of a float; ``digits`` so few that only one
    number of that length can be near x: 15, or 6.
    """
    whole, rest, k = _scaled(x)
    fraction, _ = math.frexp(x)
    near = np.float64(whole) / fraction * 2.0 ** -(bits + 1)
    step = _TENS[17 - digits]
    while step > 0:
        c = (whole + step // 2) // step
        if step == 1 and rest >= 0.5:
            c += 1
        away = np.float64(c * step - whole) - rest
        reach = near / 2 if away < 0 and fraction == 0.5 else near  # the gap below 2^j is half
        if abs(abs(away) - reach) < 1e-6 * reach:
            return 0, 0, False
        if abs(away) < reach:
            sure = abs(abs(away) - step / 2) > 1e-6
            power = 0
            while c % 10 == 0:
                c //= 10
                power += 1
            while step > 1:
                step //= 10
                power += 1
            return c, power - k, sure
        if fraction == 0.5:
            return 0, 0, False
        step //= 10
    return 0, 0, False


@kernel
def _write_digits(c, n, out, i):  # type: ignore[no-untyped-def]
    """Write the last ``n`` digits of ``c`` at ``i``; return where they end."""
    for j in range(i + n - 1, i - 1, -1):
        out[j] = _ZERO + c % 10
        c //= 10
    return i + n


@kernel
def _count_digits(c):  # type: ignore[no-untyped-def]
    n = 1
    while c >= 10:
        c //= 10
        n += 1
    return n


@kernel
def write_integer(c, out, i):  # type: ignore[no-untyped-def]
    """Write c >= 0 at ``i``; return where it ends."""
    return _write_digits(c, _count_digits(c), out, i)


@kernel
def write_number(x, how, out, i):  # type: ignore[no-untyped-def]
    """Write ``x`` at ``i`` as ``repr`` does, without a final '.0'; return its end, -1 if unsure.

    ``how`` is the entry of `WRITING` for the type that is to be read back.
    """
    smallest, bits, digits = how
    if x != x:
        out[i], out[i + 1], out[i + 2] = 78, 97, 78
        return i + 3
    if math.copysign(1.0, x) < 0:
        out[i] = _MINUS
        i += 1
    x = abs(x)
    if x == 0:
        out[i] = _ZERO
        return i + 1
    if not smallest <= x < np.inf:
        return -1
    c, power, sure = _shortest(x, bits, digits)
    if not sure:
        return -1
    n = _count_digits(c)
    size = n + power - 1  # of the first digit, as a power of ten
    if size < -4 or size >= 16:
        return _write_scientific(c, n, size, out, i)
    if power >= 0:
        i = _write_digits(c, n, out, i)
        return _write_digits(0, power, out, i)
    if size >= 0:
        scale = _TENS[-power]
        i = _write_digits(c // scale, n + power, out, i)
        out[i] = _POINT
        return _write_digits(c % scale, -power, out, i + 1)
    out[i], out[i + 1] = _ZERO, _POINT
    i = _write_digits(0, -size - 1, out, i + 2)
    return _write_digits(c, n, out, i)


@kernel
def _write_scientific(c, n, size, out, i):  # type: ignore[no-untyped-def]
    scale = _TENS[n - 1]
    out[i] = _ZERO + c // scale
    i += 1
    if n > 1:
        out[i] = _POINT
        i = _write_digits(c % scale, n - 1, out, i + 1)
    out[i], out[i + 1] = _SMALL_E, _MINUS if size < 0 else _PLUS
    return _write_digits(abs(size), 2 if abs(size) < 100 else 3, out, i + 2)


# --- lines and chunks of lines ----------------------------------------------------------------

LEFT_TO_PYTHON = -1  # a query id of this length: the line was not read here
NO_COMMENT = -1  # a document name of this length
ROOM = 40  # for a blank, an id of ten digits, a colon and a number

# What `survey` counts in each chunk, by column.
LINES, ROWS, VALUES, HIGHEST_ID, FEATURES_AT, OTHER_IDS, COMMENTS = range(7)
SURVEYED = 7

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH = 9, 10, 13, 32, 35
_COLON, _EQUALS = 58, 61
_BLANK = np.isin(np.arange(256), [_SPACE, _TAB, _RETURN])
_ENDS_TOKEN = _BLANK | np.isin(np.arange(256), [_NEWLINE, _HASH])
_QID, _DOCID = np.frombuffer(b"qid:", np.uint8), np.frombuffer(b"docid", np.uint8)


class Rules(NamedTuple):
    """What lines of a file must keep to."""

    has_qid: bool
    base: int  # the lowest feature id, 0 or 1
    width: int  # the number of features
    top: float  # absolute values must stay below
    fill: bool  # a feature that a line does not name is missing, not 0


class Rows(NamedTuple):
    """The arrays that `parse` fills, one row for each line of data.

    Row r is ``out[r * width : (r + 1) * width]``; or where ``ends`` is not empty (CSR), it ends at
    ``ends[r + 1]``, and values of only 0s are left out. ``spans[r]`` says where query id and
    document name stand, each as start and length.
    """

    y: F64
    out: AnyArray
    indices: AnyArray
    ends: AnyArray
    spans: I64


# --- kernels: parts of a line ----------------------------------------------------------------


@kernel
def _is_blank(c):  # type: ignore[no-untyped-def]
    return _BLANK[c]


@kernel
def _ends_token(c):  # type: ignore[no-untyped-def]
    return _ENDS_TOKEN[c]


@kernel
def _past_blanks(text, i):  # type: ignore[no-untyped-def]
    while at(text, i) <= _SPACE and _is_blank(at(text, i)):
        i += 1
    return i


@kernel
def _past_token(text, i):  # type: ignore[no-untyped-def]
    while not _ends_token(at(text, i)):
        i += 1
    return _past_blanks(text, i)


@kernel
def _line_end(text, i):  # type: ignore[no-untyped-def]
    while at(text, i) != _NEWLINE:
        i += 1
    return i


@kernel
def _survey_line(text, i):  # type: ignore[no-untyped-def]
    """Count from ``i`` on: values that are not only 0s, features, the highest id; also the end.

    The end is the '#' or the newline. The line may hold anything; what is counted on a bad line
    does not matter, but must be the same each time.
    """
    values, features, highest = 0, 0, -1
    while at(text, i) != _NEWLINE and at(text, i) != _HASH:
        number, start = 0, i
        digit = digit_at(text, i)
        while 0 <= digit <= 9:
            number = number * 10 + digit
            i += 1
            digit = digit_at(text, i)
        if at(text, i) == _COLON and i > start:
            i += 1
            not_zero = at(text, i) == _MINUS
            while at(text, i) > _HASH:
                not_zero |= at(text, i) > _ZERO
                i += 1
            values += not_zero
            features += 1
            highest = max(highest, number)
        while at(text, i) > _SPACE and at(text, i) != _HASH:
            i += 1
        while at(text, i) <= _SPACE and at(text, i) != _NEWLINE:
            i += 1
    return values, features, highest, i


@kernel
def _sort(ids, values):  # type: ignore[no-untyped-def]
    """Sort ``ids`` and move ``values`` along, in the manner of Shell; they may be one array."""
    gap = 1
    while gap < len(ids) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(ids)):
            moved, value, j = ids[i], values[i], i
            while j >= gap and ids[j - gap] > moved:
                ids[j], values[j] = ids[j - gap], values[j - gap]
                j -= gap
            ids[j], values[j] = moved, value
        gap //= 3


@kernel
def _repeats_a_feature(text, i):  # type: ignore[no-untyped-def]
    """Whether an id stands twice on a line of good features; asked where ids do not ascend."""
    _, features, _, _ = _survey_line(text, i)
    ids = np.empty(features, np.int64)
    for k in range(features):
        number = 0
        while at(text, i) != _COLON:
            number = number * 10 + digit_at(text, i)
            i += 1
        ids[k] = number
        i = _past_token(text, i)
    _sort(ids, ids)
    for k in range(1, features):  # noqa: SIM110 (kernels have no generators)
        if ids[k] == ids[k - 1]:
            return True
    return False


@kernel
def _is_integer(text, i):  # type: ignore[no-untyped-def]
    """Whether the token at ``i`` is an int64 as Python writes it: 7 or -7, but not 007."""
    negative = at(text, i) == _MINUS
    if negative:
        i += 1
    start, number = i, np.uint64(0)
    digit = digit_at(text, i)
    while 0 <= digit <= 9 and i - start < MAX_DIGITS:
        number = number * np.uint64(10) + np.uint64(digit)
        i += 1
        digit = digit_at(text, i)
    if i == start or not _ends_token(at(text, i)):
        return False
    if at(text, start) == _ZERO:
        return i == start + 1 and not negative
    return number <= np.uint64((1 << 63) - 1) + np.uint64(negative)


@kernel
def _read_comment(text, i):  # type: ignore[no-untyped-def]
    """Return start and end of the document's name after the '#' at ``i``, and the line's end.

    After ``docid =`` the name is one word, otherwise all of the comment. The line's end is -1
    where the comment holds a NUL byte.
    """
    start = _past_blanks(text, i + 1)
    stop = end = start
    while at(text, end) != _NEWLINE:
        if at(text, end) == 0:
            return start, stop, -1
        if not _is_blank(at(text, end)):
            stop = end + 1
        end += 1
    if stands_at(text, start, _DOCID):
        equals = _past_blanks(text, start + len(_DOCID))
        word = _past_blanks(text, equals + 1) if at(text, equals) == _EQUALS else stop
        if word < stop:
            start = stop = word
            while not (_is_blank(at(text, stop)) or at(text, stop) == _NEWLINE):
                stop += 1
    return start, stop, end


# --- kernels: chunks of lines ----------------------------------------------------------------


@kernel
def count_lines(lo, hi, cuts, text, lines, others):  # type: ignore[no-untyped-def]
    """Count the lines of chunks ``lo:hi``, and those that may be blank or start with a comment.

    This is many times faster than `survey`: the loop has no branches.
    """
    for chunk in range(lo, hi):
        here = text[cuts[chunk] : cuts[chunk + 1] - 1]
        following = text[cuts[chunk] + 1 : cuts[chunk + 1]]
        ends, odd = 0, 0
        for k in range(len(here)):
            ends += here[k] == _NEWLINE
            odd += (here[k] == _NEWLINE) & (following[k] <= _HASH)
        lines[chunk] = ends + 1
        others[chunk] = odd + (text[cuts[chunk]] <= _HASH)


@kernel
def survey(lo, hi, cuts, text, counts):  # type: ignore[no-untyped-def]
    """Count what chunks ``lo:hi`` hold, so that arrays of the right size can be made."""
    for chunk in range(lo, hi):
        lines, rows, values, highest, features_at, others, comments = 0, 0, 0, -1, -1, 0, 0
        i = cuts[chunk]
        while i < cuts[chunk + 1]:
            start = i
            lines += 1
            i = _past_blanks(text, i)
            if at(text, i) != _NEWLINE and at(text, i) != _HASH:
                rows += 1
                i = _past_token(text, i)
                others += not (stands_at(text, i, _QID) and _is_integer(text, i + len(_QID)))
                line_values, features, line_highest, i = _survey_line(text, i)
                values += line_values
                highest = max(highest, line_highest)
                if features > 0 and features_at < 0:
                    features_at = start
                comments += at(text, i) == _HASH
            i = _line_end(text, i) + 1
        counts[chunk, LINES], counts[chunk, ROWS], counts[chunk, VALUES] = lines, rows, values
        counts[chunk, HIGHEST_ID], counts[chunk, FEATURES_AT] = highest, features_at
        counts[chunk, OTHER_IDS], counts[chunk, COMMENTS] = others, comments


@kernel
def parse(lo, hi, cuts, text, origin, first, rules, rows, indices, ends):  # type: ignore[no-untyped-def]
    """Read the lines of chunks ``lo:hi`` by `Rules` into `Rows`.

    The rows and values of a chunk start at ``first[chunk]``; ``origin`` is the place of ``text`` in
    the whole. ``indices`` and ``ends`` are those of `Rows`, or None for dense rows, so that code
    is compiled for one of the two alone.
    """
    width, spans = rules.width, rows.spans
    for chunk in range(lo, hi):
        i, row, k = cuts[chunk], first[chunk, 0], first[chunk, 1]
        while i < cuts[chunk + 1]:
            start = i
            i = _past_blanks(text, i)
            if at(text, i) != _NEWLINE and at(text, i) != _HASH:
                if rules.fill:
                    rows.out[row * width : (row + 1) * width] = np.nan
                end = _parse_head(text, i, origin, row, rules.has_qid, rows)
                stop = k
                if end >= 0:
                    end, stop = _parse_features(text, end, row, k, rules, rows.out, indices)
                if end >= 0:
                    end = _parse_comment(text, end, origin, row, spans)
                if end < 0:
                    spans[row, 0], spans[row, 1] = start + origin, LEFT_TO_PYTHON
                    values, _, _, end = _survey_line(text, _past_token(text, i))
                    stop = k + values
                i, k = end, stop
                row += 1
                if ends is not None:
                    ends[row] = k
            i = _line_end(text, i) + 1


@kernel
def _parse_head(text, i, origin, row, has_qid, rows):  # type: ignore[no-untyped-def]
    """Read grade and query id; return where the features start, or -1 if unsure."""
    grade, i, known, _ = read_number(text, i)
    if not (known and 0 <= grade <= HIGHEST_GRADE and _ends_token(at(text, i))):
        return -1
    rows.y[row] = grade
    i = _past_blanks(text, i)
    rows.spans[row, 0], rows.spans[row, 1] = i + origin, 0
    if has_qid:
        if not stands_at(text, i, _QID):
            return -1
        start = i + len(_QID)
        i = start
        while at(text, i) > _SPACE and at(text, i) != _HASH:
            i += 1
        if i == start or not _ends_token(at(text, i)):
            return -1
        rows.spans[row, 0], rows.spans[row, 1] = start + origin, i - start
    return _past_blanks(text, i)


@kernel
def _parse_features(text, i, row, k, rules, out, indices):  # type: ignore[no-untyped-def]
    """Read features to their columns of ``row``, or from ``k`` on (CSR).

    Return the ends of the text and of the values; -1 for the first if unsure.
    """
    base, width, top, shift = rules.base, rules.width, rules.top, row * rules.width
    first, first_value, last, ascending = i, k, -1, True
    while at(text, i) != _NEWLINE and at(text, i) != _HASH:
        number, start = 0, i
        digit = digit_at(text, i)
        while 0 <= digit <= 9:  # as in `_survey_line`; a kernel for both is a fifth slower
            number = number * 10 + digit
            i += 1
            digit = digit_at(text, i)
        column = number - base
        if at(text, i) != _COLON or not (0 < i - start < MAX_DIGITS and 0 <= column < width):
            return -1, k
        i += 1
        value, end, known, zeros = read_number(text, i)
        if not known:
            end = past_missing(text, i)
            if end == i:
                return -1, k
            value = np.nan
        elif not -top < value < top:
            return -1, k
        i = end
        if not _ends_token(at(text, i)):
            return -1, k
        ascending &= column > last
        last = column
        if indices is None:
            out[shift + column] = value
        elif not zeros:
            out[k] = value
            indices[k] = column
            k += 1
        i = _past_blanks(text, i)
    if not ascending:
        if _repeats_a_feature(text, first):
            return -1, k
        if indices is not None:
            _sort(indices[first_value:k], out[first_value:k])
    return i, k


@kernel
def _parse_comment(text, i, origin, row, spans):  # type: ignore[no-untyped-def]
    spans[row, 2], spans[row, 3] = 0, NO_COMMENT
    if at(text, i) == _HASH:
        start, stop, i = _read_comment(text, i)
        spans[row, 2], spans[row, 3] = start + origin, stop - start
    return i


# --- kernels: names --------------------------------------------------------------------------


@kernel
def mark_runs(text, spans, starts_run):  # type: ignore[no-untyped-def]
    """Mark the rows whose query id is not that of the row before."""
    for row in range(len(spans)):
        same = row > 0 and spans[row, 1] == spans[row - 1, 1]
        if same:
            for k in range(spans[row, 1]):
                if at(text, spans[row, 0] + k) != at(text, spans[row - 1, 0] + k):
                    same = False
                    break
        starts_run[row] = not same


@kernel
def copy_ascii(lo, hi, text, spans, letters, other):  # type: ignore[no-untyped-def]
    """Copy the document names of rows ``lo:hi`` to ``letters``; mark those that are not ASCII."""
    for row in range(lo, hi):
        start, beyond, name = spans[row, 2], False, letters[row]
        for k in range(spans[row, 3]):
            letter = at(text, start + k)
            name[np.uint64(k)] = letter
            beyond |= letter > 127
        other[row] = beyond


# --- kernels: features, written -------------------------------------------------------------------


@kernel
def write_rows(lo, hi, ends, ids, values, how, text, stops):  # type: ignore[no-untyped-def]
    """Write `` <id>:<value>`` for every value of rows ``lo:hi``; row r has those up to ``ends[r]``.

    It goes to ``text[ends[r - 1] * ROOM :]``, up to ``stops[r]``, which is
    `LEFT_TO_PYTHON` where a number is.
    """
    for row in range(lo, hi):
        start = ends[row - 1] if row > 0 else 0
        i = start * ROOM
        for k in range(start, ends[row]):
            text[i] = _SPACE
            i = write_integer(ids[k], text, i + 1)
            text[i] = _COLON
            i = write_number(np.float64(values[k]), how, text, i + 1)
            if i < 0:
                break
        stops[row] = i


# --- one line in Python, and what can be wrong with it --------------------------------------------

BLANKS = b" \t\r"
MISSING = frozenset({b"NULL", b"null", b"NaN", b"nan", b"NA"})

_TOKEN = re.compile(rb"[^ \t\r]+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_DOCID_NAME = re.compile(rb"docid[ \t\r]*=[ \t\r]*([^ \t\r]+)")
_FORM = "a line reads '<grade> qid:<query id> <feature id>:<value> ...'"
_LONGEST_SHOWN = 40


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
    except UnicodeDecodeError as error:
        byte = head[error.start]
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
    if grade > HIGHEST_GRADE:
        raise DataError(f"grade {_shown(token)} is above 2^53; divide all grades by a number.")
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
    if named := _DOCID_NAME.match(comment):
        return start + named.start(1), named.end(1) - named.start(1)
    return start, len(comment)


def _shown(token: bytes, quote: str = "'") -> str:
    text = token.decode(errors="replace")
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "…"
    return f"{quote}{text}{quote}"

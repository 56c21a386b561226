"""Reading LETOR text fast: lines and chunks of lines, as serial kernels.

Every chunk of text ends with a newline, and every loop stops at one, so no loop has to ask where
the text ends. A line that a kernel is not sure of, be it wrong or only unusual (a number smaller
than 1e-307), is marked and left to `rankwright.data.letor_line`, which reads it in Python or says
what is wrong with it. Kernels therefore never explain, and never guess.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.data.letor_numbers import (
    MAX_DIGITS,
    at,
    digit_at,
    past_missing,
    read_number,
    stands_at,
)

LEFT_TO_PYTHON = -1  # a query id of this length: the line was not read here
NO_COMMENT = -1  # a document name of this length

# What `survey` counts in each chunk, by column.
LINES, ROWS, VALUES, HIGHEST_ID, FEATURES_AT, OTHER_IDS, COMMENTS = range(7)
SURVEYED = 7

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH = 9, 10, 13, 32, 35
_MINUS, _ZERO, _COLON, _EQUALS = 45, 48, 58, 61
_BLANK = np.isin(np.arange(256), [_SPACE, _TAB, _RETURN])
_ENDS_TOKEN = _BLANK | np.isin(np.arange(256), [_NEWLINE, _HASH])
_QID, _DOCID = np.frombuffer(b"qid:", np.uint8), np.frombuffer(b"docid", np.uint8)

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
    """Sort ``ids`` and move ``values`` along, in the manner of Shell."""
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
    _sort(ids, ids.copy())
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
    while 0 <= digit_at(text, i) <= 9 and i - start < MAX_DIGITS:
        number = number * np.uint64(10) + np.uint64(digit_at(text, i))
        i += 1
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
def parse(lo, hi, cuts, text, origin, first, rules, y, out, indices, ends, spans):  # type: ignore[no-untyped-def]
    """Read the lines of chunks ``lo:hi``, whose rows and values start at ``first[chunk]``.

    Row r is ``out[r * width : (r + 1) * width]``; or where ``ends`` is not None (CSR), it ends
    at ``ends[r + 1]``, and values of only 0s are left out. ``rules`` are those of `Rules`.
    ``spans[r]`` tells where query id and document name stand, each as start and length;
    ``origin`` is the place of ``text`` in the whole.
    """
    has_qid, base, width, top, fill = rules
    for chunk in range(lo, hi):
        i, row, k = cuts[chunk], first[chunk, 0], first[chunk, 1]
        while i < cuts[chunk + 1]:
            start = i
            i = _past_blanks(text, i)
            if at(text, i) != _NEWLINE and at(text, i) != _HASH:
                if fill:
                    out[row * width : (row + 1) * width] = np.nan
                end = _parse_head(text, i, origin, row, has_qid, y, spans)
                stop = k
                if end >= 0:
                    end, stop = _parse_features(
                        text, end, row * width, k, base, width, top, out, indices
                    )
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
def _parse_head(text, i, origin, row, has_qid, y, spans):  # type: ignore[no-untyped-def]
    """Read grade and query id; return where the features start, or -1 if unsure."""
    grade, i, known, _ = read_number(text, i)
    if not (known and 0 <= grade < np.inf and _ends_token(at(text, i))):
        return -1
    y[row] = grade
    i = _past_blanks(text, i)
    spans[row, 0], spans[row, 1] = i + origin, 0
    if has_qid:
        if not stands_at(text, i, _QID):
            return -1
        start = i + len(_QID)
        i = start
        while at(text, i) > _SPACE and at(text, i) != _HASH:
            i += 1
        if i == start or not _ends_token(at(text, i)):
            return -1
        spans[row, 0], spans[row, 1] = start + origin, i - start
    return _past_blanks(text, i)


@kernel
def _parse_features(text, i, shift, k, base, width, top, out, indices):  # type: ignore[no-untyped-def]
    """Read features to ``out[shift:]``, or from ``k`` on (CSR); return the ends of both, or -1."""
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

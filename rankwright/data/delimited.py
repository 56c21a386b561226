"""Comma- and tab-separated text to columns and back: pyarrow where installed, else Python's csv.

Both read the same: columns asked for as text stay as written; in any other an empty cell, ``NaN``,
``NULL`` and ``NA`` are missing, and a number is the double nearest to what is written. Lines with
too few or too many cells are refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, BinaryIO

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.frames import CategoryColumn, Columns, arrow_dictionary, columns_of_frame
from rankwright.errors import DataError, quoted

MISSING_CELLS = ["", "NaN", "nan", "NULL", "null", "NA", "N/A"]
_TRUTH = {  # the words that pyarrow takes for booleans
    **dict.fromkeys(("true", "True", "TRUE", "1"), 1.0),
    **dict.fromkeys(("false", "False", "FALSE", "0"), 0.0),
}
_OTHER_SEPARATORS = {
    ";": "save it with commas between cells and points in numbers",
    "\t": "read it as tsv (format='tsv', --from tsv for convert) or name it .tsv",
    ",": "read it as csv (format='csv', --from csv for convert) or name it .csv",
    "|": "save it with commas between cells",
}
_BATCH_BYTES = 1 << 24


def has_pyarrow() -> bool:
    """Return whether the fast reader is there."""
    return find_spec("pyarrow") is not None


def column_names(raw: BinaryIO, separator: str) -> list[str]:
    """Return the names in the first line."""
    with _as_lines(raw) as lines:
        names = next(_cells(lines, separator), None)
    if not names:
        raise DataError("it is empty; the first line must name the columns.")
    _refuse_other_separator(names, separator)
    return refuse_repeated(names)


def _refuse_other_separator(names: list[str], separator: str) -> None:
    """Refuse a line of names that is separated by something else, as a spreadsheet may write it."""
    for other, advice in _OTHER_SEPARATORS.items():
        if other != separator and len(names) == 1 and other in names[0]:
            raise DataError(
                f"its first line is one column, {quoted(names[0])}, and appears to be separated "
                f"by {other!r}; {advice}."
            )


def refuse_repeated(names: list[str]) -> list[str]:
    """Return ``names`` if each is there once."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"the column name {quoted(twice[0])} is used twice; rename one.")
    return names


def read_columns(raw: BinaryIO, separator: str, wanted: list[str], text: list[str]) -> Columns:
    """Return a function from the name of a ``wanted`` column to its values.

    Columns in ``text`` stay text. Any other becomes numbers with NaN for missing; one that is not
    all numbers comes as text, for the caller to refuse by its name.
    """
    if not has_pyarrow():
        return _read_with_csv(raw, separator, text)
    pa, reader = import_module("pyarrow"), import_module("pyarrow.csv")
    content = raw.read()
    as_text = dict.fromkeys(text, pa.string())
    as_numbers = {name: as_text.get(name, pa.float64()) for name in wanted}
    try:
        try:
            options = _arrow_options(separator, wanted, as_numbers)
            table = reader.read_csv(pa.BufferReader(content), **options)
        except pa.ArrowInvalid:  # a column is not all numbers: let pyarrow find out what each is
            options = _arrow_options(separator, wanted, as_text)
            table = reader.read_csv(pa.BufferReader(content), **options)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise DataError(one_line(error)) from None
    return columns_of_frame(table)


def read_batches(
    raw: BinaryIO, separator: str, wanted: list[str], text: list[str]
) -> Iterator[Any]:
    """Yield Arrow record batches; every column that is not in ``text`` must be numbers.

    The first block decides which columns are of booleans.
    """
    pa, reader = import_module("pyarrow"), import_module("pyarrow.csv")
    start = raw.tell()
    names = column_names(raw, separator)
    kinds = dict.fromkeys(text, pa.string())
    try:
        raw.seek(start)
        # not from ``raw`` itself: pyarrow would go on reading it behind our back
        head = pa.BufferReader(_whole_lines(raw.read(_BATCH_BYTES)))
        first = reader.open_csv(head, **_arrow_options(separator, wanted, kinds))
        booleans = [field.name for field in first.schema if pa.types.is_boolean(field.type)]
        number = {name: pa.bool_() if name in booleans else pa.float64() for name in wanted}
        raw.seek(start)
        options = _arrow_options(separator, wanted, {**number, **kinds})
        yield from reader.open_csv(raw, **options)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise DataError(_error_in_column(error, names)) from None


def _whole_lines(block: bytes) -> bytes:
    """Return a full block up to its last line end outside quotes; a short one is all there is."""
    end = len(block)
    while len(block) == _BATCH_BYTES and (end := block.rfind(b"\n", 0, end)) > 0:
        if block.count(b'"', 0, end) % 2 == 0:
            return block[: end + 1]
    return block


def arrow_table(columns: dict[str, Any]) -> Any:
    """Return columns as an Arrow table, categories as dictionaries."""
    pa = import_module("pyarrow")
    try:
        made = {
            name: arrow_dictionary(values) if isinstance(values, CategoryColumn) else values
            for name, values in columns.items()
        }
        return pa.table(made)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"a column cannot be written: {one_line(error)}") from None


class DelimitedSink:
    """Writes blocks of columns below one line of names."""

    def __init__(self, stream: BinaryIO, separator: str) -> None:
        self.stream, self.separator, self.header = stream, separator, True

    def write(self, columns: dict[str, AnyArray]) -> None:
        """Append a block; numbers get as few digits as bring back the same bits."""
        if has_pyarrow():
            writer = import_module("pyarrow.csv")
            options = writer.WriteOptions(include_header=self.header, delimiter=self.separator)
            writer.write_csv(arrow_table(columns), self.stream, options)
        else:
            text = io.StringIO(newline="")
            lines = csv.writer(text, delimiter=self.separator, lineterminator="\n")
            if self.header:
                lines.writerow(columns)
            lines.writerows(zip(*map(_cells_of, columns.values()), strict=True))
            self.stream.write(text.getvalue().encode())
        self.header = False

    def close(self) -> None:
        """Do nothing: every row is written at once."""


def one_line(error: Exception) -> str:
    """Return the message of another package's error as one sentence."""
    return " ".join(str(error).split()).rstrip(".") + "."


# --- with pyarrow ----------------------------------------------------------------------------


def _arrow_options(separator: str, wanted: list[str], kinds: dict[str, Any]) -> dict[str, Any]:
    reader = import_module("pyarrow.csv")
    return {
        "read_options": reader.ReadOptions(block_size=_BATCH_BYTES),
        "parse_options": reader.ParseOptions(delimiter=separator, newlines_in_values=True),
        "convert_options": reader.ConvertOptions(
            include_columns=wanted, column_types=kinds, null_values=MISSING_CELLS
        ),
    }


def _error_in_column(error: Exception, names: list[str]) -> str:
    found = re.search(r"column #(\d+).*invalid value '(.*)'", str(error), re.DOTALL)
    if found is None:
        return one_line(error)
    name = names[int(found[1])]
    return (
        f"column {quoted(name)} is not numeric (it holds {quoted(found[2])}); encode it, or "
        f"leave it out with drop=[{quoted(name)}]."
    )


# --- without ---------------------------------------------------------------------------------


class _as_lines:  # noqa: N801
    """Text of a byte stream that stays open."""

    def __init__(self, raw: BinaryIO) -> None:
        self.lines = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")

    def __enter__(self) -> io.TextIOWrapper:
        return self.lines

    def __exit__(self, *_: object) -> None:
        self.lines.detach()


def _cells(lines: io.TextIOWrapper, separator: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines, delimiter=separator, strict=True)
    except UnicodeDecodeError as error:
        raise DataError(f"it is not UTF-8 text: {error}; save it as UTF-8 first.") from None
    except csv.Error as error:
        raise DataError(
            f"it is not comma-separated text: {error}; put commas between cells, or tabs in a .tsv."
        ) from None


def _read_with_csv(raw: BinaryIO, separator: str, text: list[str]) -> Columns:
    with _as_lines(raw) as lines:
        rows = [row for row in _cells(lines, separator) if row]
    names = rows.pop(0)
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise DataError(f"row {number} has {len(row)} cells, where {len(names)} are expected.")

    def column(name: str) -> AnyArray:
        place = names.index(name)
        cells = [row[place] for row in rows]
        return np.array(cells, object) if name in text else _numbers(cells)

    return column


def _numbers(cells: list[str]) -> AnyArray:
    """Return the cells as numbers if all of them are, else as text."""
    if all(cell in _TRUTH or cell in MISSING_CELLS for cell in cells):
        return np.array([_TRUTH.get(cell, np.nan) for cell in cells])
    try:
        return np.array([np.nan if cell in MISSING_CELLS else _number(cell) for cell in cells])
    except ValueError:
        return np.array([None if cell in MISSING_CELLS else cell for cell in cells], object)


def _number(cell: str) -> float:
    if "_" in cell:  # Python's own grouping of digits is not a way to write data
        raise ValueError(cell)
    return float(cell)


def _cells_of(values: AnyArray) -> list[Any]:
    if values.dtype == np.float32:  # its own shortest digits, not those of the double
        return [str(value) for value in values]
    return list(values.tolist())

"""Read, write and convert ranking data in any format: `load`, `save` and `convert`.

Writers use a temporary name in the same folder and rename the file at the end, so an incomplete
file never has the target's name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rankwright import registry
from rankwright.data import catalog
from rankwright.data.formats import Format, check_options, format_named, format_of, read_file
from rankwright.data.frames import default_names
from rankwright.data.ranking_data import PER_DOCUMENT, PartsDifferError, RankingData
from rankwright.data.split import fold_files, load_fold
from rankwright.data.streams import refuse_address
from rankwright.errors import DataError, UsageError, counted, quoted

# --- API -------------------------------------------------------------------------------------


def load(path: str | Path, *, format: str | None = None, **options: Any) -> RankingData:  # noqa: A002
    """Read ranking data from a file, a folder, standard input or the catalogue.

    Parameters
    ----------
    path
        A file; a store folder; a LETOR ``Fold`` folder (with ``part="train"``, ``"vali"``,
        ``"test"`` or ``"all"``); ``"-"`` for standard input; or the name of a data set
        (``rankwright list data``). Files may be compressed: ``.gz``, ``.xz``, ``.bz2``,
        ``.zst``.
    format
        A name of ``rankwright list formats``. By default the suffix decides (``.txt`` is LETOR
        text). Text without ``qid:`` is in LightGBM's format if a ``.query`` file is next to it, and
        in XGBoost's format if it is a ``.group`` file.
    **options
        Options of the format's reader: ``dtype``, ``zero_based``, ``qid``, ``label``, ...

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.load("digits/train", queries=8, documents=12).n_documents
    96
    >>> data = rw.load("train.csv", qid="query", label="grade")  # doctest: +SKIP
    """
    refuse_address(path)
    if format is None:
        if _is_catalogued(path):
            return catalog.load(str(path), **options)
        if _is_fold(path):
            return load_fold(Path(path), **options)
        if _is_bare_name(path):
            kind = "file or data set"
            raise UsageError(registry.unknown(kind, str(path), catalog.descriptions()))
    return read_file(path, format or format_of(path), **options)


def load_documents(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> RankingData:
    """Read documents to be ranked. As `load`, but grades are not required.

    Parameters
    ----------
    path, format
        As for `load`.
    **options
        What the model knows of its training data, and options of the format's reader:

        - ``feature_names``: features of the model. Only these columns of a table are read. Names
          ``f1`` to ``fd``, which unnamed features have, are used only if the table has all of them.
        - ``n_features``: number of features of a model without feature names.
        - ``qid_column``: column of query ids; used if the table has it and ``qid`` is not given.
        - ``zero_based``: whether feature ids start at 0; used for LETOR text if it is not None.
    """
    refuse_address(path)
    return load(path, format=format, **_document_options(path, format, **options))


def model_options(
    path: str | Path,
    format: str | None,  # noqa: A002
    options: dict[str, Any],
    *,
    qid_column: str | None,
    zero_based: bool | None,
) -> dict[str, Any]:
    """Return the options of a reader, completed by what a model knows of its training data.

    Tables get the column of query ids if they have it. The columns of standard input and pipes are
    unknown before reading, so the model's column is expected there. LETOR text gets the numbering
    of the features.
    """
    name = None if _has_no_format(path, format) else format or format_of(path)
    is_letor = name == "letor" or (format is None and _is_fold(path))
    if is_letor and zero_based is not None and "zero_based" not in options:
        return {**options, "zero_based": zero_based}
    if qid_column is None or "qid" in options or name is None:
        return options
    file_format = format_named(name)
    if "qid" not in file_format.read_options or file_format.column_names is None:
        return options
    if Path(path).is_file() and qid_column not in file_format.column_names(path):
        return options
    return {**options, "qid": qid_column}


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """Documents to be ranked, in parts of whole queries, and their number if it is known."""

    rows: int | None
    parts: Iterator[RankingData]


def document_parts(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> DocumentParts:
    """Read documents to be ranked in parts, with the options of `load_documents`.

    Stores, Parquet and Arrow files are read in parts of bounded size. Text, and tables in which the
    rows of a query are not adjacent, are read as one part.
    """
    refuse_address(path)
    read_all = partial(load_documents, path, format=format, **options)
    if not _has_no_format(path, format) and Path(path).exists() and not Path(path).is_fifo():
        name = format or format_of(path)
        file_format = format_named(name)
        if file_format.read_parts is not None and file_format.row_count is not None:
            rows = file_format.row_count(path)
            options = _document_options(path, name, **options)
            check_options(name, "read", options)
            parts = iter(()) if rows == 0 else file_format.read_parts(path, **options)
            return DocumentParts(rows or None, _parts_or(read_all, parts))
    return DocumentParts(None, _parts_or(read_all, iter(())))


def _parts_or(
    read_all: Callable[[], RankingData], parts: Iterator[RankingData]
) -> Iterator[RankingData]:
    """Yield the parts; if there are none, the whole data, whose reader raises for empty files."""
    first = next(parts, None)
    yield read_all() if first is None else first
    yield from parts


def _document_options(
    path: str | Path,
    format: str | None,  # noqa: A002
    *,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    qid_column: str | None = None,
    zero_based: bool | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return reader options that select the model's features and do not require grades."""
    options = model_options(path, format, options, qid_column=qid_column, zero_based=zero_based)
    if _has_no_format(path, format):
        return options
    file_format = format_named(format or format_of(path))
    if "grades" in file_format.read_options:
        options = {"grades": False, **options}
    if "features" in file_format.read_options:
        names = default_names(n_features or 0) if feature_names is None else tuple(feature_names)
        is_used = names != default_names(len(names))
        if names and not is_used and file_format.column_names is not None and Path(path).is_file():
            is_used = {*names} <= {*file_format.column_names(path)}
        if is_used:
            options = {"features": list(names), **options}
    return options


def save(data: RankingData, path: str | Path, *, format: str | None = None, **options: Any) -> None:  # noqa: A002
    """Write ``data`` to ``path`` and warn about parts of the data that the format cannot store.

    Rows are written query by query. ``data.row``, the order of the input rows, is not written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankwright.data import RankingData, save
    >>> data = RankingData.from_arrays([[0.5], [1.0]], [1, 0], qid=[7, 7])
    >>> save(data, "data.txt")
    >>> print(Path("data.txt").read_text())
    1 qid:7 1:0.5
    0 qid:7 1:1
    """
    name = format or format_of(path, for_writing=True)
    file_format = format_named(name)
    check_options(name, "write", options)
    _warn_of_loss(data, name, file_format)
    assert file_format.write is not None
    file_format.write(data, path, **options)


@dataclass(frozen=True, slots=True)
class Converted:
    """Source and target of a conversion, and the size of the data."""

    source: str
    target: str
    queries: int
    documents: int
    features: int


def save_parts(
    parts: Iterator[RankingData],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Converted:
    """Write data from an iterator of parts, for example of a generator.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import save_parts
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> save_parts((data.select([query]) for query in range(20)), "data.parquet").queries
    20
    """
    name = format or format_of(path, for_writing=True)
    check_options(name, "write", options)
    if format_named(name).open_writer is None:
        raise UsageError(f"format '{name}' is not written part by part; write a .store first.")
    return _write_parts(parts, "parts", path, name, options)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    write_options: dict[str, Any] | None = None,
    **options: Any,
) -> Converted:
    """Read ``source`` and write it to ``target``, in parts if both formats support it.

    Parameters
    ----------
    from_format, to_format
        Names of formats; by default the suffixes decide.
    write_options
        Options of the writer.
    **options
        Options of the reader. Options that only the writer has are passed to the writer.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import convert, save
    >>> save(rw.synthetic("mq2008", queries=20), "data.txt")
    >>> convert("data.txt", "data.parquet").queries
    20
    """
    to_name = to_format or format_of(target, for_writing=True)
    writer = format_named(to_name)
    from_name = from_format
    if from_format is None and not _is_catalogued(source) and not _is_fold(source):
        from_name = format_of(source)
    reader = None if from_name is None else format_named(from_name)
    for_writer = dict(write_options or {})
    if reader is not None and from_name is not None:
        for option in {*options} & {*writer.write_options} - {*reader.read_options}:
            for_writer.setdefault(option, options.pop(option))
        check_options(from_name, "read", options)
    check_options(to_name, "write", for_writer)
    # A pipe cannot be read again if its parts do not fit together.
    is_readable_twice = str(source) != "-" and not Path(source).is_fifo()
    if is_readable_twice and reader and reader.read_parts and writer.open_writer:
        # LETOR text: a query id may come back, so that the writer can ask for the whole data.
        adjacent = {"lists": "adjacent"} if "lists" in reader.read_options else {}
        with suppress(PartsDifferError):  # the whole data can still be written
            parts = reader.read_parts(source, **adjacent | options)
            return _write_parts(parts, source, target, to_name, for_writer)
    data = load(source, format=from_name, **options)
    save(data, target, format=to_name, **for_writer)
    counts = data.n_queries, data.n_documents, data.n_features
    return Converted(str(source), str(target), *counts)


# --- writing ---------------------------------------------------------------------------------


def _warn_of_loss(data: RankingData, name: str, file_format: Format) -> None:
    """Warn about the parts of ``data`` that format ``name`` cannot store.

    Categories raise an error, because their codes would be read as numbers.
    """
    if data.categories and "categories" not in file_format.holds:
        features = ", ".join(quoted(feature) for feature in data.categories)
        raise DataError(
            f"format '{name}' cannot hold categories ({features}); write parquet, arrow, csv or a "
            f"store, or leave them out with drop={list(data.categories)}."
        )
    optional = (*PER_DOCUMENT, "query_weight", "feature_names")
    present = [part for part in optional if getattr(data, part) is not None]
    lost = [part for part in present if part not in file_format.holds]
    if "qid" not in file_format.holds and data.qid.tolist() != list(range(data.n_queries)):
        lost.append("qid")
    if "empty queries" not in file_format.holds and (data.sizes == 0).any():
        lost.append(f"the {counted(int((data.sizes == 0).sum()), 'query')} without documents")
    if lost:
        warnings.warn(f"format '{name}' cannot hold {', '.join(lost)}: left out.", stacklevel=3)


def _write_parts(
    parts: Iterator[RankingData],
    source: str | Path,
    target: str | Path,
    name: str,
    options: dict[str, Any],
) -> Converted:
    """Write the parts to one file in the format ``name``; warn about the first part's losses."""
    writer = format_named(name)
    assert writer.open_writer is not None
    queries = documents = features = 0
    with writer.open_writer(target, **options) as out:
        for part in parts:
            if not queries:
                _warn_of_loss(part, name, writer)
            out.append(part)
            queries += part.n_queries
            documents += part.n_documents
            features = part.n_features
    return Converted(str(source), str(target), queries, documents, features)


# --- data without a format -------------------------------------------------------------------


def _has_no_format(path: str | Path, format: str | None) -> bool:  # noqa: A002
    """Return whether `load` would not choose a format: a data set, a fold or a wrong name."""
    return format is None and (_is_catalogued(path) or _is_fold(path) or _is_bare_name(path))


def _is_bare_name(path: str | Path) -> bool:
    """Return whether this can only be a misspelled data set: no folder, suffix or file."""
    path = Path(path)
    return path.name == str(path) != "-" and not path.suffix and not path.exists()


def _is_fold(path: str | Path) -> bool:
    return Path(path).is_dir() and bool(fold_files(path))


def _is_catalogued(path: str | Path) -> bool:
    if str(path) == "-" or Path(path).exists():
        return False
    return str(path) in catalog.NAMES

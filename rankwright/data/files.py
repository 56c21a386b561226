"""Any ranking data by its file name: `load`, `save` and `convert` find the format themselves.

A file never shows half-written: it is written under another name beside its own and then renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankwright import registry
from rankwright.data import catalog
from rankwright.data.formats import (
    Converted,
    by_runs,
    check_options,
    format_named,
    format_of,
    options_of,
    read_file,
    warn_of_loss,
    write_parts,
)
from rankwright.data.frames import default_names
from rankwright.data.ranking_data import PartsDifferError, RankingData
from rankwright.data.split import fold_files, load_fold
from rankwright.data.streams import refuse_address
from rankwright.errors import UsageError

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
        A name of ``rankwright list formats``; by default found by the suffix (``.txt`` is LETOR
        text). Text without ``qid:`` beside a ``.query`` file is LightGBM's, beside a
        ``.group`` file XGBoost's.
    **options
        What the format's reader takes: ``dtype``, ``zero_based``, ``qid``, ``label``, ...

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.load("digits/train", queries=8, documents=12).n_documents
    96
    >>> data = rw.load("train.csv", qid="query", label="grade")  # doctest: +SKIP
    """
    refuse_address(path)
    if format is None and _is_catalogued(path):
        return catalog.load(str(path), **options)
    if format is None and _is_fold(path):
        return load_fold(Path(path), **options)
    if format is None and _is_bare_name(path):
        what = "file or data set"
        raise UsageError(registry.unknown(what, str(path), catalog.descriptions()))
    return read_file(path, format or format_of(path), **options)


def load_documents(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    qid_column: str | None = None,
    zero_based: bool | None = None,
    **options: Any,
) -> RankingData:
    """Read documents that are only to be ranked: as `load`, but there need be no grades.

    Parameters
    ----------
    feature_names
        Features of the model. Of a table these columns alone are read, whatever else it has;
        ``f1`` to ``fd``, how features without names are called, only where it has them all.
    n_features
        How many there are, where they have no names.
    qid_column
        Column of query ids in the model's training data; used if the table has it and ``qid`` is
        not given.
    zero_based
        Whether the feature ids of the model's training data start at 0; used for LETOR text if it
        is not None.
    path, format, **options
        As for `load`.
    """
    refuse_address(path)
    options = model_options(path, format, options, qid_column=qid_column, zero_based=zero_based)
    if _goes_by_name(path, format):
        return load(path, **options)
    name = format or format_of(path)
    wanted = _for_documents(format_named(name), path, feature_names, n_features, options)
    return load(path, format=name, **wanted)


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
    not known before they are read, so the model's column is expected there. LETOR text gets the
    numbering of the features.
    """
    if zero_based is not None and "zero_based" not in options and _is_letor(path, format):
        return {**options, "zero_based": zero_based}
    if qid_column is None or "qid" in options or _goes_by_name(path, format):
        return options
    chosen = format_named(format or format_of(path))
    if "qid" not in options_of(chosen.read) or not hasattr(chosen, "names"):
        return options
    if Path(path).is_file() and qid_column not in chosen.names(path):
        return options
    return {**options, "qid": qid_column}


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """Documents to be ranked, in parts of whole queries; ``rows`` are all, where that is known."""

    rows: int | None
    parts: Iterator[RankingData]


def document_parts(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    qid_column: str | None = None,
    zero_based: bool | None = None,
    **options: Any,
) -> DocumentParts:
    """Read documents that are only to be ranked, in parts that come one by one.

    Stores, Parquet and Arrow files, whose parts are found without reading all, come in parts of
    bounded size; text, and a table in which rows of a query lie apart, as one part.

    Parameters
    ----------
    path, format, feature_names, n_features, qid_column, zero_based, **options
        As for `load_documents`.
    """
    refuse_address(path)

    def whole() -> RankingData:
        return load_documents(
            path,
            format=format,
            feature_names=feature_names,
            n_features=n_features,
            qid_column=qid_column,
            zero_based=zero_based,
            **options,
        )

    if not _goes_by_name(path, format) and Path(path).exists() and not Path(path).is_fifo():
        name = format or format_of(path)
        chosen = format_named(name)
        if hasattr(chosen, "row_count") and (rows := chosen.row_count(path)) != 0:
            options = model_options(
                path, name, options, qid_column=qid_column, zero_based=zero_based
            )
            wanted = _for_documents(chosen, path, feature_names, n_features, options)
            check_options(name, "read", chosen.read, wanted)
            return DocumentParts(rows, _parts_or(whole, chosen.read_parts(path, **wanted)))
    return DocumentParts(None, _parts_or(whole, iter(())))


def _parts_or(
    whole: Callable[[], RankingData], parts: Iterator[RankingData]
) -> Iterator[RankingData]:
    """Yield the parts, or the whole where there are none: it says what is missing."""
    first = next(parts, None)
    yield whole() if first is None else first
    yield from parts


def _is_letor(path: str | Path, format: str | None) -> bool:  # noqa: A002
    if format is None and _is_fold(path):
        return True
    return not _goes_by_name(path, format) and (format or format_of(path)) == "letor"


def _goes_by_name(path: str | Path, format: str | None) -> bool:  # noqa: A002
    """Return whether data is found by the name of a set or a folder, whatever its format."""
    return format is None and (_is_catalogued(path) or _is_fold(path) or _is_bare_name(path))


def _for_documents(
    chosen: Any,
    path: str | Path,
    feature_names: Sequence[str] | None,
    n_features: int | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return the options to read documents with, of which grades are not asked for."""
    takes = options_of(chosen.read)
    if "grades" in takes:
        options = {"grades": False, **options}
    if "features" in takes:
        wanted = default_names(n_features or 0) if feature_names is None else tuple(feature_names)
        unnamed = wanted == default_names(len(wanted))
        if not unnamed or (wanted and Path(path).is_file() and {*wanted} <= {*chosen.names(path)}):
            options = {"features": list(wanted), **options}
    return options


def save(data: RankingData, path: str | Path, *, format: str | None = None, **options: Any) -> None:  # noqa: A002
    """Write ``data`` to ``path``; warns of what the format cannot hold.

    Rows are written query after query; ``data.row`` is not kept, the file's own order is the
    caller's order from then on.

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
    chosen = format_named(name)
    check_options(name, "write", chosen.write, options)
    warn_of_loss(data, name, chosen)
    chosen.write(data, path, **options)


def save_parts(
    parts: Iterator[RankingData],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Converted:
    """Write data that come part by part, such as those of a generator.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import save_parts
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> save_parts((data.select([query]) for query in range(20)), "data.parquet").queries
    20
    """
    name = format or format_of(path, for_writing=True)
    chosen = format_named(name)
    check_options(name, "write", chosen.write, options)
    if not hasattr(chosen, "open_writer"):
        raise UsageError(f"format '{name}' is not written part by part; write a .store first.")
    return write_parts(parts, "parts", path, name, chosen, options)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    write_options: dict[str, Any] | None = None,
    **options: Any,
) -> Converted:
    """Read ``source`` and write it to ``target``, part by part where both formats can.

    Parameters
    ----------
    from_format, to_format
        Names of formats; by default found by the suffixes.
    write_options
        For the writer.
    **options
        For the reader, or else, where only the writer takes them, for the writer.

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
    for_writer = dict(write_options or {})
    from_name = from_format
    if from_format is None and not _is_catalogued(source) and not _is_fold(source):
        from_name = format_of(source)
    if from_name is not None:
        reader = format_named(from_name)
        options = _for_reader(options, for_writer, reader.read, writer.write)
        check_options(from_name, "read", reader.read, options)
    check_options(to_name, "write", writer.write, for_writer)
    if from_name is not None and _can_write_parts(source, reader, writer):
        with suppress(PartsDifferError):  # the whole may be written still
            parts = reader.read_parts(source, **by_runs(reader, options))
            return write_parts(parts, source, target, to_name, writer, for_writer)
    data = load(source, format=from_name, **options)
    save(data, target, format=to_name, **for_writer)
    counts = data.n_queries, data.n_documents, data.n_features
    return Converted(str(source), str(target), *counts)


# --- choosing --------------------------------------------------------------------------------


def _can_write_parts(source: str | Path, reader: Any, writer: Any) -> bool:
    """Return whether both sides go by parts; a pipe cannot be read again if parts do not fit."""
    both = hasattr(reader, "read_parts") and hasattr(writer, "open_writer")
    return both and (str(source) != "-" and not Path(source).is_fifo())


def _for_reader(
    options: dict[str, Any],
    for_writer: dict[str, Any],
    read: Callable[..., Any],
    write: Callable[..., Any],
) -> dict[str, Any]:
    """Move the options that only the writer takes to ``for_writer``; return the others."""
    reads, writes = options_of(read), options_of(write)
    for option in [name for name in options if name not in reads and name in writes]:
        for_writer.setdefault(option, options[option])
    return {name: options[name] for name in options if name in reads or name not in writes}


def _is_bare_name(path: str | Path) -> bool:
    """Whether this can only be a misspelled data set: no folder, no suffix, no such file."""
    path = Path(path)
    return path.name == str(path) != "-" and not path.suffix and not path.exists()


def _is_fold(path: str | Path) -> bool:
    return Path(path).is_dir() and bool(fold_files(path))


def _is_catalogued(path: str | Path) -> bool:
    if str(path) == "-" or Path(path).exists():
        return False
    return str(path) in catalog.NAMES

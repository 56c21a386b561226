"""Any ranking data by its file name: `load`, `save` and `convert` find the format themselves.

A format is a class named in `rankwright.registry.FORMATS`, or announced by another package under
the entry points ``rankwright.formats``, with

- ``extensions``: the suffixes that tell it, lower case;
- ``read(path, **options)`` and ``write(data, path, **options)``;
- ``holds``: which optional parts of the data it can keep (by default the doc ids alone); what is
  lost is warned about when writing;
- for data larger than memory ``read_parts(path, **options)``, which yields the data in parts of
  whole queries, and ``open_writer(path, **options)``, a context manager with ``append(part)``.

A file never shows half-written: it is written under another name beside its own and then renamed.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rankwright import registry
from rankwright.core.memory import limit
from rankwright.data.frames import default_names
from rankwright.data.letor_fold import fold_files, load_fold
from rankwright.data.parts import Converted, PartsDifferError, warn_of_loss, write_parts
from rankwright.data.ranking_data import RankingData
from rankwright.data.source import (
    COMPRESSED,
    missing_file,
    plain_suffix,
    refuse_address,
    refuse_unread,
)
from rankwright.errors import DataError, UsageError

_PACKED = {*COMPRESSED, ".parquet", ".arrow", ".feather"}
_UNPACKED = 8  # times as large as the file
_ARRAYS_PER_BYTE = 2  # a text of "1:0 2:0 ..." has few bytes a value, and reading takes room too
_EASY_SHARE = 4  # of the bound, below which a file is read as a whole


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
        A name of ``rankwright list formats``; by default told by the suffix (``.txt`` is LETOR
        text). Text without ``qid:`` beside a ``.query`` file is LightGBM's, beside a
        ``.group`` file XGBoost's.
    **options
        What the format's reader takes: ``dtype``, ``zero_based``, ``qid``, ``label``, ...
    """
    refuse_address(path)
    if format is None and _is_catalogued(path):
        from rankwright.data import catalog

        return catalog.load(str(path), **options)
    if format is None and fold_files(path):
        return load_fold(Path(path), **options)
    if format is None and _is_bare_name(path):
        from rankwright.data import catalog

        what = "file or data set"
        raise UsageError(registry.unknown(what, str(path), catalog.descriptions()))
    name = format or format_of(path)
    chosen = _format(name)
    _check_options(name, "read", chosen.read, options)
    if _is_large(path, chosen):
        return _through_store(path, chosen, options)
    data: RankingData = chosen.read(path, **options)
    return data


def load_documents(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    feature_names: Sequence[str] | None = None,
    **options: Any,
) -> RankingData:
    """Read documents that are only to be ranked: as `load`, but there need be no grades.

    Parameters
    ----------
    feature_names
        Features of the model. Of a table these columns alone are read, whatever else it has;
        ``f1`` to ``fd``, how features without names are called, only where it has them all.
    path, format, **options
        As for `load`.
    """
    refuse_address(path)
    by_name = (_is_catalogued(path) or fold_files(path) or _is_bare_name(path)) and format is None
    if by_name:
        return load(path, **options)
    name = format or format_of(path)
    chosen = _format(name)
    takes = _options_of(chosen.read)
    if "grades" in takes:
        options = {"grades": False, **options}
    if "features" in takes and feature_names is not None:
        wanted = list(feature_names)
        unnamed = tuple(wanted) == default_names(len(wanted))
        if not unnamed or (Path(path).is_file() and {*wanted} <= {*chosen.names(path)}):
            options = {"features": wanted, **options}
    return load(path, format=name, **options)


def save(data: RankingData, path: str | Path, *, format: str | None = None, **options: Any) -> None:  # noqa: A002
    """Write ``data`` to ``path``; warns of what the format cannot hold.

    Rows are written query after query; ``data.row`` is not kept, the file's own order is the
    caller's order from then on.
    """
    name = format or format_of(path, for_writing=True)
    chosen = _format(name)
    _check_options(name, "write", chosen.write, options)
    warn_of_loss(data, name, chosen)
    chosen.write(data, path, **options)


def save_parts(
    parts: Iterator[RankingData],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Converted:
    """Write data that come part by part, such as `rankwright.data.synthetic_parts`."""
    name = format or format_of(path, for_writing=True)
    chosen = _format(name)
    _check_options(name, "write", chosen.write, options)
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
        Names of formats; by default told by the suffixes.
    write_options
        For the writer.
    **options
        For the reader, or else, where only the writer takes them, for the writer.
    """
    to_name = to_format or format_of(target, for_writing=True)
    writer = _format(to_name)
    for_writer = dict(write_options or {})
    from_name = from_format
    if from_format is None and not _is_catalogued(source) and not fold_files(source):
        from_name = format_of(source)
    if from_name is not None:
        reader = _format(from_name)
        options = _for_reader(options, for_writer, reader.read, writer.write)
        _check_options(from_name, "read", reader.read, options)
    _check_options(to_name, "write", writer.write, for_writer)
    if from_name is not None and _can_write_parts(source, reader, writer):
        try:
            parts = reader.read_parts(source, **_by_runs(reader, options))
            return write_parts(parts, source, target, to_name, writer, for_writer)
        except PartsDifferError:
            pass  # together they may do
    data = load(source, format=from_name, **options)
    save(data, target, format=to_name, **for_writer)
    counts = data.n_queries, data.n_documents, data.n_features
    return Converted(str(source), str(target), *counts)


def format_of(path: str | Path, *, for_writing: bool = False) -> str:
    """Return the name of the format of ``path``, by its suffix or by what a folder holds."""
    if str(path) == "-":
        return "letor"
    path = Path(path)
    if path.is_dir() and not for_writing:
        from rankwright.data.store_writer import is_store

        if is_store(path):
            return "store"
        raise DataError(
            f"{path} is a folder, but neither a store nor a LETOR fold with "
            "train.txt, vali.txt and test.txt; name a file in it."
        )
    suffix = plain_suffix(path)
    name = _with_suffix(suffix)
    if name is not None:
        if not for_writing and name in ("letor", "csv", "tsv"):
            from rankwright.data.lightgbm import has_sizes_beside

            return "lightgbm" if has_sizes_beside(path) else name
        return name
    if not for_writing and not path.exists():
        raise DataError(missing_file(path))
    if not for_writing:
        refuse_unread(path)
    if suffix == ".rw" and not for_writing:
        raise DataError(
            f"{path} is a model file, where data is expected; are the two arguments swapped?"
        )
    listed = "; ".join(
        f"{name} ({' '.join(kind.extensions)})" if kind.extensions else name
        for name, kind in registry.all_of("formats").items()
    )
    ending = f"the unknown file extension '{suffix}'" if suffix else "no file extension"
    raise UsageError(
        f"{path} has {ending}; name the format (format=..., or --from and --to "
        f"for convert): {listed}."
    )


# --- choosing --------------------------------------------------------------------------------


def _format(name: str) -> Any:
    return registry.resolve("formats", name)()


def _with_suffix(suffix: str) -> str | None:
    """Return the format that a suffix tells, ours before those of plug-ins; None: no one's."""
    for name in registry.FORMATS:
        if suffix in _format(name).extensions:
            return name
    found = registry.all_of("formats")
    return next((name for name, kind in found.items() if suffix in kind.extensions), None)


def _options_of(function: Callable[..., Any]) -> list[str]:
    """Return the options that a reader or writer takes."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def _check_options(
    name: str, verb: str, function: Callable[..., Any], options: dict[str, Any]
) -> None:
    known = _options_of(function)
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"format '{name}' has no option '{option}' to {verb}; {takes}.")


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
    reads, writes = _options_of(read), _options_of(write)
    for option in [name for name in options if name not in reads and name in writes]:
        for_writer.setdefault(option, options[option])
    return {name: options[name] for name in options if name in reads or name not in writes}


def _by_runs(reader: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Let an id that comes back in LETOR text through to the writer, who can ask for a whole."""
    return {"lists": "adjacent", **options} if "lists" in _options_of(reader.read) else options


def _is_large(path: str | Path, reader: Any) -> bool:
    """Return whether a file might fill a good part of the memory that is allowed."""
    most = limit()
    if most is None or not hasattr(reader, "read_parts") or Path(path).is_dir():
        return False
    try:
        size = Path(path).stat().st_size
    except OSError:  # standard input, or a file that is not there
        return False
    packed = Path(path).suffix.lower() in _PACKED
    return _ARRAYS_PER_BYTE * size * (_UNPACKED if packed else 1) > most // _EASY_SHARE


def _through_store(path: str | Path, reader: Any, options: dict[str, Any]) -> RankingData:
    """Return the data of a file by way of a store whose folder is gone when it is mapped."""
    from rankwright.data.store import Store

    with tempfile.TemporaryDirectory(prefix="rankwright-") as folder:
        store = Path(folder) / "data.store"
        try:
            parts = reader.read_parts(path, **_by_runs(reader, options))
            write_parts(parts, path, store, "store", Store(), {})
        except PartsDifferError:  # together they may do; a store would forget the order of rows
            data: RankingData = reader.read(path, **options)
            return data
        return Store().read(store)


def _is_bare_name(path: str | Path) -> bool:
    """Whether this can only be a misspelled data set: no folder, no suffix, no such file."""
    path = Path(path)
    return path.name == str(path) != "-" and not path.suffix and not path.exists()


def _is_catalogued(path: str | Path) -> bool:
    if str(path) == "-" or Path(path).exists():
        return False
    from rankwright.data import catalog

    return str(path) in catalog.NAMES

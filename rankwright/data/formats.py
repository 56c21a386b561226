"""File formats: the declaration `Format`, and the choice of a format by file name.

Formats are registered in `rankwright.registry.FORMATS` or by entry points of other packages in the
group ``rankwright.formats``. `rankwright.data.files` reads and writes files in any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import beside, missing_file, plain_suffix, refuse_unsupported
from rankwright.errors import DataError, PluginError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format: its file suffixes and the functions that read and write it.

    Parameters
    ----------
    description : str
        One line for ``rankwright list formats``.
    extensions : tuple of str
        File suffixes in lower case.
    read : callable
        ``read(path, **options)`` returns a `RankingData`.
    write : callable, optional
        ``write(data, path, **options)`` writes a file.
    read_options, write_options : tuple of str
        Names of the options of ``read`` and ``write``.
    holds : frozenset of str
        Optional parts of the data that the format can store, by their names in `RankingData`.
        Writing warns about the others.
    read_parts : callable, optional
        ``read_parts(path, **options)`` yields the data in parts of whole queries.
    open_writer : callable, optional
        ``open_writer(path, **options)`` returns a context manager with ``append(part)``.
    row_count : callable, optional
        ``row_count(path)`` returns the number of documents, or None if it is unknown before
        reading. Formats that have it read parts of bounded size.
    column_names : callable, optional
        ``column_names(path)`` returns the names of the columns in a file.
    recognises : callable, optional
        ``recognises(path)`` tells whether a folder or file has this format if its suffix does not.
    table
        The `rankwright.data.tables.Table` of formats that can store any columns.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright.data import Format, RankingData
    >>> def read(path):
    ...     rows = np.loadtxt(path)
    ...     return RankingData.from_arrays(rows[:, 2:], rows[:, 1], qid=rows[:, 0])
    >>> def write(data, path):
    ...     qid = np.repeat(data.qid, data.sizes)
    ...     np.savetxt(path, np.column_stack([qid, data.y, data.X]))
    >>> spaced = Format(
    ...     description="Query, grade and features of a document per line, separated by blanks.",
    ...     extensions=(".spaced",),
    ...     read=read,
    ...     write=write,
    ... )
    """

    description: str
    extensions: tuple[str, ...]
    read: Callable[..., RankingData]
    write: Callable[..., None] | None = None
    read_options: tuple[str, ...] = ()
    write_options: tuple[str, ...] = ()
    holds: frozenset[str] = frozenset({"doc_id", "qid"})
    read_parts: Callable[..., Iterator[RankingData]] | None = None
    open_writer: Callable[..., AbstractContextManager[Any]] | None = None
    row_count: Callable[[str | Path], int | None] | None = None
    column_names: Callable[[str | Path], list[str]] | None = None
    recognises: Callable[[str | Path], bool] | None = None
    table: Any = None


def format_named(name: str) -> Format:
    """Return the format that is registered under ``name``."""
    registered = registry.resolve("formats", name)
    if not isinstance(registered, Format):
        raise PluginError(
            f"the format '{name}' of the package {registry.package_of('formats', name)} is not a "
            "rankwright.data.Format; update the package."
        )
    return registered


def format_of(path: str | Path, *, for_writing: bool = False) -> str:
    """Return the name of the format of ``path``, by its suffix or by the content of a folder."""
    if str(path) == "-":
        return "letor"
    path = Path(path)
    if path.is_dir() and not for_writing:
        if _recognises("store", path):
            return "store"
        raise DataError(
            f"{path} is a folder, but neither a store nor a LETOR fold with "
            "train.txt, vali.txt and test.txt; name a file in it."
        )
    suffix = plain_suffix(path)
    name = _format_with(suffix)
    if name is not None:
        sizes = name == "letor" and not for_writing and beside(path, "query", "group")
        return "lightgbm" if sizes and _recognises("lightgbm", path) else name
    if not for_writing:
        if not path.exists():
            raise DataError(missing_file(path))
        refuse_unsupported(path)
        if suffix == ".rw":
            raise DataError(
                f"{path} is a model file, where data is expected; are the two arguments swapped?"
            )
    choices = "; ".join(
        " ".join([name, f"({' '.join(each.extensions)})"] if each.extensions else [name])
        for name, each in _formats()
    )
    ending = f"the unknown file extension '{suffix}'" if suffix else "no file extension"
    raise UsageError(
        f"{path} has {ending}; name the format (format=..., or --from and --to "
        f"for convert): {choices}."
    )


def _recognises(name: str, path: Path) -> bool:
    recognises = format_named(name).recognises
    return recognises is not None and recognises(path)


def _format_with(suffix: str) -> str | None:
    """Return the name of the format of a suffix; built-in formats are tried without import."""
    for name, extensions in registry.EXTENSIONS.items():
        if suffix in extensions:
            return name
    return next((name for name, each in _formats() if suffix in each.extensions), None)


def _formats() -> Iterator[tuple[str, Format]]:
    """Yield all formats by name, without plug-ins that are not a `Format`."""
    for name, registered in registry.all_of("formats").items():
        if isinstance(registered, Format):
            yield name, registered


def check_options(name: str, verb: Literal["read", "write"], options: Iterable[str]) -> None:
    """Raise an error if format ``name`` cannot be written or does not have an option."""
    file_format = format_named(name)
    if verb == "write" and file_format.write is None:
        raise UsageError(
            f"format '{name}' is read, not written; write LETOR text (.txt), a table (.csv, "
            ".parquet) or a .store."
        )
    known = file_format.read_options if verb == "read" else file_format.write_options
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"format '{name}' has no option '{option}' to {verb}; {takes}.")


def read_file(path: str | Path, name: str, **options: Any) -> RankingData:
    """Read a file in the format ``name``."""
    check_options(name, "read", options)
    return format_named(name).read(path, **options)

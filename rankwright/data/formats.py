"""Formats of files: chosen by the suffix of a file, and what all of them share.

A format is a class named in `rankwright.registry.FORMATS`, or announced by another package under
the entry points ``rankwright.formats``, with

- ``extensions``: the suffixes of its files, lower case;
- ``read(path, **options)`` and ``write(data, path, **options)``;
- ``holds``: which optional parts of the data it can keep (by default the doc ids alone); what is
  lost is warned about when writing;
- for data larger than memory ``read_parts(path, **options)``, which yields the data in parts of
  whole queries, and ``open_writer(path, **options)``, a context manager with ``append(part)``.

`rankwright.data.files` has `load`, `save` and `convert`, which find the format themselves.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankwright import registry
from rankwright.data.ranking_data import PER_DOCUMENT, RankingData
from rankwright.data.store import is_store
from rankwright.data.streams import beside, missing_file, plain_suffix, refuse_unsupported
from rankwright.errors import DataError, UsageError, counted, quoted

_TEXT_HOLDS = frozenset({"doc_id", "qid"})
SIZES = ("query", "group")  # suffixes of LightGBM's and XGBoost's files of query sizes


# --- which format ----------------------------------------------------------------------------


def format_of(path: str | Path, *, for_writing: bool = False) -> str:
    """Return the name of the format of ``path``, by its suffix or by what a folder holds."""
    if str(path) == "-":
        return "letor"
    path = Path(path)
    if path.is_dir() and not for_writing:
        if is_store(path):
            return "store"
        raise DataError(
            f"{path} is a folder, but neither a store nor a LETOR fold with "
            "train.txt, vali.txt and test.txt; name a file in it."
        )
    suffix = plain_suffix(path)
    name = _format_with(suffix)
    if name is not None:
        sized = name == "letor" and not for_writing and beside(path, *SIZES)
        if sized and registry.resolve("formats", "lightgbm").has_no_query_ids(path):
            return "lightgbm"
        return name
    if not for_writing and not path.exists():
        raise DataError(missing_file(path))
    if not for_writing:
        refuse_unsupported(path)
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


def format_named(name: str) -> Any:
    """Return the format that is registered under ``name``."""
    return registry.resolve("formats", name)()


def _format_with(suffix: str) -> str | None:
    """Return the format of files with a suffix, ours before those of plug-ins; None: unknown."""
    for name, extensions in registry.EXTENSIONS.items():
        if suffix in extensions:
            return name
    found = registry.all_of("formats")
    return next((name for name, kind in found.items() if suffix in kind.extensions), None)


def options_of(function: Callable[..., Any]) -> list[str]:
    """Return the options that a reader or writer takes."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def check_options(
    name: str, verb: str, function: Callable[..., Any], options: dict[str, Any]
) -> None:
    """Refuse options that a reader or writer does not take."""
    known = options_of(function)
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"format '{name}' has no option '{option}' to {verb}; {takes}.")


# --- reading ---------------------------------------------------------------------------------


def read_file(path: str | Path, name: str, **options: Any) -> RankingData:
    """Read a file in the format ``name``."""
    chosen = format_named(name)
    check_options(name, "read", chosen.read, options)
    data: RankingData = chosen.read(path, **options)
    return data


def by_runs(reader: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Let an id that comes back in LETOR text through to the writer, who can ask for a whole."""
    return {"lists": "adjacent", **options} if "lists" in options_of(reader.read) else options


# --- writing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written, and where."""

    source: str
    target: str
    queries: int
    documents: int
    features: int


def warn_of_loss(data: RankingData, name: str, chosen: Any) -> None:
    """Warn of the parts of ``data`` that format ``name`` cannot hold.

    Categories are refused there: their codes alone would be taken for numbers.
    """
    holds = getattr(chosen, "holds", _TEXT_HOLDS)
    if data.categories and "categories" not in holds:
        named = ", ".join(quoted(feature) for feature in data.categories)
        raise DataError(
            f"format '{name}' cannot hold categories ({named}); write parquet, arrow, csv or a "
            f"store, or leave them out with drop={list(data.categories)}."
        )
    optional = (*PER_DOCUMENT, "query_weight", "feature_names")
    lost = [part for part in optional if part not in holds and getattr(data, part) is not None]
    if "qid" not in holds and data.qid.tolist() != list(range(data.n_queries)):
        lost.append("qid")
    if "empty queries" not in holds and (data.sizes == 0).any():
        lost.append(f"the {counted(int((data.sizes == 0).sum()), 'query')} without documents")
    if lost:
        warnings.warn(f"format '{name}' cannot hold {', '.join(lost)}: left out.", stacklevel=3)


def write_parts(
    parts: Iterator[RankingData],
    source: str | Path,
    target: str | Path,
    to_name: str,
    writer: Any,
    options: dict[str, Any],
) -> Converted:
    """Write data that come part by part in the format ``to_name``; warn of what it cannot hold."""
    queries = documents = features = 0
    with writer.open_writer(target, **options) as out:
        for part in parts:
            if not queries:
                warn_of_loss(part, to_name, writer)
            out.append(part)
            queries += part.n_queries
            documents += part.n_documents
            features = part.n_features
    return Converted(str(source), str(target), queries, documents, features)

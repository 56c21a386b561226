"""Data in parts of whole queries, on the workers of a Dask cluster.

``partitions(source)`` takes Dask arrays and frames, folders and patterns of files (Parquet, LETOR
text, csv), stores and `RankingData`. Every query lies in one part, whole; see
`rankwright.distributed.regroup` for the order. Parts are futures that Dask makes again from their
source when a worker is lost; files and stores must be readable from every worker.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from rankwright.core.types import I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.data.store import is_store
from rankwright.distributed import sources
from rankwright.distributed.cluster import (
    Cluster,
    Here,
    Place,
    connected,
    large_graphs,
    packed,
    unpacked,
)
from rankwright.distributed.regroup import Shape, check_memory, regrouped, shape_of
from rankwright.errors import UsageError


class Partitions:
    """Parts of whole queries, each a `RankingData` on a worker; made by `partitions`.

    Attributes
    ----------
    parts : list
        Futures of `RankingData`, in order; after `local` the data themselves.
    client : distributed.Client or None
        None after `local`.
    n_features, n_queries, n_documents : int
    feature_names : tuple of str or None
    categories : dict from names of features to Categories, or None
    """

    def __init__(self, place: Place, parts: list[Any], shapes: list[Shape]) -> None:
        self.place, self.parts, self._shapes = place, parts, shapes
        self.n_features = shapes[0].n_features
        self.feature_names = shapes[0].feature_names
        self.categories = shapes[0].categories
        self.n_queries = sum(len(shape.qid) for shape in shapes)
        self.n_documents = int(sum(shape.sizes.sum() for shape in shapes))

    @property
    def client(self) -> Any:
        """The Dask client, None where the parts are in this process."""
        return getattr(self.place, "client", None)

    @property
    def qid(self) -> list[AnyArray]:
        """Query ids of each part."""
        return [shape.qid for shape in self._shapes]

    @property
    def sizes(self) -> list[I64]:
        """Number of documents of each query, for each part."""
        return [shape.sizes for shape in self._shapes]

    @property
    def first_queries(self) -> list[int]:
        """The number of the first query of each part among all queries."""
        counts = [len(shape.qid) for shape in self._shapes]
        return list(accumulate(counts[:-1], initial=0))

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        where = "in this process" if self.client is None else "on a cluster"
        return (
            f"Partitions({len(self)} parts {where}, {self.n_queries} queries, "
            f"{self.n_documents} documents, {self.n_features} features)"
        )

    def call(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """As `map`, but leave the results where they are made: futures, in order of the parts."""
        columns = [[arg] * len(self) for arg in args]
        return self.place.call(function, self.parts, *columns)

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return ``function(part, *args)`` for each part, in order of the parts."""
        return self.place.results(self.call(function, *args))

    def local(self) -> Partitions:
        """Return the same parts in this process, where no Dask takes part any more."""
        return Partitions(Here(), self.place.results(self.parts), self._shapes)

    @classmethod
    def here(cls, parts: list[RankingData]) -> Partitions:
        """Return parts that are in this process already, where no Dask takes part."""
        return cls._of_raws(Here(), list(parts), _numbered("part", parts), None)

    # --- building ----------------------------------------------------------------------------

    @classmethod
    def of(
        cls, source: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
    ) -> Partitions:
        """See `partitions`."""
        return partitions(source, client=client, n_parts=n_parts, **options)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        qid: Any,
        *,
        sample_weight: Any = None,
        query_weight: Any = None,
        client: Any = None,
        n_parts: int | None = None,
    ) -> Partitions:
        """Take Dask arrays with a row per document; ``query_weight`` has one value per row too.

        The blocks of rows of X are the raw parts; the other arrays are cut alike.
        """
        place = Cluster(connected(client))
        columns = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
        raws = sources.of_arrays(place.client, X, columns)
        return cls._of_raws(place, raws, _numbered("block", raws), n_parts)

    @classmethod
    def from_frame(
        cls, frame: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
    ) -> Partitions:
        """Take a Dask frame; columns are told by their usual names, or by the options.

        Parameters
        ----------
        **options
            ``qid``, ``label``, ``features``, ``drop``, ``query_weight``, ``sample_weight``,
            ``doc_id``, ``group``, ``position``: names of columns, as for tables in files.
        """
        place = Cluster(connected(client))
        raws = sources.of_frame(place.client, frame, options)
        return cls._of_raws(place, raws, _numbered("partition", raws), n_parts)

    @classmethod
    def from_files(
        cls,
        files: Any,
        *,
        client: Any = None,
        n_parts: int | None = None,
        format: str | None = None,  # noqa: A002
        **options: Any,
    ) -> Partitions:
        """Take a folder or a pattern (``data/part-*.parquet``) of files of one format, or a list.

        Parameters
        ----------
        format
            By default told by the suffixes.
        **options
            Of the format's reader, as for `rankwright.load`.
        """
        place = Cluster(connected(client))
        paths, name, options = sources.listed_files(files, format, options)
        raws = place.spread(sources.read_file, paths, [name] * len(paths), [options] * len(paths))
        return cls._of_raws(place, raws, paths, n_parts, pad=name == "letor")

    @classmethod
    def from_store(
        cls, path: str | Path, *, client: Any = None, n_parts: int | None = None
    ) -> Partitions:
        """Take a store; each part maps its own range of it, some 65,536 documents by default."""
        place = Cluster(connected(client))
        folder = str(Path(path).absolute())
        spans = sources.store_spans(folder, n_parts)
        raws = place.spread(sources.read_span, [folder] * len(spans), spans)
        return cls._of_raws(place, raws, _numbered("range", raws), None)

    @classmethod
    def from_data(
        cls, data: RankingData, *, client: Any = None, n_parts: int | None = None
    ) -> Partitions:
        """Send data of this process to the workers, by default some 65,536 documents a part."""
        place = Cluster(connected(client))
        cut = sources.cut_data(data, n_parts)
        check_memory([shape for part in cut if (shape := shape_of(part))], place.memory_limit())
        with large_graphs():
            raws = place.spread(unpacked, [packed(part) for part in cut])
        return cls._of_raws(place, raws, _numbered("part", raws), None)

    @classmethod
    def _of_raws(
        cls,
        place: Place,
        raws: list[Any],
        names: list[str],
        n_parts: int | None,
        *,
        pad: bool = False,
    ) -> Partitions:
        parts, shapes = regrouped(place, raws, names, n_parts=n_parts, pad=pad)
        return cls(place, parts, shapes)


def partitions(
    source: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
) -> Partitions:
    """Return ``source`` as parts of whole queries on the workers.

    Parameters
    ----------
    source
        `Partitions`; `RankingData`; a tuple ``(X, y, qid)`` or ``(X, y, qid, sample_weight)`` of
        Dask arrays; a Dask frame; the path of a store; a file, or a folder or pattern of files.
    client : distributed.Client
        The cluster; the last client that was made by default.
    n_parts
        How many parts; by default those of the source, and for stores and `RankingData` as many as
        their documents ask for. Results depend on the parts, never on the number of workers.
    **options
        What the source takes beside: columns of frames, options of readers.
    """
    if isinstance(source, Partitions):
        _refuse_other_parts(source, client, n_parts, options)
        return source
    given: dict[str, Any] = {"client": client, "n_parts": n_parts, **options}
    if isinstance(source, RankingData):
        _refuse_options("RankingData", options)
        return Partitions.from_data(source, **given)
    if isinstance(source, tuple) and len(source) in (3, 4):
        _refuse_options("Dask arrays", options, but=("sample_weight", "query_weight"))
        if len(source) == 4:
            given["sample_weight"] = source[3]
        return Partitions.from_arrays(*source[:3], **given)
    if isinstance(source, str | Path):
        if is_store(source):
            if given.get("format") in (None, "store"):
                options.pop("format", None)
            _refuse_options("a store", options)
            return Partitions.from_store(source, client=client, n_parts=n_parts)
        return Partitions.from_files(source, **given)
    if isinstance(source, list) and all(isinstance(one, str | Path) for one in source):
        return Partitions.from_files(source, **given)
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        return Partitions.from_frame(source, **given)
    raise UsageError(
        f"{type(source).__name__} is not data for a cluster: give RankingData, Dask arrays "
        "(X, y, qid), a Dask frame, a store, or a folder or pattern of files."
    )


def _refuse_other_parts(
    made: Partitions, client: Any, n_parts: int | None, options: dict[str, Any]
) -> None:
    """Refuse what can only be asked for when parts are made."""
    asked = [
        *(["client"] if client is not None and client is not made.client else []),
        *(["n_parts"] if n_parts is not None else []),
        *options,
    ]
    if asked:
        raise UsageError(
            f"{asked[0]} is given where Partitions are made, and these are made already; give it "
            "to Partitions.of."
        )


def _refuse_options(what: str, options: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    for name in options:
        if name not in but:
            takes = f"it takes {' and '.join(but)}" if but else "leave it out"
            raise UsageError(f"{what} has no option '{name}'; {takes}.")


def _numbered(what: str, raws: list[Any]) -> list[str]:
    return [f"{what} {number}" for number in range(len(raws))]

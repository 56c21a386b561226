"""Blocks of rows that were read from text, put together as one `RankingData`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse as sp

from rankwright.core.types import I64, FloatMatrix
from rankwright.data.grouping import group_rows
from rankwright.data.letor_blocks import Block, Layout
from rankwright.data.letor_options import ReadOptions
from rankwright.data.letor_text import text_array
from rankwright.data.ranking_data import RankingData

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_int64(text: str) -> bool:
    """Whether ``text`` is an int64 as Python writes it: 7 or -7, but not 007."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def assemble(
    block: Block, options: ReadOptions, sizes: I64 | None, *, integers: bool
) -> RankingData:
    """Cut the rows of ``block`` into queries, by ``sizes`` or else by their ids."""
    n, doc_id = len(block.y), block.doc_id
    if sizes is not None:
        return RankingData.from_arrays(block.X, block.y, group_sizes=sizes, doc_id=doc_id)
    number: dict[str, int] = {}
    run_query = np.array([number.setdefault(name, len(number)) for name in block.run_ids])
    ids = np.array(list(map(int, number)), np.int64) if integers else text_array(list(number))
    if options.lists == "adjacent":  # runs may meet where blocks do
        new = np.append(True, run_query[1:] != run_query[:-1])
        indptr = np.append(block.run_starts[new], n).astype(np.int64)
        return RankingData(block.X, block.y, indptr, ids[run_query[new]], doc_id=doc_id)
    lengths = np.diff(np.append(block.run_starts, n))
    indptr, _, row = group_rows(np.repeat(run_query, lengths))
    X, y = block.X, block.y
    if row is not None:
        X, y, doc_id = X[row], y[row], None if doc_id is None else doc_id[row]
    return RankingData(X, y, indptr, ids, doc_id=doc_id, row=row)


def joined(blocks: list[Block], layout: Layout, options: ReadOptions) -> Block:
    """Return one block with the rows of all; the features of each are let go once copied."""
    if len(blocks) == 1:
        return blocks[0]
    X = (_joined_csr if layout.sparse else _joined_dense)(blocks, layout.width, options)
    rows = [len(block.y) for block in blocks]
    first = np.cumsum([0, *rows[:-1]])
    starts = [block.run_starts + lo for block, lo in zip(blocks, first, strict=True)]
    doc_id = None
    if any(block.doc_id is not None for block in blocks):
        named = [block.doc_id for block in blocks]
        unnamed = [np.zeros(n, "U1") for n in rows]
        pairs = zip(named, unnamed, strict=True)
        doc_id = np.concatenate([b if a is None else a for a, b in pairs])
    y = np.concatenate([block.y for block in blocks])
    ids = [name for block in blocks for name in block.run_ids]
    return Block(X, y, np.concatenate(starts), ids, doc_id, np.empty((0, 4), np.int64))


def _joined_dense(blocks: list[Block], width: int, options: ReadOptions) -> FloatMatrix:
    hi = sum(len(block.y) for block in blocks)
    X = np.zeros((hi, width), options.dtype)
    for block in reversed(blocks):  # last first, as that is how memory goes back to the system
        part, block.X = block.X, X[:0]
        lo = hi - part.shape[0]
        if isinstance(part, sp.csr_array):  # toarray() would add to 0, and so lose -0.0
            X[np.repeat(np.arange(lo, hi), np.diff(part.indptr)), part.indices] = part.data
        else:
            X[lo:hi, : part.shape[1]] = part
        if options.absent == "missing":
            X[lo:hi, part.shape[1] :] = np.nan
        hi = lo
    return X


def _joined_csr(blocks: list[Block], width: int, options: ReadOptions) -> FloatMatrix:
    parts = []
    for block in blocks:
        parts.append(_csr(block.X))
        block.X = np.empty((0, width))
    row, hi = sum(part.shape[0] for part in parts), sum(part.nnz for part in parts)
    index = np.int32 if max(hi, width) < 2**31 else np.int64
    data, indices, ends = np.empty(hi, options.dtype), np.empty(hi, index), np.empty(row + 1, index)
    ends[0] = 0
    while parts:
        part = parts.pop()
        lo, first = hi - part.nnz, row - part.shape[0]
        data[lo:hi], indices[lo:hi] = part.data, part.indices
        ends[first + 1 : row + 1] = part.indptr[1:] + index(lo)
        row, hi = first, lo
    return sp.csr_array((data, indices, ends), shape=(len(ends) - 1, width))


def _csr(X: Any) -> Any:
    """Return ``X`` as CSR with -0.0, which SciPy's own conversion would drop."""
    if sp.issparse(X):
        return X
    kept = (X != 0) | np.signbit(X)
    ends = np.append(0, np.cumsum(kept.sum(axis=1)))
    return sp.csr_array((X[kept], np.nonzero(kept)[1], ends), shape=X.shape)

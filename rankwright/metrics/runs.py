"""Evaluate a run: ``evaluate_run(run, qrels, "ndcg@10,map")``, as trec_eval does.

A run lists the documents that a system retrieved, and the judgments (qrels) grade some documents,
not the same ones. So a metric looks at three kinds of documents:

- retrieved and judged: as in `rankwright.evaluate`;
- judged but not retrieved: they are in the best possible list of NDCG and in R, the number of
  relevant documents, and earn nothing;
- retrieved but not judged, which includes those with a negative judgment: they are not relevant,
  except that bpref passes over them.

A query counts if it is in the run and has judgments; with ``complete`` (``-c`` of trec_eval) every
query that has judgments counts, one that the run does not have as having retrieved nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankwright.data.trec import judge_run
from rankwright.errors import UsageError
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import Evaluation, Evaluator
from rankwright.metrics.names import AnyMetrics, named_metrics


def evaluate_run(
    run: Any,
    qrels: Any,
    metrics: AnyMetrics = "ndcg@10,map",
    *,
    convention: str | Convention = "trec_eval",
    complete: bool = False,
    relevance_level: float | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the mean of each metric of a run over its judged queries, and the values behind it.

    The figures are those of trec_eval. Documents that the run did not retrieve count in the best
    possible list and in the number of relevant documents; queries without judgments do not count,
    and ``left_out`` of the result names them.

    Parameters
    ----------
    run : path, mapping or frame
        A TREC run, lines ``qid Q0 docid rank score tag``; a table in a file (csv, tsv, Parquet,
        Arrow) or a pandas or polars frame or an Arrow table with the columns ``qid``, ``doc_id``
        and ``score``; or a mapping ``{qid: {docid: score}}``. Documents are ranked by their scores
        alone, whatever ranks the run has.
    qrels : path, mapping or frame
        The judgments, lines ``qid iteration docid grade``, or a table or a mapping with grades for
        scores. A document with a negative grade is not judged.
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        As for `evaluate`. What trec_eval calls ndcg_cut_10, map_cut_100, P_5, recall_100, Rprec,
        recip_rank, success_1, set_P, set_recall and set_F is ``ndcg@10``, ``map@100``, ``p@5``,
        ``recall@100``, ``rprec``, ``mrr``, ``hit@1``, ``p``, ``recall`` and ``f1`` here.
    convention : str or Convention
        What metrics mean where their names leave it open; by default as trec_eval computes them.
    complete : bool
        Count every query that has judgments, as ``trec_eval -c``.
    relevance_level : float
        Lowest grade that counts as relevant, ``-l`` of trec_eval; by default that of the
        convention, which is 1 for trec_eval. It does not change the gains of NDCG.

    See Also
    --------
    evaluate : where every document has a grade and a score.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 0, "d2": 2, "d7": 1}, "q2": {"d4": 1, "d5": 0}, "q4": {"d1": 1}}
    >>> run = {"q1": {"d1": 3, "d2": 2, "d3": 1}, "q2": {"d4": 2, "d5": 1}, "q3": {"d9": 1}}
    >>> evaluate_run(run, qrels, "ndcg@10,map")
    Evaluation (convention trec_eval, 2 queries, 0 empty, 0 with ties that matter)
      ndcg@10  0.7398
      map      0.6250
      1 left out, as the query has no judgments: q3
      1 left out, as the query is not in the run: q4
    """
    chosen = with_relevance_level(Convention.named(convention), relevance_level)
    for name, metric in named_metrics(metrics, convention=chosen).items():
        if not metric.takes_runs:
            raise UsageError(
                f"{name} compares the scores of all documents, and a run has none for those it did "
                "not retrieve; use evaluate with a score for every document."
            )
    both = judge_run(run, qrels, complete=complete)
    evaluator = Evaluator(
        both.data,
        metrics,
        convention=chosen,
        retrieved=both.retrieved,
        judged=both.judged,
        n_jobs=n_jobs,
    )
    highest = np.maximum.reduceat(both.data.y, both.data.indptr[:-1])
    empty = int((highest < chosen.min_grade).sum())
    return replace(evaluator(both.scores), empty_queries=empty, left_out=both.left_out)


def with_relevance_level(convention: Convention, level: float | None) -> Convention:
    """Return the convention with another lowest grade that is relevant; its name says so."""
    if level is None:
        return convention
    if isinstance(level, bool) or not isinstance(level, int | float) or not level > 0:
        raise UsageError(f"relevance_level must be a number above 0, not {level!r}.")
    if level == convention.min_grade:
        return convention
    name = f"{convention.name}(min_grade={level:g})"
    return replace(convention, name=name, min_grade=level)

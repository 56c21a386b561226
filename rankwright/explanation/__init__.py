"""Why a ranking is as it is: `rankwright.explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.explanation.movement import MovementExplanation
    from rankwright.explanation.pair import PairExplanation
    from rankwright.explanation.query import QueryExplanation
    from rankwright.rankers.base import Ranker


def explain(
    ranker: Ranker,
    data: Any,
    *,
    query: Any,
    docs: Any = None,
    against: Ranker | None = None,
    qid: str | None = None,
) -> QueryExplanation | PairExplanation | MovementExplanation:
    """Explain a ranking: of a query, of two documents, or of one document under two models.

    Parameters
    ----------
    ranker : fitted ranker
    data : RankingData or frame
        Changes are given in standard deviations of its values. The features of a frame are found by
        their names, and its query ids, grades and document ids as `rankwright.load` finds them;
        there need be no grades.
    query : query id
    docs : sequence of one or two documents
        By name, or else by number in the query, from 1. Two: why one is above the other, and the
        smallest change that swaps them. One: why it stands where it does. None: the whole ranking
        of the query.
    against : fitted ranker
        With one document: why it stands elsewhere under ``ranker`` than under ``against``.
    qid : str
        The column of query ids in a frame; by default that of the training data, or a usual name.

    Returns
    -------
    An explanation to print, with ``to_dict``.

    Examples
    --------
    >>> import rankwright as rw
    >>> X, names = [[0.1, 3.0], [0.9, 1.0], [0.5, 2.0]], ["a", "b"]
    >>> data = rw.RankingData.from_arrays(X, [0, 2, 1], qid=["q"] * 3, feature_names=names)
    >>> ranker = rw.MEMR(l2=0.1).fit(data)
    >>> print(rw.explain(ranker, data, query="q", docs=[2, 1]))
    query q: 2 (rank 1, score 0.61..., grade 2)
      ranks above 1 (rank 3, score -1.35..., grade 0)
      by 1.96..., split over the features by weights:
         +0.98...  a: 0.9 against 0.1
         +0.98...  b: 1 against 3
      they swap when a of 1 goes from 0.1 to 1.7 ...
    """
    from rankwright.errors import UsageError
    from rankwright.explanation.query import QueryView, explain_query, in_columns_of
    from rankwright.rankers.inputs import data_of_frame

    data = data_of_frame(ranker, data, qid, "explain")
    view = QueryView.of(ranker, data, query)
    names = [] if docs is None else list(docs)
    if against is not None:
        from rankwright.explanation.movement import explain_movement

        if len(names) != 1:
            raise UsageError("name one document (docs=[...], --doc) to see why it moved.")
        return explain_movement(QueryView.of(against, data, query), view, names[0])
    if len(names) == 2:
        from rankwright.explanation.pair import explain_pair

        return explain_pair(view, names[0], names[1], in_columns_of(ranker, data))
    if len(names) > 2:
        raise UsageError(f"an explanation is of one or two documents, not {len(names)}.")
    return explain_query(view, names or None)

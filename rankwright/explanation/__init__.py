"""Explanations of rankings: `rankwright.explain`."""

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
        Grades are optional. The features of a frame are found by their names, and its query ids,
        grades and document ids as `rankwright.load` finds them. Its values are tried to swap two
        documents, and changes are in standard deviations of these values.
    query : query id
    docs : sequence of one or two documents
        Names, or numbers in the query, from 1. With two documents, explain why one is above the
        other, and find the smallest change of one feature to a value in the data that swaps them.
        With one, explain its rank. None explains the whole ranking of the query.
    against : fitted ranker
        With one document, explain why its rank differs between ``against`` and ``ranker``.
    qid : str
        Column of query ids in a frame; by default that of the training data, or a usual name.

    Returns
    -------
    An explanation to print, with ``to_dict``.

    Examples
    --------
    >>> import rankwright as rw
    >>> X, names = [[0.1, 3.0], [0.9, 1.0], [0.5, 2.0]], ["a", "b"]
    >>> data = rw.RankingData.from_arrays(X, [0, 2, 1], qid=["q"] * 3, feature_names=names)
    >>> ranker = rw.MEMR(l2=0.1).fit(data)
    >>> print(rw.explain(ranker, data, query="q", docs=[2, 3]))
    query q: 2 (rank 1, score 0.61..., grade 2)
      ranks above 3 (rank 2, score -0.36..., grade 1)
      by 0.98..., split over the features by weights:
         +0.49...  a: 0.9 against 0.5
         +0.49...  b: 1 against 2
      they swap when a of 2 goes from 0.9 to 0.1 (2.4 standard deviations)
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

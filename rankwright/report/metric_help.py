"""What each metric means, in a sentence for readers who are new to ranking."""

from __future__ import annotations

from rankwright.errors import RankwrightError
from rankwright.metrics.base import metric as parsed

# {first} is "the first 10 documents", or "the whole list" where there is no cut-off.
PLAIN = {
    "auc": "How often a relevant document is ranked above one that is not, over all such pairs",
    "best": "The highest grade in {first}",
    "bpref": "How rarely documents that are not relevant are ranked above relevant ones",
    "dcg": "Sum of the gains of {first}, with less weight further down the list",
    "domination_error": "Share of documents with a worse document ranked above them",
    "err": "How early a reader who goes down the list is likely to find a satisfying document",
    "eru": "Expected utility of the list to a reader who is less likely to look further down",
    "f1": "Balance (harmonic mean) of precision and recall in {first}",
    "hit": "Share of queries with a relevant document in {first}",
    "kendall": "Agreement between the order by score and the order by grade: 1 is the same order, "
    "-1 the reverse",
    "map": "Precision at the rank of each relevant document, averaged: all relevant documents "
    "first gives 1",
    "mrr": "One over the rank of the first relevant document: 1 if it comes first, 1/2 if second",
    "ndcg": "How close the order of {first} is to the best possible one, where higher grades "
    "and higher ranks count more: 1 is perfect",
    "p": "Share of relevant documents in {first}",
    "pair_error": "Share of pairs of documents with different grades that are in the wrong order",
    "rbp": "Rate at which a reader who goes on to the next document with probability p finds "
    "relevant ones",
    "recall": "Share of all relevant documents that are in {first}",
    "rprec": "Share of relevant documents among the first R, where R is the number of relevant "
    "documents",
    "wta": "Share of queries whose first document is one of the best",
}


def explain_metric(name: str, *, maximise: bool) -> str:
    """Return what the metric called ``name`` means, and whether more is better.

    A metric of another package is explained by the first line of its docstring.
    """
    try:
        found = parsed(name)
    except RankwrightError:  # a name that the caller gave to a function
        found = None
    if found is None:
        text = f"{name}, a metric of your own"
    elif found.key in PLAIN:
        documents = "document" if found.k == 1 else f"{found.k} documents"
        first = "the whole list" if found.k is None else f"the first {documents}"
        text = PLAIN[found.key].format(first=first)
    else:
        text = (type(found).__doc__ or name).strip().splitlines()[0].rstrip(".")
    return f"{text}. {'Higher' if maximise else 'Lower'} is better."

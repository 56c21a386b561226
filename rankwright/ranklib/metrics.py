"""RankLib's metrics by its names, per query and in the mean, with judgments from elsewhere.

Judgments (``-qrel``) replace what there is to find: MAP divides by their number of relevant
documents (a query without any is 0), NDCG by the DCG of their best list (a query that they do not
have keeps its own).

RankLib's NDCG remembers the best list of each query id for as long as it runs, so a list that
shares its id with an earlier one is divided by that one's; ``strict`` does the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.trec import read_qrels
from rankwright.errors import UsageError
from rankwright.metrics.base import cutoff, metric
from rankwright.metrics.evaluation import Evaluator

_NAME = re.compile(r"(?P<name>[A-Za-z]+)(?:@(?P<k>\d+))?")
_DEFAULT_K = {"MAP": 0, "NDCG": 10, "DCG": 10, "P": 10, "RR": 0, "ERR": 10, "BEST": 10}
_OURS = {"P": "p", "RR": "mrr"}

Judgments = Mapping[str, F64]


def read_judgments(path: str) -> Judgments:
    """Read TREC judgments as the grades of each query, rounded to whole numbers."""
    return {
        query: np.sort(np.rint(np.maximum(list(grades.values()), 0.0)))[::-1]
        for query, grades in read_qrels(path).items()
    }


@dataclass
class RankLibMetric:
    """A metric of RankLib: ``label`` is its name in logs and files, ``name`` ours."""

    label: str
    name: str
    k: int
    judgments: Judgments | None = None
    strict: bool = False
    notices: list[str] = field(default_factory=list)
    _best_lists: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        text: str,
        *,
        gmax: float = 4.0,
        judgments: Judgments | None = None,
        strict: bool = False,
    ) -> RankLibMetric:
        """Return the metric that RankLib calls ``text``."""
        match = _NAME.fullmatch(text.strip())
        if match is None or match["name"].upper() not in _DEFAULT_K:
            known = ", ".join(f"{name}@k" if name != "MAP" else name for name in _DEFAULT_K)
            raise UsageError(f"'{text}' is not a metric of RankLib; it has {known}.")
        kind = match["name"].upper()
        k = cutoff(match["k"]) if match["k"] is not None else _DEFAULT_K[kind]
        ours = _OURS.get(kind, kind.lower())
        if kind == "ERR":
            ours += f"(max={gmax:g})"
        if kind == "MAP":
            return cls("MAP", ours, 0, judgments, strict)
        notices = []
        if k == 0 and kind == "RR" and not strict:
            notices.append(
                "RR without @k looks at the whole list; RankLib gives 0 (--strict does so)."
            )
        label = f"{kind}@{k}" if k or strict or kind != "RR" else "RR"
        return cls(label, f"{ours}@{k}" if k else ours, k, judgments, strict, notices)

    @property
    def selects(self) -> str:
        """Our name of what selects a model: in RankLib tied documents stand in file order."""
        return repr(replace(metric(self.name, convention="ranklib"), ties="file"))

    def per_query(self, data: RankingData, scores: F64) -> F64:
        """Return the value of each query."""
        if self.k == 0 and self.label.startswith("RR") and self.strict:
            return np.zeros(data.n_queries)
        by_best_list = self.name.startswith("ndcg") and (self.strict or self.judgments is not None)
        name = self.name.replace("ndcg", "dcg") if by_best_list else self.name
        found = Evaluator(data, [name], convention="ranklib")(scores).per_query[name]
        if by_best_list:
            return _ratio(found, self._ideals(data))
        if self.name == "map" and self.judgments is not None:
            relevant = np.add.reduceat(data.y >= 1, data.indptr[:-1])
            judged = self.judgments
            there = [int((judged.get(str(q), _NONE) >= 1).sum()) for q in data.qid.tolist()]
            return _ratio(found * relevant, np.array(there, float))
        return found

    def _ideals(self, data: RankingData) -> F64:
        own = Evaluator(data, [self.name.replace("ndcg", "dcg")], convention="ranklib")(data.y)
        ideals = next(iter(own.per_query.values()))
        for q, query in enumerate(map(str, data.qid.tolist())):
            if query not in self._best_lists:
                judged = (self.judgments or {}).get(query)
                self._best_lists[query] = ideals[q] if judged is None else self._best_dcg(judged)
            if self.strict or query in (self.judgments or {}):
                ideals[q] = self._best_lists[query]
        return ideals

    def _best_dcg(self, grades: F64) -> float:
        best = grades[: self.k or None]
        discount = 1.0 / np.log2(np.arange(2, len(best) + 2))
        return float(((2.0**best - 1.0) * discount).sum())


_NONE = np.empty(0)


def _ratio(above: F64, below: F64) -> F64:
    out = np.zeros_like(above)
    np.divide(above, below, out=out, where=below > 0)
    return out


def mean(values: Sequence[float] | F64) -> float:
    """Return the mean over queries, added up in order as RankLib does."""
    total = 0.0
    for value in np.asarray(values).tolist():
        total += value
    return total / max(len(values), 1)

"""The off-policy column of a comparison: clicks of each ranker by a log, and where grades differ.

Each query of the log is ranked by the model of the fold that tests it, so that no ranker is judged
on queries it was fitted to. Values are those of `rankwright.clicks.evaluate_policy`, all on the
same sessions, so that differences are paired. Grades and clicks disagree on two rankers where the
judged metric puts one first, and the log the other with an interval that leaves out 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.click_files import load_log
from rankwright.data.click_log import ClickLog
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.errors import DataError, UsageError, counted, quoted

if TYPE_CHECKING:
    from rankwright.clicks.off_policy import PolicyDifference, PolicyValue
    from rankwright.comparison.result import Comparison

METRIC, ESTIMATOR = "ctr@5", "dr"
_SHOWN = 8  # disagreements that are written out


@dataclass(frozen=True)
class Disagreement:
    """Two rankers that grades and clicks put in different orders.

    Attributes
    ----------
    judged, logged : str
        The ranker that the judged metric puts first, and the one that the log does.
    difference : PolicyDifference
        Clicks of ``logged`` less those of ``judged``, with the paired interval.
    """

    judged: str
    logged: str
    difference: PolicyDifference


@dataclass(frozen=True)
class ClicksColumn:
    """What a log says about the rankers of a comparison.

    Attributes
    ----------
    metric, estimator : str
    sessions : float
        Of the log, those with test queries.
    values : mapping from labels to PolicyValue
    refused : mapping from labels to str
        Why the log says nothing about a ranker.
    """

    metric: str
    estimator: str
    sessions: float
    values: Mapping[str, PolicyValue]
    refused: Mapping[str, str]

    @property
    def name(self) -> str:
        """The heading of the column."""
        return f"{self.metric} (log)"

    def disagreements(self, found: Comparison) -> list[Disagreement]:
        """Return pairs in different orders by the headline metric and by the log."""
        metric = found.metrics[0]
        sign = 1.0 if found.maximise[metric] else -1.0
        mean = {label: sign * found.intervals[label][metric].mean for label in found.rankers}
        pairs = []
        for a, b in combinations([label for label in found.rankers if label in self.values], 2):
            first, second = (a, b) if mean[a] > mean[b] else (b, a)
            if mean[a] != mean[b] and self.values[second].value > self.values[first].value:
                change = self.values[second].difference(self.values[first])
                pairs.append(Disagreement(first, second, change))
        return pairs

    def sentences(self, found: Comparison) -> list[str]:
        """Return where the order by the log and that by the headline metric disagree."""
        metric, known = found.metrics[0], len(self.values)
        refused = [
            f"{label}: no {self.metric} from the log: {why}" for label, why in self.refused.items()
        ]
        if known < 2:
            return refused
        pairs = self.disagreements(found)
        sure = [pair for pair in pairs if pair.difference.significant]
        lines = [self._sentence(found, pair) for pair in sure[:_SHOWN]]
        if len(sure) > _SHOWN:
            lines.append(f"{len(sure) - _SHOWN} further pairs of rankers disagree as clearly.")
        open_ = len(pairs) - len(sure)
        if not pairs:
            agreed = f"{metric} and {self.metric} from the log agree on the order of all"
            lines.append(f"{agreed} {known} rankers.")
        elif open_:
            which = counted(open_, "pair of rankers stands", "pairs of rankers stand")
            lines.append(
                f"{which} in another order by {self.metric} from "
                f"the log than by {metric}, but the interval of the difference holds 0: too few "
                "clicks to say that they disagree."
            )
        return [*lines, *refused]

    def _sentence(self, found: Comparison, pair: Disagreement) -> str:
        metric, change = found.metrics[0], pair.difference
        judged = {
            label: found.intervals[label][metric].mean for label in (pair.judged, pair.logged)
        }
        test = found.test(pair.judged, metric, pair.logged)
        tested = ""
        if test is not None:
            tested = ", significantly" if test.significant else ", not significantly"
        value = self.values
        return (
            f"Disagreement: {metric} puts {pair.judged} above {pair.logged} "
            f"({judged[pair.judged]:.4f} to {judged[pair.logged]:.4f}{tested}), and {self.metric} "
            f"from the log puts {pair.logged} above {pair.judged} "
            f"({value[pair.logged].value:.4f} to {value[pair.judged].value:.4f}, difference "
            f"{change.difference:+.4f}, 95 % interval {change.low:+.4f} to {change.high:+.4f})."
        )

    def about(self) -> str:
        """Return how the column was made."""
        units = {counted(one.units, one.unit) for one in self.values.values()}
        over = f" over {units.pop()}" if len(units) == 1 else ""
        return (
            f"{self.name}: what the ranker would earn in clicks, estimated by {self.estimator} "
            f"from {self.sessions:,.0f} logged sessions with test queries, and its 95 % "
            f"interval{over}."
        )

    def as_json(self, found: Comparison) -> dict[str, Any]:
        """Return plain values."""
        return {
            "metric": self.metric,
            "estimator": self.estimator,
            "sessions": self.sessions,
            "values": {label: one.to_dict() for label, one in self.values.items()},
            "refused": dict(self.refused),
            "disagreements": [
                {"judged": pair.judged, "logged": pair.logged, **pair.difference.to_dict()}
                for pair in self.disagreements(found)
            ],
            "sentences": self.sentences(found),
        }


def clicks_column(
    log: ClickLog,
    tests: Sequence[RankingData],
    scores: Mapping[str, Sequence[F64]],
    metric: str,
    estimator: str,
    options: Mapping[str, Any],
) -> ClicksColumn:
    """Return the clicks of each ranker by a log.

    Parameters
    ----------
    log
        Of queries among the test queries; others are left out.
    tests
        The test part of each fold, features are not needed.
    scores
        Of each label, those of the test documents of each fold.
    options
        Further ones of `rankwright.clicks.evaluate_policy`.
    """
    from rankwright.clicks.policy_evaluation import compare_policies

    held = log_of_tests(log, tests)
    found = compare_policies(
        held,
        {label: np.concatenate(list(parts)) for label, parts in scores.items()},
        metric,
        estimator=estimator,
        **options,
    )
    sessions = held.n_sessions if held.weight is None else float(held.weight.sum())
    return ClicksColumn(metric, estimator, float(sessions), found.values, found.refused)


def checked_log(
    log: Any, metric: str, estimator: str, options: Mapping[str, Any]
) -> ClickLog | None:
    """Return the log, read where it is a file; refuse what is wrong before any ranker is fitted."""
    if log is None:
        if (metric, estimator) != (METRIC, ESTIMATOR) or options:
            raise UsageError(
                "log_metric, log_estimator and log_options (--log-metric, --log-estimator, "
                "--propensity) are about a log; give log=... (--log) too."
            )
        return None
    if not isinstance(log, ClickLog | str | Path):
        raise UsageError(f"log must be a ClickLog or a file of one, not {type(log).__name__}.")
    from rankwright.clicks.policy_evaluation import check_policy_options

    check_policy_options(metric, estimator=estimator, **options)
    if isinstance(log, ClickLog):
        return log
    if not Path(log).exists():
        raise DataError(f"there is no file {quoted(log)} of a click log.")
    return load_log(log)


def log_of_tests(log: ClickLog, tests: Sequence[RankingData]) -> ClickLog:
    """Return the sessions of test queries, with the test documents of all folds as features.

    Documents are found by their ids; where the data has none, by their place among those of the
    query in the features of the log, which must have the same grades.
    """
    joined = concatenate(tests, shared_ids=True)
    known = {str(qid) for qid in joined.qid.tolist()}
    asked = np.array([str(qid) in known for qid in log.query_ids.tolist()], bool)
    kept = np.flatnonzero(asked[log.query]) if len(asked) else np.empty(0, np.int64)
    if not len(kept):
        raise DataError(
            "no session of the log has a query of the test data: their query ids must be the same."
        )
    log = log.select(kept)
    if joined.doc_id is not None:
        return log.with_features(joined)
    if log.features is None or log.row is None:
        raise DataError(
            "the documents of the log cannot be found in the data, which has no document ids: load "
            "the data with doc_id, or give the log features of the same queries."
        )
    number = {str(qid): q for q, qid in enumerate(joined.qid.tolist())}
    features = log.features
    of_row = features.query_of_row()[log.row]
    used, place = np.unique(of_row, return_inverse=True)
    there = np.array([number.get(str(features.qid[q]), -1) for q in used.tolist()])
    for q, other in zip(used.tolist(), there.tolist(), strict=True):
        own = features.y[features.indptr[q] : features.indptr[q + 1]]
        if other < 0 or not np.array_equal(
            own, joined.y[joined.indptr[other] : joined.indptr[other + 1]]
        ):
            raise DataError(
                f"query {quoted(features.qid[q])} has other documents in the log than in the data; "
                "load both with doc_id."
            )
    row = joined.indptr[there][place] + log.row - features.indptr[of_row]
    return log._replace(features=joined, row=row)

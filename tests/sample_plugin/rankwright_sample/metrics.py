"""The grade of the document ranked first, against the highest of its query."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.metrics import Metric


@dataclass(frozen=True, repr=False, kw_only=True)
class First(Metric):
    """The grade of the first document, over the highest grade of its query."""

    key: ClassVar[str] = "sample_first"
    takes_k: ClassVar[bool] = False
    when_empty: ClassVar[str] = "convention"

    def compute(self, ranked, mean, out):
        """Write the value of each query; of tied documents, the mean over which is first."""
        indptr, grades, scores = ranked.indptr, ranked.judged.grades, ranked.scores
        for q in np.flatnonzero(np.diff(indptr)):
            rows = np.arange(indptr[q], indptr[q + 1])
            tied = rows[scores[rows] == scores[rows].max()]
            first = tied if mean else ranked.order[rows[:1]]
            out[q] = grades[first].mean() / grades[rows].max()

    def nothing_to_find(self, judged):
        """Return a mask of the queries without a grade above 0."""
        return judged.top <= 0

"""Click-through rates: models without hidden variables [chuklin2015click].

    GCTR   P(C = 1) = rho                    one rate for everything                             (1)
    RCTR   P(C = 1) = rho_r                  a rate for each position                            (2)
    DCTR   P(C = 1) = rho_{q,d}              a rate for each query and document                  (3)

The maximum of the likelihood is clicks / impressions. Compare better models with these: a model
that does not beat RCTR has learnt nothing about documents, and a model that does not beat DCTR
nothing about positions.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from rankwright.clicks.base import ClickModel
from rankwright.clicks.pairs import PairTable, check_log
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog


class _Rates(ClickModel):
    """A rate for each code of an impression."""

    of_pairs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, smoothing: float = 1.0, n_jobs: int | None = None) -> None:
        self.smoothing = smoothing
        self.n_jobs = n_jobs

    def fit(self, log: ClickLog) -> Self:
        """Count impressions and clicks."""
        self._check_params()
        check_log(log)
        self.pairs_, pair = PairTable.of(log)
        weight = log.impression_weights()
        rate = self._ratio(self._code(log, pair), weight * log.click, weight)
        self.parameters_ = {"rate": rate}
        return self

    @abstractmethod
    def _code(self, log: ClickLog, pair: I64) -> AnyArray:
        """Return the number of each impression's rate."""

    def _probabilities(self, log: ClickLog, pair: I64, *, conditional: bool) -> F64:  # noqa: ARG002
        return self._at("rate", self._code(log, pair))


class GCTR(_Rates):
    """One click-through rate for everything: ``parameters_["rate"]``.

    Parameters
    ----------
    smoothing : float
        Number of clicks, and of impressions without a click, added to the counts.
    n_jobs : int or None
        No effect.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 0, 0, 0], session_sizes=[2, 2])
    >>> clicks.GCTR(smoothing=0).fit(log).parameters_["rate"]
    array([0.25])
    """

    name: ClassVar[str] = "gctr"

    def _code(self, log: ClickLog, pair: I64) -> AnyArray:  # noqa: ARG002
        return np.zeros(log.n_impressions, np.int64)  # (1)


class RCTR(_Rates):
    """A click-through rate for each position: ``parameters_["rate"]``, from the first.

    Parameters
    ----------
    smoothing, n_jobs
        As for `GCTR`.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 1, 1], session_sizes=[2, 2])
    >>> clicks.RCTR(smoothing=0).fit(log).parameters_["rate"]
    array([1. , 0.5])
    """

    name: ClassVar[str] = "rctr"

    def _code(self, log: ClickLog, pair: I64) -> AnyArray:  # noqa: ARG002
        return log.position - 1  # (2)


class DCTR(_Rates):
    """A click-through rate for each query and document: ``parameters_["rate"]``.

    Parameters
    ----------
    smoothing, n_jobs
        As for `GCTR`.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 1, 1], session_sizes=[2, 2])
    >>> clicks.DCTR(smoothing=0).fit(log).to_frame()[["query", "document", "rate"]]
       query document  rate
    0      7        a   1.0
    1      7        b   0.5
    """

    name: ClassVar[str] = "dctr"
    of_pairs: ClassVar[tuple[str, ...]] = ("rate",)

    def _code(self, log: ClickLog, pair: I64) -> AnyArray:  # noqa: ARG002
        return pair  # (3)

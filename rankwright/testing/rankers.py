"""Checks of scikit-learn that rankers are expected to fail, with reasons."""

from __future__ import annotations

from typing import Any

_NO_WEIGHTS = "the metric has no weights of documents, so unequal ones are refused"
_ONE_RANK = "each rank is held by one document, whatever its weight"
_REASONS = {
    "adarank": _NO_WEIGHTS,
    "boltzrank": _ONE_RANK,
    "coordinate_ascent": _NO_WEIGHTS,
    "dorm": _ONE_RANK,
    "irsvm": "the optimum is so flat that scores agree only to the sixth digit at the default tol",
    "lambdarank": _ONE_RANK,
    "prank": "two perceptron updates on a document differ from one update of twice the size",
    "random_forest": "bags are drawn by content, which repeated rows change",
    "rankgp": _NO_WEIGHTS,
    "ranknet": "networks are trained in single precision, so scores agree to the sixth digit",
    "softrank": _ONE_RANK,
    "svm_precision": _ONE_RANK,
}
_EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def expected_failed_checks(ranker: Any) -> dict[str, str]:
    """Return the names of the ``check_estimator`` checks that a ranker fails, with reasons.

    These checks compare sample weights with repeated rows. Pass the result to scikit-learn's
    ``check_estimator`` as ``expected_failed_checks``. It is valid for rankers with default parts.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.testing.expected_failed_checks(rw.RankSVM())
    {}
    >>> sorted(rw.testing.expected_failed_checks(rw.SoftRank()))[0]
    'check_sample_weight_equivalence_on_dense_data'
    """
    reason = _REASONS.get(ranker.name)
    if reason is None:
        return {}
    refused = ("check_sample_weights_not_overwritten",) if reason == _NO_WEIGHTS else ()
    return dict.fromkeys((*_EQUIVALENCE, *refused), reason)

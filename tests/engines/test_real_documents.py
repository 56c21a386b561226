"""Exports put real documents, with missing and negative values, in the model's order."""

import numpy as np
import pytest
from real_documents import count_for, fitted, raw_documents

from rankwright import registry
from rankwright.errors import UsageError

RANKERS = ("lambdamart", "linear_regression", "random_forest", "rankboost", "ranknet")
REFUSED = {("lightgbm", "linear_regression"), ("lightgbm", "ranknet"), ("xgboost-json", "ranknet")}
OTHER_PROCESSES = {"c", "lightgbm", "python"}  # slow to start; real_documents.py has them too
OLD = {"elasticsearch": "8.9.2", "opensearch": "2.17", "solr": "9.1.1"}


@pytest.fixture(scope="module")
def documents(data_dir):
    return raw_documents(data_dir)


@pytest.fixture(scope="module")
def rankers(documents):
    train, _ = documents
    return {name: fitted(name, train) for name in RANKERS}


@pytest.mark.parametrize("to", sorted(registry.EXPORTS.keys() - OTHER_PROCESSES))
def test_no_pair_of_documents_is_reversed_on_the_newest_version(documents, rankers, to, tmp_path):
    _, others = documents
    for name, ranker in rankers.items():
        folder = tmp_path / name
        if (to, name) in REFUSED:
            with pytest.raises(UsageError):
                count_for(ranker, to, folder, others)
            continue
        found, rows = count_for(ranker, to, folder, others)
        assert found.errors == found.reversed == 0, name
        assert found.pairs > 50_000, name
        # RankLib takes a missing value for 0, and so do XGBoost's linear models
        zero = to == "ranklib" or (to, name) == ("xgboost-json", "linear_regression")
        assert (rows < others.n_documents) == zero, name


@pytest.mark.parametrize("to", OLD)
def test_no_pair_is_reversed_on_an_old_version_that_an_export_is_for(
    documents, rankers, to, tmp_path
):
    _, others = documents
    for name, ranker in rankers.items():
        for version in (None, OLD[to]):  # on the old one and on the newest
            engine = None if version is None else f"{to}:{version}"
            folder = tmp_path / f"{name}-{version}"
            found, rows = count_for(
                ranker, to, folder, others, engine=engine, engine_version=OLD[to]
            )
            assert found.errors == found.reversed == 0, name
            assert rows == others.n_documents


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_on_an_old_version_an_export_for_the_newest_reverses_pairs(
    documents, rankers, to, tmp_path
):
    """What ``engine_version`` is for: missing values go right there at every split."""
    _, others = documents
    assert np.isnan(others.X).mean() > 0.05
    for name in ("lambdamart", "random_forest", "rankboost"):
        found, _ = count_for(rankers[name], to, tmp_path / name, others, engine=f"{to}:{OLD[to]}")
        assert found.reversed > 1_000, name

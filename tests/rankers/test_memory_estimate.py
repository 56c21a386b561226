"""A fit that does not go into the memory allowed is refused before any work, with what would."""

import re
import tracemalloc

import numpy as np
import pytest
from small_data import small_data

from rankwright import ranker
from rankwright.core import memory
from rankwright.core.memory import anonymous_bytes, memory_limit
from rankwright.data.ranking_data import RankingData
from rankwright.errors import MemoryLimitError
from rankwright.metrics.base import metric
from rankwright.models.coordinate_ascent import _Climb
from rankwright.rankers.memory_estimate import bytes_needed, check_memory

N, D = 4_000_000, 1_000


@pytest.fixture(scope="module")
def huge():
    """Four million documents of a thousand features that take no memory."""
    X = np.broadcast_to(np.float32(0), (N, D))
    y = np.broadcast_to(0.0, N)
    return RankingData(X, y, np.array([0, N]), np.array([1]))


def check(made, data):
    check_memory(made, made.make_model(), data, None)


def refusal(name, data, room, **parameters):
    with memory_limit(anonymous_bytes() + room), pytest.raises(MemoryLimitError) as refused:
        check(ranker(name, **parameters), data)
    return str(refused.value)


def gigabytes(reported, what):
    """Return what is needed beyond what this process, which other tests have filled, holds."""
    needs = re.match(rf"{what} needs about ([\d.]+) GB", reported)
    return float(needs[1]) - anonymous_bytes() / 1e9


def test_trees_that_do_not_fit_are_reported_what_would(huge):
    reported = refusal("lambdamart", huge, 3_000_000_000)
    assert 5.0 < gigabytes(reported, "lambdamart on trees") < 5.6
    assert "4,000,000 documents of 1,000 features" in reported
    assert "max_bins=15" not in reported  # 3.04 GB
    assert "a bound of " in reported


def test_fewer_bins_and_linear_models_are_offered_where_they_fit(huge):
    assert "or model__max_bins=15 or model='linear' would do" in refusal(
        "lambdamart", huge, 3_500_000_000
    )
    reported = refusal("lambdamart", huge, 6_000_000_000, model__max_bins=1023)
    assert "or model__max_bins=255 or" in reported
    assert "model='linear'" in refusal("intervalrank", huge, 1_000_000_000)


def test_a_solver_that_steps_along_features_holds_them_by_column(huge):
    assert gigabytes(refusal("domination", huge, 2_000_000_000), "domination on linear") > 90.0
    with memory_limit(anonymous_bytes() + 2_000_000_000):
        check(ranker("domination", solver="lbfgs"), huge)


def test_a_kernel_on_many_documents_is_refused(huge):
    reported = refusal("ranksvm", huge, 2_000_000_000, model="kernel")
    assert 16.0 < gigabytes(reported, "ranksvm on kernel") < 17.0


def test_what_fits_is_let_through(huge):
    with memory_limit(anonymous_bytes() + 2_000_000_000):
        check(ranker("memr"), huge)
    check(ranker("lambdamart"), huge)  # no bound at all


def test_valid_data_count_too(huge):
    model = ranker("lambdamart").make_model()
    assert bytes_needed("trees", model, huge, huge) > 1.5 * bytes_needed("trees", model, huge)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_coordinate_ascent_takes_no_more_than_is_said(kind, monkeypatch):
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 1 << 16)
    data = small_data(queries=60, documents=50, features=300, dtype=kind)
    model = ranker("coordinate_ascent").make_model()
    need = bytes_needed("coordinate_ascent", model, data)
    arguments = (model, metric("ndcg@10"), data, data.X, np.ones(300), None, 0, 1)
    _Climb(*arguments)  # kernels are loaded
    tracemalloc.start()
    held = _Climb(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held is not None
    assert 0.8 * data.X.nbytes < peak < need + 500_000


@pytest.mark.parametrize("name", ["memr", "mr", "gbdt", "adarank"])
def test_a_fit_makes_its_model_once(name, monkeypatch, tmp_path):
    made, times = ranker(name), []
    if "C_r" in made.get_params():
        made.set_params(C_r=0.0)  # which starts from the model of the grades
    own = type(made).make_model
    monkeypatch.setattr(type(made), "make_model", lambda self: times.append(1) or own(self))
    with memory_limit(anonymous_bytes() + 2_000_000_000):
        made.fit(small_data(), checkpoint=tmp_path)
    assert len(times) == 1

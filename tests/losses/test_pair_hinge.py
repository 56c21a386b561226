from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.pair_hinge import pair_hinge as twin

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.pair_hinge import PairHinge


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


def hessian(bound, s):
    out = np.empty((len(s), len(s)))
    bound.grad(s, np.empty(len(s)))
    for row, v in zip(out, np.eye(len(s)), strict=True):
        bound.hess_vec(v, row)
    return out


# --- one pair ----------------------------------------------------------------------------------


def test_a_pair_costs_what_its_lead_lacks_of_the_margin_squared_or_not():
    # the better document leads by 0.5
    value, grad, curv = parts(PairHinge(), query([2, 0]), [0.5, 0.0])
    assert value == pytest.approx(0.5**2)
    assert grad == pytest.approx([-2 * 0.5, 2 * 0.5])
    assert curv == pytest.approx([4, 4])  # twice the diagonal of the Hessian, 2
    value, grad, curv = parts(PairHinge(form="hinge", margin=4.0), query([2, 0]), [0.5, 0.0])
    assert value == pytest.approx(3.5)
    assert grad == pytest.approx([-1, 1])
    assert curv == pytest.approx([1 / 4, 1 / 4])


def test_the_margin_is_the_same_between_any_two_grades():
    values = [parts(PairHinge(), query([g, 0]), [0, 0])[0] for g in (1, 2, 4)]
    assert values == [1, 1, 1]


@pytest.mark.parametrize("form", ["squared", "hinge"])
def test_at_the_kink_a_pair_has_gradient_zero(form):
    value, grad, curv = parts(PairHinge(form=form), query([1, 0, 0]), [1.0, 0.0, 0.0])
    assert value == 0
    assert not grad.any()
    assert not curv.any()


def test_only_the_squared_hinge_is_smooth_and_has_a_kernel_for_hessian_products():
    assert PairHinge().traits.smooth
    assert PairHinge().hessian is not None
    assert not PairHinge(form="hinge").traits.smooth
    assert PairHinge(form="hinge").hessian is None


def test_the_hessian_of_two_pairs_is_written_out():
    # of 1 with both 0s, only that with the second is wrong: 2 [1 -1; -1 1] between them
    bound = PairHinge().bind(query([1, 0, 0]))
    found = hessian(bound, np.array([1.0, -0.5, 0.5]))
    np.testing.assert_allclose(found, [[2, 0, -2], [0, 0, 0], [-2, 0, 2]], atol=1e-15)


# --- weights of pairs --------------------------------------------------------------------------


def test_with_two_grades_the_mean_over_pairs_of_a_query_is_the_hinge_of_the_roc_area():
    s, y = np.array([0.2, 0.9, -0.3, 0.4, 0.0]), np.array([1, 0, 1, 0, 0])
    pairs = [max(1 - s[i] + s[j], 0) for i in (0, 2) for j in (1, 3, 4)]
    value = parts(PairHinge(form="hinge", pairs="query"), query(y), s)[0]
    assert value == pytest.approx(sum(pairs) / (2 * 3))


def test_ir_weighs_a_pair_by_the_mean_loss_of_ndcg_and_a_query_by_its_pairs():
    # ideal list 2 1 1 0; the second query has 1 pair, the first 5
    ideal = 3 + 1 / log2(3) + 1 / log2(4)
    middle = (1 / log2(3) + 1 / log2(4)) / 2  # mean discount of the two places of grade 1
    drop = {
        (2, 1): (3 - 1) * (1 - middle) / ideal,
        (2, 0): 3 * (1 - 1 / log2(5)) / ideal,
        (1, 0): (middle - 1 / log2(5)) / ideal,
    }
    of_first = 2 * drop[2, 1] + drop[2, 0] + 2 * drop[1, 0]  # every pair lacks the whole margin
    of_second = 5 / 1 * (1 - 1 / log2(3))
    data = RankingData.from_arrays(np.zeros((6, 1)), [1, 0, 2, 1, 0, 1], group_sizes=[4, 2])
    bound = PairHinge(pairs="ir").bind(data)
    assert bound.value(np.zeros(6)) == pytest.approx(of_first + of_second)
    assert bound.per_query == pytest.approx([of_first, of_second])


documents = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-6, 6), st.sampled_from([0.5, 1.0, 2.0])), max_size=14
)


@settings(deadline=None, max_examples=60)  # the first call compiles
@given(
    st.lists(documents, min_size=1, max_size=4),
    st.sampled_from(["squared", "hinge"]),
    st.sampled_from(["uniform", "query", "ir"]),
    st.sampled_from([0.5, 1.0, 1.3]),
)
def test_value_and_gradient_are_those_of_the_pairs_listed(queries, form, pairs, margin):
    queries = [[(0, 0, 1.0), (1, 0, 1.0), *query] for query in queries]
    y, s, w = np.array([one for query in queries for one in query], float).T
    s = s / 4  # many ties, and leads of exactly the margin
    data = RankingData.from_arrays(
        np.zeros((len(y), 1)), y, group_sizes=[len(query) for query in queries], sample_weight=w
    )
    loss = PairHinge(form=form, pairs=pairs, margin=margin)
    spans = [slice(*span) for span in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
    most = max(pair_count(y[span], w[span]) for span in spans)
    expected = [twin(loss, s[span], y[span], w[span], most_pairs=most) for span in spans]
    value, grad, _ = parts(loss, data, s)
    assert value == pytest.approx(sum(part[0] for part in expected), rel=1e-10, abs=1e-12)
    gradients = np.concatenate([part[1] for part in expected])
    np.testing.assert_allclose(
        grad, gradients, rtol=1e-9, atol=1e-11 * max(1, np.abs(gradients).max())
    )


def pair_count(y, w):
    return (np.outer(w, w) * (y[:, None] > y)).sum()


@pytest.mark.parametrize("pairs", ["uniform", "query", "ir"])
def test_real_valued_grades_of_a_long_list_are_those_of_the_twin(pairs):
    rng = np.random.default_rng(1)
    y, s, w = rng.uniform(0, 3, 150), 0.5 * rng.normal(size=150), rng.uniform(0.5, 2, 150)
    loss = PairHinge(pairs=pairs)
    value, grad, _ = parts(loss, query(y, sample_weight=w), s)
    expected, gradients = twin(loss, s, y, w)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(grad, gradients, rtol=1e-8, atol=1e-10 * np.abs(gradients).max())


@pytest.mark.parametrize("pairs", ["uniform", "ir"])
def test_the_curvature_bounds_the_hessian_as_a_matrix(pairs):
    rng = np.random.default_rng(0)
    y, s, w = rng.integers(0, 4, 12), rng.normal(size=12), rng.uniform(0.5, 2, 12)
    data = query(y, sample_weight=w)
    _, _, curv = parts(PairHinge(pairs=pairs), data, s)
    found = hessian(PairHinge(pairs=pairs).bind(data), s)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    assert np.linalg.eigvalsh(np.diag(curv) - found).min() > -1e-12


def test_a_very_heavy_document_takes_its_places_without_listing_them():
    value = parts(PairHinge(pairs="ir"), query([1, 0], sample_weight=[1e12, 1.0]), [0, 0])[0]
    assert 0 <= value < 1e-6 * 1e12


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"form": "cubic"}, "form must be squared or hinge, not 'cubic'"),
        ({"pairs": "all"}, "pairs must be uniform, query or ir, not 'all'"),
        ({"margin": 0.0}, "margin must be above 0, not 0.0"),
    ],
)
def test_wrong_parameters_are_reported(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        PairHinge(**params).bind(query([1, 0]))

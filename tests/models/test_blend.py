"""A weighted sum of fitted models: scores, contributions, and what a file holds of it."""

import numpy as np
import pytest
from small_data import small_data

import rankwright as rw
from rankwright.errors import DataError, UsageError
from rankwright.models.blend import Blend, FittedBlend

DATA, OTHER = small_data(), small_data(seed=1)
MEMBERS = {
    "memr": rw.MEMR().fit(DATA),
    "gbdt": rw.GBDT(n_estimators=5).fit(DATA),
    "rankboost": rw.RankBoost(n_rounds=5).fit(DATA),
}
BLEND = FittedBlend(
    names=tuple(MEMBERS),
    kinds=tuple(one.model_name for one in MEMBERS.values()),
    members=tuple(one.model_ for one in MEMBERS.values()),
    weights=np.array([0.5, 0.3, 0.2]),
    deviations=np.array([2.0, 0.5, 1.0]),
    n_features=6,
)


def test_a_score_is_the_weighted_sum_over_the_deviations():
    expected = sum(
        factor * one.predict(OTHER)
        for factor, one in zip((0.25, 0.6, 0.2), MEMBERS.values(), strict=True)
    )
    np.testing.assert_allclose(BLEND.scores(OTHER.X), expected, rtol=1e-14)
    np.testing.assert_array_equal(BLEND.scores_of(OTHER), BLEND.scores(OTHER.X))
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(BLEND.scores(OTHER.X, n_jobs=threads), BLEND.scores(OTHER.X))


def test_contributions_are_the_sum_of_the_members_and_add_up_to_the_score():
    parts = BLEND.contributions(OTHER.X)
    each = [
        f * one.model_.contributions(OTHER.X)
        for f, one in zip(BLEND.factors, MEMBERS.values(), strict=True)
    ]
    np.testing.assert_allclose(parts, sum(each), rtol=1e-12)
    np.testing.assert_allclose(parts.sum(axis=1), BLEND.scores(OTHER.X), rtol=1e-9)
    np.testing.assert_array_equal(BLEND.contributions_of(OTHER), parts)


def test_arrays_and_texts_hold_all_of_it():
    again = Blend.restore(BLEND.arrays(), BLEND.texts(), 6)
    np.testing.assert_array_equal(again.scores(OTHER.X), BLEND.scores(OTHER.X))
    assert (again.names, again.kinds) == (BLEND.names, BLEND.kinds)
    assert repr(again) == "blend of 0.5 memr (linear), 0.3 gbdt (trees), 0.2 rankboost (additive)"


def test_it_is_described_member_by_member():
    what, *lines = BLEND.describe([])
    assert what.startswith("a weighted sum of rankers")
    assert lines == ["0.500  memr (linear)", "0.300  gbdt (trees)", "0.200  rankboost (additive)"]


def test_a_member_may_look_at_the_list_of_a_query():
    pytest.importorskip("torch")
    lists = rw.RankNet(list_context=2, epochs=2).fit(DATA)
    blend = rw.Blend.of({"memr": MEMBERS["memr"], "lists": lists}, [1.0, 2.0])
    assert blend.model_.looks_at_list
    expected = MEMBERS["memr"].predict(OTHER) + 2.0 * lists.predict(OTHER)
    np.testing.assert_allclose(blend.predict(OTHER), expected)
    parts = blend.model_.contributions_of(OTHER)
    np.testing.assert_allclose(parts.sum(axis=1), expected, rtol=1e-6)
    with pytest.raises(UsageError, match="give the query of each row"):
        blend.predict(OTHER.X)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"blend.weights": np.array([1.0, 1.0])}, "blend.weights"),
        ({"blend.weights": np.array([1.0, -1.0, 1.0])}, "blend.weights"),
        ({"blend.deviations": np.zeros(3)}, "whose scores do not differ"),
        ({"7.coef": np.zeros(6)}, "parts of the member 7, which it has not"),
        ({"0.coef": np.zeros(4)}, "coef"),
    ],
)
def test_damaged_arrays_are_refused(change, sentence):
    with pytest.raises(DataError, match=sentence):
        Blend.restore({**BLEND.arrays(), **change}, BLEND.texts(), 6)


def test_a_blend_in_a_blend_is_refused():
    texts = BLEND.texts()
    texts["blend"] = texts["blend"].replace('"linear"', '"blend"')
    with pytest.raises(DataError, match="a member of a blend is itself one"):
        Blend.restore(BLEND.arrays(), texts, 6)


def test_it_is_not_the_model_of_a_loss():
    with pytest.raises(UsageError, match=r"use rankwright.Blend"):
        rw.Ranker(loss="ranknet", model=Blend()).fit(DATA)

"""`inspect` against brute force on small data, and on real data whose errors are known."""

import json
import math
import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from small_data import small_data

from rankwright.data.files import load
from rankwright.data.inspect import (
    AGREEMENT,
    Overlap,
    Profile,
    _agreements,
    inspect,
    outcome_word,
    warn_of_outcomes,
)
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.split import load_alike
from rankwright.data.synthetic_data import synthetic
from rankwright.rankers.base import ranker

NAN = math.nan


def profile(X, y, sizes=None, **rest):
    if sizes is not None:
        rest["group_sizes"] = sizes
    return inspect(RankingData.from_arrays(X, y, **rest)).data[0]


def test_shape_lengths_and_grades():
    found = profile(np.ones((6, 2)), [0, 1, 2, 0, 0, 1.5], [3, 1, 2])
    assert (found.documents, found.queries, found.features) == (6, 3, 2)
    lengths = found.list_lengths
    assert (lengths.shortest, lengths.median, lengths.longest) == (1, 2, 3)
    assert found.grades.counts == {0: 3, 1: 1, 1.5: 1, 2: 1}
    assert (found.grades.lowest, found.grades.highest) == (0, 2)


def test_very_many_grades_are_not_listed():
    found = profile(np.ones((60, 1)), np.arange(60) / 7, [60])
    assert found.grades.distinct == 60
    assert found.grades.counts is None


def test_queries_without_a_relevant_document_and_queries_of_one_grade_are_counted_apart():
    found = profile(np.ones((7, 1)), [0, 0, 2, 2, 1, 0, 1], [2, 2, 2, 1])
    assert found.empty_queries == 1
    assert found.one_grade_queries == 2


def test_missing_values_are_counted_by_feature():
    found = profile([[NAN, 1.0], [NAN, 2.0], [3.0, NAN]], [0, 1, 2], [3])
    assert found.missing_values == 3
    assert found.missing_by_feature == {1: 2, 2: 1}


def test_constant_features_differ_from_those_constant_within_queries():
    X = [[5, 1, 0, NAN], [5, 1, 1, NAN], [5, 2, 0, NAN], [5, 2, 0, NAN]]
    found = profile(X, [0, 1, 0, 1], [2, 2])
    assert found.constant_features == (1, 4)
    assert found.query_constant_features == (2,)


def test_a_feature_that_is_sometimes_missing_is_not_constant():
    assert profile([[1.0], [NAN]], [0, 1], [2]).constant_features == ()


def test_features_are_called_by_their_names():
    found = profile([[5, 1], [5, 2]], [0, 1], [2], feature_names=["age", "bm25"])
    assert found.constant_features == ("age",)


def test_equal_columns_are_grouped_and_constants_left_out():
    X = [[1, 2, 1, 0, 0, 2], [3, NAN, 3, 0, 0, NAN], [-0.0, 4, 0.0, 0, 0, 4]]
    assert profile(X, [0, 1, 2], [3]).duplicate_features == ((1, 3), (2, 6))


def test_equal_documents_of_a_query_are_counted_and_conflicting_grades_noted():
    X = [[1, 2], [1, 2], [1, 2], [7, 7], [1, 2], [3, 3], [3, 3]]
    found = profile(X, [0, 1, 0, 0, 1, 2, 2], [4, 3]).duplicate_documents
    assert (found.documents, found.queries, found.conflicting) == (3, 2, 1)


def test_queries_whose_rows_were_scattered_are_named():
    found = profile(np.ones((6, 1)), np.zeros(6), qid=["a", "b", "a", "c", "c", "b"])
    assert found.scattered_queries == 2
    assert found.scattered_examples == ("a", "b")
    assert profile(np.ones((3, 1)), np.zeros(3), qid=["a", "b", "b"]).scattered_queries == 0


def test_lists_in_the_order_of_their_grades_are_reported_beside_what_chance_gives():
    y = [2, 1, 1, 0, 0, 1, 1, 1]
    order = profile(np.ones((8, 1)), y, [4, 2, 2]).order
    assert (order.lists, order.best_first, order.worst_first) == (2, 1, 1)
    assert order.by_chance == pytest.approx(2 / 24 + 1 / 2, abs=0.01)


@pytest.mark.parametrize(("sign", "kind"), [(-1, "best first"), (1, "worst first")])
def test_a_file_sorted_by_grade_differs_from_a_shuffled_one(sign, kind):
    data = synthetic("mq2008", queries=60)
    queries = [data.y[start:end] for start, end in pairwise(data.indptr.tolist())]
    by_grade = np.concatenate([sign * np.sort(sign * grades) for grades in queries])
    assert profile(data.X, by_grade, data.sizes).order.sorted == kind
    assert profile(data.X, data.y, data.sizes).order.sorted is None


def test_one_long_sorted_list_is_enough_and_two_documents_are_not():
    y = np.repeat([2, 1, 0], 4)  # one of 34,650 orders
    assert profile(np.ones((12, 1)), y, [12]).order.sorted == "best first"
    assert profile(np.ones((2, 1)), [1, 0], [2]).order.sorted is None


# --- several files -------------------------------------------------------------------------------


def part(X, qid):
    return RankingData.from_arrays(np.asarray(X, float), None, qid=qid)


def test_queries_and_documents_shared_between_files_are_counted():
    train = part([[1, 2], [3, 4], [0, 0]], ["1", "1", "2"])
    test = part([[3, 4], [3, 4], [0, 0], [9, 9]], ["7", "2", "8", "9"])
    (overlap,) = inspect({"train": train, "test": test}).overlaps
    assert (overlap.first, overlap.second) == ("train", "test")
    assert (overlap.queries, overlap.examples) == (1, ("2",))
    assert overlap.documents == 2  # rows of zeros are no evidence


def test_ids_are_shared_whether_read_as_text_or_as_numbers():
    assert inspect([part([[1.0]], ["10"]), part([[2.0]], [10])]).overlaps[0].queries == 1


def test_float32_and_sparse_rows_are_recognised_in_other_files():
    X = np.array([[0.5, 0.0], [0.25, 1.0]])
    single = RankingData.from_arrays(X.astype(np.float32), None, group_sizes=[2])
    stored = RankingData.from_arrays(sparse.csr_array(X), None, group_sizes=[2])
    overlaps = inspect([single, part(X, [3, 3]), stored]).overlaps
    assert [overlap.documents for overlap in overlaps] == [2, 2, 2]


def test_files_are_asked_for_one_after_the_other():
    alive = []

    def loaded():
        for name in ("a", "b", "c"):
            alive.append(name)
            yield name, part([[1.0]], [name])

    assert [one.name for one in inspect(loaded()).data] == alive == ["a", "b", "c"]


# --- properties ----------------------------------------------------------------------------------

matrices = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 10), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 0.0, 1.0, -1.0, NAN]),
)


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


@settings(max_examples=200, deadline=None)
@given(matrices, st.data())
def test_brute_force_finds_the_same_and_so_does_a_sparse_matrix(X, draw):
    n, d = X.shape
    stored = sparse.csr_array(X)
    if stored.nnz and draw.draw(st.booleans()):
        stored.data[0] = 0.0  # a zero may be stored, too
        X = stored.toarray()
    cut = draw.draw(st.integers(0, n))
    y = draw.draw(arrays.arrays(np.int64, n, elements=st.integers(0, 2)))
    found = profile(X, y, [cut, n - cut])
    assert {**_fields(profile(stored, y, [cut, n - cut])), "sparse": False} == _fields(found)

    queries = [slice(0, cut), slice(cut, n)]
    constant = [f for f in range(d) if same(X[:, f], np.full(n, X[0, f]))]
    still = [
        f
        for f in range(d)
        if f not in constant
        and all(same(X[q, f], np.full(len(X[q]), X[q][0, f])) for q in queries if len(X[q]))
    ]
    pairs = [
        (a + 1, b + 1)
        for a, b in combinations(range(d), 2)
        if same(X[:, a], X[:, b]) and a not in constant
    ]
    assert found.constant_features == tuple(f + 1 for f in constant)
    assert found.query_constant_features == tuple(f + 1 for f in still)
    assert sorted(p for g in found.duplicate_features for p in combinations(g, 2)) == pairs
    assert found.missing_values == np.isnan(X).sum()
    kinds = [{tuple(map(str, row + 0.0)) for row in X[q]} for q in queries]
    assert found.duplicate_documents.documents == n - sum(map(len, kinds))


def _fields(found):
    return {name: getattr(found, name) for name in type(found).__slots__}


# --- real data -----------------------------------------------------------------------------------


OHSUMED, OHSUMED_RAW = "OHSUMED_LETOR3/QueryLevelNorm", "OHSUMED_LETOR3/Feature-null"


def letor_set(folder):
    """Return the parts S1 to S5 of a LETOR set as one."""
    return concatenate(load_alike([folder / f"S{part}.txt.xz" for part in range(1, 6)]))


def test_ohsumed_is_what_its_readme_says(data_dir):
    (found,) = inspect({"ohsumed": letor_set(data_dir / OHSUMED)}).data
    assert (found.queries, found.documents, found.features) == (106, 16_140, 45)
    assert found.grades.counts == {0: 11_303, 1: 2_585, 2: 2_252}
    assert (found.list_lengths.shortest, found.list_lengths.longest) == (35, 320)
    assert found.empty_queries == 1
    assert len(found.constant_features) == 9
    assert found.missing_values == 0


def test_raw_ohsumed_has_its_nulls(data_dir):
    (found,) = inspect(letor_set(data_dir / OHSUMED_RAW)).data
    assert found.missing_values == 51_490
    assert len(found.query_constant_features) == 9


def test_mq2008_is_what_its_readme_says_and_its_parts_share_no_query(data_dir):
    found = inspect({name: load(data_dir / "MQ2008" / f"{name}.txt.xz") for name in ("S1", "S2")})
    assert [overlap.queries for overlap in found.overlaps] == [0]
    (whole,) = inspect(letor_set(data_dir / "MQ2008")).data
    assert (whole.queries, whole.documents, whole.features) == (784, 15_211, 46)
    assert whole.grades.counts == {0: 12_279, 1: 2_001, 2: 931}
    assert whole.empty_queries == 220


# --- a profile turns into plain values, down to its last part --------------------------------


def test_a_profile_is_written_out_field_by_field():
    found = Profile(data=(), overlaps=(Overlap("train", "test", 1, ("q7",), 2),))
    shared = {"queries": 1, "examples": ("q7",), "documents": 2}
    assert found.to_dict() == {
        "data": (),
        "overlaps": ({"first": "train", "second": "test", **shared},),
    }


def test_the_profile_is_plain_json():
    found = inspect(synthetic("ohsumed", queries=3)).to_dict()
    assert json.loads(json.dumps(found))["data"][0]["queries"] == 3


# --- features that look like outcomes: by words of their names, and by how well they tell grades


@pytest.mark.parametrize(
    "name", ["clicks", "n_clicks", "CTR", "totalClicks", "num-impressions", "DwellTime", "rating"]
)
def test_names_of_outcomes(name):
    assert outcome_word(name)


@pytest.mark.parametrize(
    "name",
    [
        *["bm25", "clickbait_title", "operating_margin", "electrical", "f12"],
        *["past_clicks", "ctr_last_30_days", "clicks_7d", "priorCTR", "overrated", "impressive"],
    ],
)
def test_names_that_are_none(name):
    assert outcome_word(name) is None


def named(data, column=None, name="extra"):
    X = data.X if column is None else np.column_stack([data.X, column])
    names = [f"x{number}" for number in range(data.n_features)] + [name] * (column is not None)
    return RankingData.from_arrays(X, data.y, qid=data.query_of_row(), feature_names=names)


def agreement_by_hand(data, column):
    values = data.X[:, column]
    won = pairs = 0.0
    for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        for i in range(begin, end):
            for j in range(begin, end):
                if data.y[i] > data.y[j]:
                    pairs += 1
                    won += 1.0 if values[i] > values[j] else 0.5 if values[i] == values[j] else 0.0
    return won / pairs


def test_the_agreement_of_sampled_pairs_is_near_that_of_all_pairs():
    data = small_data()
    found = _agreements(data)
    for column in range(data.n_features):
        assert found[column] == pytest.approx(agreement_by_hand(data, column), abs=0.05)
    wide = RankingData.from_arrays(sparse.csr_array(data.X), data.y, qid=data.query_of_row())
    assert _agreements(wide) == found


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_column_that_tells_the_grade_is_named(sign):
    data = small_data()
    noise = np.random.default_rng(1).normal(size=data.n_documents) * 0.3
    leaky = named(data, sign * (data.y + noise), "popularity")
    with pytest.warns(
        UserWarning, match=r"a feature looks like outcomes.*'popularity' \("
    ) as found:
        ranker("ranksvm").fit(leaky)
    assert "drop=['popularity']" in str(found[0].message)
    assert found[0].filename == __file__
    assert list(inspect(leaky).data[0].outcome_features) == ["popularity"]


def test_noise_missing_values_and_few_queries_are_no_leak():
    data = small_data()
    gaps = np.where(np.arange(data.n_documents) % 50 == 0, data.y, np.nan)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_outcomes(named(data))
        warn_of_outcomes(named(data, gaps))
        warn_of_outcomes(named(data, np.ones(data.n_documents)))
        few = small_data(queries=9)
        warn_of_outcomes(named(few, few.y))
    assert found == []


def test_what_the_caller_names_as_a_feature_is_not_suspected_by_its_name():
    data = named(small_data(), np.ones(600), "clicks").to_frame()
    fitted = ranker("ranksvm").fit(data, "label", qid="qid", features=["x0", "clicks"])
    assert list(fitted.feature_names_in_) == ["x0", "clicks"]


def test_features_without_names_are_never_warned_of():
    data = small_data()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ranker("ranksvm").fit(np.column_stack([data.X, data.y]), data.y, qid=data.query_of_row())
    assert found == []


def test_the_digits_are_far_below_the_threshold():
    found = _agreements(load("digits"))
    assert max(max(share, 1 - share) for share in found.values()) < AGREEMENT - 0.2


@pytest.mark.parametrize("name", ["MQ2008", OHSUMED, OHSUMED_RAW])
def test_real_features_are_below_the_threshold(name, data_dir):
    found = _agreements(letor_set(data_dir / name))
    assert max(max(share, 1 - share) for share in found.values()) < AGREEMENT - 0.05


def random_grades(rng, queries, documents, shares):
    return rng.choice(len(shares), size=(queries, documents), p=shares).astype(float)


ORDERS = [(2, 5, (0.8, 0.2)), (12, 40, (0.95, 0.05)), (50, 10, (0.6, 0.3, 0.1))]


@pytest.mark.parametrize(("queries", "documents", "shares"), ORDERS)
def test_rows_in_random_order_are_not_reported_as_sorted(queries, documents, shares):
    rng = np.random.default_rng(7)
    for _ in range(200):
        y = random_grades(rng, queries, documents, shares)
        assert profile(np.ones((y.size, 1)), y.ravel(), [documents] * queries).order.sorted is None

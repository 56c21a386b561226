"""Document weights in metrics: values of rax and TensorFlow Ranking, computed once and copied.

rax 0.4.0 on JAX 0.10.2 with ``reduce_fn=None``; tensorflow-ranking 0.5.5 on TensorFlow 2.15.1:
``compute`` of the classes in ``metrics_impl``, lists padded with the label -1 and the weight 0.
Both use single precision.
"""

import numpy as np
import pytest

import rankwright as rw
from rankwright.errors import IncompatibleError, UsageError

GRADES, SCORES, WEIGHTS = zip(
    # grades, scores and weights of each query
    (
        [2, 3, 0, 3, 1, 1, 2],
        [6, 0, 1, 3, 2, 5, 4],
        [1, 0.5, 0.25, 0.25, 0.25, 0.5, 2],
    ),
    (
        [0, 2, 2, 0, 0],
        [2, 1, 4, 3, 0],
        [2, 1.75, 1.75, 0.25, 1],
    ),
    (
        [2, 1, 2, 2, 2, 0, 3, 1, 3],
        [1, 8, 2, 6, 0, 4, 5, 7, 3],
        [0.5, 1.25, 2, 2, 1.75, 0.75, 0.25, 1.75, 1.5],
    ),
    (
        [0, 0, 0, 0],
        [1, 2, 0, 3],
        [0.5, 1.25, 0.75, 0.75],
    ),
    (
        [3, 0, 0, 0, 0, 0],
        [0, 5, 1, 3, 4, 2],
        [0, 0, 0, 0, 0, 0],
    ),
    (
        [1, 1, 0, 1, 3],
        [3, 1, 4, 2, 0],
        [2, 1.75, 0.25, 1.75, 1.75],
    ),
    strict=True,
)

RAX = {
    "ndcg@3": [0.6505253, 0.6131471, 0.3097453, 0, 0, 0.1485285],
    "ndcg": [0.7755218, 0.8772153, 0.6394089, 0, 0, 0.5039113],
    "dcg@3": [6.315465, 5.25, 5.3541269, 0, 0, 2.1368594],
    "map@3": [0.5, 0.5, 0.375, 0, 0, 0.2916667],
    "mrr@3": [1, 1, 1, 0, 0, 0.5],
    "p@3": [1, 0.3333333, 1, 0, 0, 0.6666667],
    "p@6": [0.8333333, 0.4, 0.8333333, 0, 0.1666667, 0.8],
    "recall@3": [0.5, 0.5, 0.375, 0, 0, 0.5],
}
TF_RANKING = {  # values and weights of queries, mean
    "ndcg@3": (
        [0.6505253, 0.6131471, 0.3097453, 0, 0, 0.1485285],
        [0.6818182, 1.75, 1.2142857, 1.355276, 0, 1.775],
        0.318209,
    ),
    "ndcg": (
        [0.7755218, 0.8772153, 0.6394088, 0, 0, 0.5039113],
        [0.6818182, 1.75, 1.2142857, 1.355276, 0, 1.775],
        0.5511437,
    ),
    "dcg@3": (
        [9.262682, 3, 4.4092808, 0, 0, 1.2038645],
        [0.6818182, 1.75, 1.2142857, 1.355276, 0, 1.775],
        2.8121875,
    ),
    "map@3": (
        [0.7777778, 0.5, 0.4545455, 0, 0, 0.2988506],
        [0.75, 1.75, 1.375, 1.421875, 0, 1.8125],
        0.3692308,
    ),
    "map": (
        [0.984127, 0.75, 0.9279401, 0, 0, 0.6729885],
        [0.75, 1.75, 1.375, 1.421875, 0, 1.8125],
        0.6394802,
    ),
    "mrr": ([1, 1, 1, 0, 0, 0.5], [0.75, 1.75, 1.375, 1.421875, 0, 1.8125], 0.6725275),
    "p@3": (
        [1, 0.3333333, 1, 0, 0, 0.6666667],
        [0.75, 1.75, 1.375, 1.421875, 0, 1.8125],
        0.5509158,
    ),
    "p@6": (
        [0.8333333, 0.4, 0.8333333, 0, 0, 0.8],
        [0.75, 1.75, 1.375, 1.421875, 0, 1.8125],
        0.5515018,
    ),
    "recall@3": ([0.5, 0.5, 0.375, 0, 0, 0.5], [0.75, 1.75, 1.375, 1.421875, 0, 1.8125], 0.3758242),
    "hit@2": ([1, 1, 1, 0, 0, 1], [0.75, 1.75, 1.375, 1.421875, 0, 1.8125], 0.8),
}


def evaluated(names, convention, **changes):
    y, scores, weight = (np.concatenate(part) for part in (GRADES, SCORES, WEIGHTS))
    options = {"group_sizes": [len(part) for part in GRADES], "sample_weight": weight}
    return rw.evaluate(y, scores, names, convention=convention, **options | changes)


def test_rax_multiplies_gains_with_the_weights():
    found = evaluated(list(RAX), "rax")
    for name, values in RAX.items():
        np.testing.assert_allclose(found.per_query[name], values, atol=1e-6, err_msg=name)
        assert found[name] == pytest.approx(np.mean(values), rel=1e-6)


def test_tensorflow_ranking_also_derives_the_weights_of_queries():
    found = evaluated(list(TF_RANKING), "tf_ranking")
    for name, (values, weights, mean) in TF_RANKING.items():
        counts = np.array(weights) > 0  # it takes documents without a weight out of their lists
        np.testing.assert_allclose(
            found.per_query[name][counts], np.array(values)[counts], atol=1e-6, err_msg=name
        )
        assert found[name] == pytest.approx(mean, rel=1e-6), name


def test_other_conventions_ignore_the_weights_and_weights_of_1_change_nothing():
    plain = evaluated(list(RAX), "standard", sample_weight=None)
    assert dict(evaluated(list(RAX), "standard")) == dict(plain)
    ones = np.ones(sum(map(len, GRADES)))
    for convention in ("rax", "tf_ranking"):
        plain = evaluated(list(RAX), convention, sample_weight=None)
        assert dict(evaluated(list(RAX), convention, sample_weight=ones)) == pytest.approx(plain)


def test_ties_average_the_weighted_gains():
    found = rw.evaluate(
        [1, 0], [1, 1], "dcg", group_sizes=[2], sample_weight=[3, 1], convention="tf_ranking"
    )
    assert found.per_query["dcg"][0] == pytest.approx((3 + 3 / np.log2(3)) / 2 / 3)


def test_the_effect_of_a_swap_is_that_of_weighted_gains():
    data = rw.RankingData.from_arrays(
        np.zeros((3, 1)), [0, 1, 2], group_sizes=[3], sample_weight=[1, 2, 0.5]
    )
    assert rw.metric("ndcg", convention="rax").swap_form(data).gain.tolist() == [0, 2, 1.5]
    with pytest.raises(IncompatibleError, match="tf_ranking weighs the documents of map"):
        rw.metric("map", convention="tf_ranking").swap_form(data)


def test_comparisons_refuse_what_is_no_mean_by_query_weight():
    data = rw.synthetic("mq2008", queries=10)
    for name, convention in (("ndcg", "tf_ranking"), ("gm_map", "standard"), ("num_ret", "rax")):
        with pytest.raises(UsageError, match=f"{name} is .* over queries under the convention"):
            rw.compare(data, "memr,linear_regression", metrics=name, convention=convention)

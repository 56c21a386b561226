"""What every loss must keep; one added to the registry is tested without a line here."""

from dataclasses import fields

import numpy as np
import pytest
from reference.losses import TWINS

from rankwright import registry
from rankwright.core import parallel
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses import loss

VARIANTS = {
    "all_threshold": [{"margin": 0.4}],
    "approx_ndcg": [{"temperature": 1.5}],
    "boltzrank": [
        {"proposal": "uniform", "metric": "ndcg@2", "divergence": 0.0},
        {"pair_potential": 0.7, "samples": 11, "sharpness": 2.0, "metric": "dcg@3"},
    ],
    "domination": [
        {"margin": "linear", "margin_scale": 0.3},
        {"tiers": (1.0, 3.0), "margin": "gain", "margin_scale": 0.2},
        {"tiers": (1.0,)},
    ],
    "fidelity": [{"confidence": 0.9}, {"normalize": True}],
    "gbrank": [{"lambda1": 0.3}, {"lambda1": 0.1, "calibration": 0.2, "targets": "gain"}],
    "interval": [{"lambda1": 3.0, "scale_by_size": True, "calibration": 0.1}],
    "lambdarank": [
        {"normalize": False},
        {"metric": "ndcg@3", "truncation": 2, "sigma": 0.7},
        {"metric": "dcg", "truncation": None, "normalize": False},
        {"metric": "p@2"},
        {"metric": "map"},
        {"metric": "mrr", "truncation": 3},
        {"metric": "err"},
    ],
    "listmle": [{"calibration": 0.5, "targets": (0.0, 1.0, 2.5, 3.0, 7.0)}],
    "listnet": [{"target": "gain"}, {"k": 2}, {"k": 3, "samples": 5, "random_state": 2}],
    "ordinal_hinge": [{"margin": 0.5, "balanced": True}],
    "pair_exp": [{"normalize": True}],
    "pair_hinge": [
        {"form": "hinge", "pairs": "query"},
        {"pairs": "query", "margin": 0.4},
        {"pairs": "ir"},
        {"form": "hinge", "pairs": "ir", "margin": 2.0},
    ],
    "ndcg_glm": [{"divergence": "kl"}],
    "neural_ndcg": [
        {"temperature": 0.2, "sinkhorn": 1},
        {"metric": "dcg@2", "temperature": 3.0, "sinkhorn": 0},
    ],
    "position_svm": [
        {"ties": "score"},
        {"metric": "ndcg@3", "decay": "log"},
        {"metric": "wta(modified=true)", "decay": 0.5, "ties": "score"},
        {"metric": "mrr@3", "decay": 0.5},
        {"metric": "eru", "decay": "loglog"},
    ],
    "precision_svm": [{"n": 2, "min_grade": 2.0}],
    "rank_cosine": [{"centred": True, "softening": 0.3}, {"targets": "gain"}],
    "ranknet": [{"sigma": 0.5, "normalize": True}],
    "retarget": [
        {"C_r": 0.5, "C_w": 0.2, "targets": "gain"},
        {"margin": "none", "C_r": 0.5},
        {"margin": "constant", "size": 0.7},
        {"margin": "sqrt", "intercept": False, "C_r": 0.3, "C_w": 0.1},
        {"margin": "power", "power": 2.0, "query_weight_exponent": 1.0},
        {"margin": "large", "size": 0.3},
        {"floor": 0.2, "C_r": 0.3},
        {"divergence": "kl"},
        {"divergence": "kl", "margin": "sqrt", "C_r": 0.5, "C_w": 0.1},
        {"divergence": "kl", "margin": "large", "size": 0.2},
        {"divergence": "kl", "floor": 1e-5},
        {"divergence": "kl", "kl_margin": "additive", "size": 1e-4, "floor": 1e-5},
        {"divergence": "kl", "kl_margin": "surrogate"},
        {"divergence": "kl", "domain": "cone", "C_r": 0.5, "C_w": 0.1},
        {"divergence": "kl", "domain": "cone", "kl_margin": "additive", "floor": 0.3},
        {"divergence": "kl", "domain": "cone", "margin": "large", "size": 0.3},
    ],
    "softrank": [
        {"metric": "ndcg@4", "sigma": 0.4},
        {"metric": "dcg@2"},
        {"metric": "p@3"},
        {"form": "exact", "metric": "ndcg@3", "nodes": 6},
    ],
    "squared": [{"targets": "gain"}],
    "xendcg": [{"sampled": False}, {"newton_terms": 3}, {"sampled": False, "newton_terms": 3}],
}
CASES = [(name, params) for name in registry.LOSSES for params in [{}, *VARIANTS.get(name, [])]]
GRADES = [[2, 0, 1, 1, 0], [1], [0, 0, 0], [3, 1, 4, 0, 1, 2], [], [1, 0]]
RANKED = [0, 3, 5]  # the queries that hold an order


def case_name(case):
    return "-".join([case[0], *(f"{key}={value}" for key, value in case[1].items())])


def having(*traits, **refused):
    """Parametrise over the losses that claim ``traits``."""
    chosen = [
        case
        for case in CASES
        if all(getattr(loss(case[0], **case[1]).traits, trait) for trait in traits)
        and not any(getattr(loss(case[0], **case[1]).traits, trait) for trait in refused)
    ]
    return pytest.mark.parametrize("case", chosen, ids=case_name)


def make(case):
    return loss(case[0], **case[1])


def alone(made):
    """Whether a query's loss is its own: IR-SVM weighs it against the query of most pairs."""
    return getattr(made, "pairs", "") != "ir"


def data_of(grades, **arrays):
    y = np.array([grade for query in grades for grade in query], float)
    sizes = [len(query) for query in grades]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes, **arrays)


def scores(data, seed=0, size=1.0):
    return size * np.random.default_rng(seed).normal(size=data.n_documents)


def at(bound, s):
    """Value and gradient, with the buffer full of rubbish before."""
    grad = np.full(len(s), np.nan)
    return bound.grad(s, grad), grad


def with_curv(case, bound, s):
    """Value, gradient and curvature; zeros where the loss claims no curvature."""
    if not make(case).traits.curvature:
        return *at(bound, s), np.zeros(len(s))
    grad, curv = np.full(len(s), np.nan), np.full(len(s), np.nan)
    return bound.grad_curv(s, grad, curv), grad, curv


# --- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("case", [case for case in CASES if alone(make(case))], ids=case_name)
def test_value_and_gradient_are_those_of_the_slow_twin(case, tied):
    rng = np.random.default_rng(1)
    weights = rng.choice([0.5, 1.0, 2.0], size=17)
    data = data_of(GRADES, sample_weight=weights)
    made = make(case)
    bound = made.bind(data)
    for t in range(2):
        if hasattr(bound, "set_iteration"):
            bound.set_iteration(t)
        s = scores(data, t, 1.5).round(0 if tied else 9)
        value, grad = at(bound, s)
        expected, slopes = 0.0, np.zeros(len(s))
        for q in RANKED:
            rows = slice(data.indptr[q], data.indptr[q + 1])
            part = TWINS[case[0]](made, s[rows], data.y[rows], weights[rows], place=(t, q))
            expected += part[0]
            slopes[rows] = part[1]
        assert value == pytest.approx(expected, rel=1e-8)
        exact = 1e-4 if case[0] == "interval" else 1e-9  # the twin of interval is a QP solver
        np.testing.assert_allclose(grad, slopes, rtol=exact, atol=exact * np.abs(slopes).max())


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_value_grad_and_grad_curv_agree_to_the_bit(case):
    data = data_of(GRADES)
    s = scores(data)
    bound = make(case).bind(data)
    value, grad = at(bound, s)
    assert bound.value(s) == value
    if make(case).traits.curvature:
        again, curv = np.full(len(s), np.nan), np.full(len(s), np.nan)
        assert bound.grad_curv(s, again, curv) == value
        np.testing.assert_array_equal(again, grad)
        assert (curv >= 0).all()


# --- derivatives -------------------------------------------------------------------------------


def central_differences(function, s, eps=1e-5):
    steps = eps * np.eye(len(s))
    return np.array([(function(s + e) - function(s - e)) / (2 * eps) for e in steps])


@having("integrable")
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_gradient_is_the_derivative_of_the_value(case, size):
    data = data_of(GRADES, sample_weight=np.linspace(0.5, 2.0, 17))
    bound = make(case).bind(data)
    s = scores(data, 2, size)
    slopes = central_differences(bound.value, s)
    np.testing.assert_allclose(at(bound, s)[1], slopes, rtol=1e-6, atol=1e-7)


EXACT = ("domination", "listmle", "listnet", "pair_exp", "ranknet", "squared", "xendcg")


@having("integrable", "curvature")
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_curvature_is_at_least_the_diagonal_of_the_hessian(case, size):
    data = data_of(GRADES, sample_weight=np.linspace(0.5, 2.0, 17))
    bound = make(case).bind(data)
    s = scores(data, 3, size)
    diagonal = np.diag(central_differences(lambda x: at(bound, x)[1], s))
    curv = np.empty(len(s))
    bound.grad_curv(s, np.empty(len(s)), curv)
    assert (curv >= diagonal - 1e-6 * np.abs(diagonal).max()).all()
    if case[0] in EXACT:
        np.testing.assert_allclose(curv, diagonal, rtol=1e-5, atol=1e-6 * diagonal.max())


@having("hess_vec")
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_hessian_products_are_differences_of_gradients(case, size):
    data = data_of(
        GRADES, sample_weight=np.linspace(0.5, 2.0, 17), query_weight=np.linspace(1, 2, 6)
    )
    bound = make(case).bind(data)
    s, v = scores(data, 4, size), scores(data, 5)
    eps = 1e-6
    expected = (at(bound, s + eps * v)[1] - at(bound, s - eps * v)[1]) / (2 * eps)
    out = np.full(len(s), np.nan)
    at(bound, s)
    bound.value(s + v)  # a look elsewhere does not move the Hessian
    bound.hess_vec(v, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_some_queries_alone_have_the_gradient_they_have_among_all(case):
    data = data_of(GRADES)
    bound = make(case).bind(data)
    s = scores(data)
    grad = at(bound, s)[1]
    part = np.full(len(s), np.nan)
    value = bound.grad_queries(3, 6, s, part)
    assert value == pytest.approx(bound.per_query[3:6].sum(), rel=1e-12)
    rows = slice(data.indptr[3], data.indptr[6])
    np.testing.assert_array_equal(part[rows], grad[rows])
    assert np.isnan(part[: rows.start]).all()


@having("convex")
def test_a_convex_loss_lies_below_its_chords_and_above_its_tangents(case):
    data = data_of(GRADES)
    bound = make(case).bind(data)
    for seed in range(30):
        a, b = scores(data, seed, 3.0), scores(data, 100 + seed, 3.0)
        (value_a, grad_a), value_b = at(bound, a), bound.value(b)
        slack = 1e-9 * (abs(value_a) + abs(value_b))
        assert bound.value((a + b) / 2) <= (value_a + value_b) / 2 + slack
        assert value_b >= value_a + grad_a @ (b - a) - slack


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_from_equal_scores_a_step_downhill_puts_better_grades_higher(case):
    data = data_of([2 * [0, 1, 1, 2, 0, 2, 1, 0]])
    grad = at(make(case).bind(data), np.zeros(16))[1]
    mean = [grad[data.y == grade].mean() for grade in range(3)]
    assert mean[0] > mean[2]


# --- symmetries --------------------------------------------------------------------------------


@having("shift_invariant")
def test_adding_a_constant_to_a_query_changes_nothing(case):
    data = data_of(GRADES)
    bound = make(case).bind(data)
    s = scores(data)
    value, grad = at(bound, s)
    for constant in (2.5, 1e4):
        moved, same = at(bound, s + constant * (1 + data.query_of_row()))
        assert moved == pytest.approx(value, rel=1e-8)
        np.testing.assert_allclose(same, grad, rtol=1e-7, atol=1e-7 * np.abs(grad).max())
    assert np.add.reduceat(grad, data.indptr[RANKED]) == pytest.approx([0, 0, 0], abs=1e-12)


@having(stochastic=False)
def test_the_order_of_documents_does_not_matter(case):
    data = data_of(GRADES, sample_weight=np.linspace(0.5, 2.0, 17))
    s = scores(data).round(1)
    value, grad = at(make(case).bind(data), s)
    rng = np.random.default_rng(5)
    order = np.concatenate([rng.permutation(np.arange(*span)) for span in spans(data)])
    shuffled = RankingData(
        data.X, data.y[order], data.indptr, data.qid, sample_weight=data.sample_weight[order]
    )
    again, moved = at(make(case).bind(shuffled), s[order])
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(moved, grad[order], rtol=1e-9, atol=1e-12)


def spans(data):
    return list(zip(data.indptr[:-1], data.indptr[1:], strict=True))


@having(stochastic=False)
def test_documents_equal_in_score_and_grade_get_equal_gradients(case):
    data = data_of([[2, 0, 1, 1, 0, 0, 2, 1], [1, 1, 0, 2]])
    bound = make(case).bind(data)
    for s in (np.zeros(12), np.array([1, 0, 1, 1, 0, 2, 1, 1, 3, 3, 3, 0.0])):
        _, grad, curv = with_curv(case, bound, s)
        kind = np.stack([data.query_of_row(), data.y, s], axis=1)
        for twins in ((kind == one).all(axis=1) for one in kind):
            assert np.ptp(grad[twins]) == pytest.approx(0, abs=1e-12)
            assert np.ptp(curv[twins]) == pytest.approx(0, abs=1e-12)


# --- queries and weights -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if alone(make(case)) and not make(case).traits.stochastic],
    ids=case_name,
)
def test_the_loss_is_the_sum_over_queries(case):
    data = data_of(GRADES)
    s = scores(data)
    value, grad = at(make(case).bind(data), s)
    parts = [
        at(make(case).bind(data.select([q])), s[slice(*span)])
        for q, span in enumerate(spans(data))
        if span[0] < span[1]
    ]
    assert value == pytest.approx(sum(part[0] for part in parts), rel=1e-12)
    np.testing.assert_allclose(grad, np.concatenate([part[1] for part in parts]), rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_queries_without_an_order_contribute_exactly_nothing(case):
    data = data_of([[1, 1, 1], [2], [], [0, 0]])
    bound = make(case).bind(data)
    assert bound.value(scores(data)) == 0.0
    value, grad, curv = with_curv(case, bound, scores(data))
    assert value == 0.0
    assert not grad.any()
    assert not curv.any()


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_last_query_without_documents_changes_nothing(case):
    short, long = data_of([[2, 0, 1], [1, 0]]), data_of([[2, 0, 1], [1, 0], [], []])
    s = scores(short)
    value, grad, curv = with_curv(case, make(case).bind(short), s)
    again, slopes, bends = with_curv(case, make(case).bind(long), s)
    assert again == value
    np.testing.assert_array_equal(slopes, grad)
    np.testing.assert_array_equal(bends, curv)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_query_weights_multiply(case):
    weight = np.array([2.0, 1.0, 1.0, 0.5, 3.0, 0.0])
    s = scores(data_of(GRADES))
    plain = make(case).bind(data_of(GRADES))
    weighted = make(case).bind(data_of(GRADES, query_weight=weight))
    grad, by_weight = at(plain, s)[1], at(weighted, s)[1]
    per_row = np.repeat(weight, [len(query) for query in GRADES])
    np.testing.assert_allclose(by_weight, per_row * grad, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(weighted.per_query, weight * plain.per_query, rtol=1e-12)


BY_RANK = (
    "approx_ndcg", "lambdarank", "neural_ndcg", "position_svm", "precision_svm", "softrank",
)  # fmt: skip


def repeats(name, made):
    """Whether a weight counts as copies: not where ranks, noise or a series by document come in."""
    return (
        name not in BY_RANK
        and not made.traits.stochastic
        and getattr(made, "target", "") != "gain"
        and getattr(made, "newton_terms", 1) == 1
        and getattr(made, "k", 1) == 1
    )


@pytest.mark.parametrize(
    "case", [case for case in CASES if repeats(case[0], make(case))], ids=case_name
)
def test_a_weight_of_two_is_a_document_twice_and_of_zero_none(case):
    weight = np.array([1, 2, 3, 1, 0, 2, 1, 0, 1, 1, 2, 3, 1, 0, 2, 1, 2])
    data = data_of(GRADES, sample_weight=weight)
    query = np.repeat(data.query_of_row(), weight)
    copies = RankingData.from_arrays(
        np.zeros((weight.sum(), 1)), np.repeat(data.y, weight), qid=query
    )
    s = scores(data)
    value, grad = at(make(case).bind(data), s)
    again, of_copies = at(make(case).bind(copies), np.repeat(s, weight))
    assert value == pytest.approx(again, rel=1e-10)
    added = np.zeros(len(s))
    np.add.at(added, np.repeat(np.arange(len(s)), weight), of_copies)
    np.testing.assert_allclose(grad, added, rtol=1e-8, atol=1e-9)


# --- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_scores_of_ten_thousand_stay_finite(case):
    data = data_of([[2, 0, 1, 1, 0, 3, 2, 2, 1, 0, 0, 4], [1, 0]])
    rng = np.random.default_rng(6)
    for seed in range(5):
        s = 1e4 * rng.choice([-1, 0, 1], size=14) + scores(data, seed)
        value, grad, curv = with_curv(case, make(case).bind(data), s)
        assert np.isfinite(value)
        assert np.isfinite(grad).all()
        assert np.isfinite(curv).all()


@pytest.fixture
def many(monkeypatch):
    """Queries that are cut into ten ranges, so that five threads have some each."""
    monkeypatch.setattr(parallel, "_DOCUMENTS_PER_RANGE", 900)
    rng = np.random.default_rng(7)
    sizes = rng.integers(0, 300, 60)
    y = rng.integers(0, 5, sizes.sum())
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_one_two_and_five_threads_give_the_same_bits(case, many):
    s = scores(many).round(2)

    def bits(n_jobs):
        value, grad, curv = with_curv(case, make(case).bind(many, n_jobs=n_jobs), s)
        return np.float64(value).tobytes() + grad.tobytes() + curv.tobytes()

    assert bits(1) == bits(2) == bits(5)


@having("hess_vec")
def test_hessian_products_have_the_same_bits_for_one_two_and_five_threads(case, many):
    s, v = scores(many).round(2), scores(many, 1)

    def bits(n_jobs):
        bound, out = make(case).bind(many, n_jobs=n_jobs), np.empty(len(s))
        at(bound, s)
        bound.hess_vec(v, out)
        return out.tobytes()

    assert bits(1) == bits(2) == bits(5)


@having("hess_vec", "convex")
def test_hessian_products_are_symmetric_without_negative_curvature_and_finite(case):
    data = data_of(GRADES, sample_weight=[1, 0, 2, 1, 0, 2, 1, 0, 1, 1, 2, 0, 1, 0, 2, 1, 2])
    bound = make(case).bind(data)
    rng = np.random.default_rng(8)
    for far in (0.0, 1e4):
        at(bound, scores(data) + far * rng.choice([-1, 0, 1], size=17))
        H = np.full((17, 17), np.nan)
        for row, v in zip(H, np.eye(17), strict=True):
            bound.hess_vec(v, row)
        size = np.abs(H).max()
        np.testing.assert_allclose(H, H.T, atol=1e-9 * size)
        assert np.linalg.eigvalsh((H + H.T) / 2).min() >= -1e-9 * size


# --- names -------------------------------------------------------------------------------------


def test_every_registered_loss_has_a_slow_twin():
    assert TWINS.keys() == registry.LOSSES.keys()


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_loss_is_a_frozen_value(case):
    assert make(case) == make(case)
    assert hash(make(case)) == hash(make(case))
    field = fields(make(case))[0].name
    with pytest.raises(AttributeError):
        setattr(make(case), field, None)


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="there is no loss 'lambdrank'; did you mean lambdarank"):
        loss("lambdrank")
    with pytest.raises(
        UsageError, match="loss 'ranknet' has no parameter 'sigmoid'; did you mean sigma"
    ):
        loss("ranknet", sigmoid=2.0)


WRONG = [
    ("boltzrank", {"samples": 2.5}, "samples must be a whole number, 2 or more, not 2.5"),
    ("domination", {"tiers": (1.0, np.nan)}, "tiers must be rising thresholds"),
    ("fidelity", {"confidence": "sure"}, "confidence must be above 0.5 and at most 1, not sure"),
    ("gbrank", {"lambda1": np.inf}, "lambda1 must be 0 or more and finite, not inf"),
    ("interval", {"calibration": np.inf}, "calibration must be 0 or more and finite, not inf"),
    ("interval", {"lambda1": "hard"}, "lambda1 must be 0 or more, not hard"),
    ("lambdarank", {"sigma": np.inf}, "sigma must be above 0 and finite, not inf"),
    ("lambdarank", {"truncation": 2.5}, "truncation must be a whole number, 1 or more, not 2.5"),
    ("listmle", {"calibration": np.inf}, "calibration must be 0 or more and finite, not inf"),
    ("listnet", {"k": 1.5}, "k must be a whole number, 1 or more, not 1.5"),
    ("neural_ndcg", {"sinkhorn": 1.5}, "sinkhorn must be a whole number, 0 or more, not 1.5"),
    ("position_svm", {"per_group": 1.5}, "per_group must be a whole number, 1 or more, not 1.5"),
    ("precision_svm", {"n": 2.5}, "n must be a whole number, 1 or more, not 2.5"),
    ("precision_svm", {"min_grade": np.nan}, "min_grade must be above 0, not nan"),
    ("ranknet", {"sigma": "steep"}, "sigma must be above 0, not steep"),
    ("softrank", {"nodes": 2.5}, "nodes must be a whole number, 1 or more, not 2.5"),
    ("xendcg", {"newton_terms": 1.5}, "newton_terms must be a whole number, 1 or more, not 1.5"),
]


@pytest.mark.parametrize(("name", "params", "sentence"), WRONG)
def test_a_parameter_that_makes_no_sense_is_refused(name, params, sentence):
    with pytest.raises(UsageError, match=sentence):
        loss(name, **params).bind(data_of(GRADES))


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ("gains", "targets must be linear, gain or a number for each grade, not 'gains'"),
        (("low", "high"), "targets must be linear, gain or a number for each grade"),
        ((0.0, np.nan, 2.0), "targets must rise from grade to grade"),
        ((0.0, 1.0, np.inf), "targets must rise from grade to grade"),
        ((0.0, 1.0, 1.0), "targets must rise from grade to grade"),
        (3.0, "targets must rise from grade to grade"),
    ],
)
def test_targets_that_are_none_are_refused(targets, sentence):
    with pytest.raises(UsageError, match=sentence):
        loss("squared", targets=targets).bind(data_of([[0, 1, 2]]))


def test_targets_are_needed_for_every_grade_there_is():
    with pytest.raises(DataError, match="value for grades 0 to 1; the data has grade 2"):
        loss("squared", targets=(0.0, 1.0)).bind(data_of([[0, 1, 2]]))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("approx_ndcg", {}),
        ("interval", {}),
        ("lambdarank", {}),
        ("listnet", {"target": "gain"}),
        ("ndcg_glm", {}),
        ("pair_hinge", {"pairs": "ir"}),
        ("position_svm", {"metric": "wta(modified=true)"}),
        ("squared", {"targets": "gain"}),
        ("xendcg", {}),
    ],
)
def test_a_grade_whose_gain_is_beyond_all_numbers_is_refused(name, params):
    with pytest.raises(DataError, match=r"grade 2000 has a gain of 2\^2000 - 1, beyond all"):
        loss(name, **params).bind(data_of([[2000, 0, 1]]))


def test_a_list_of_targets_is_taken_as_a_tuple():
    assert loss("squared", targets=[0.0, 1.0]) == loss("squared", targets=(0.0, 1.0))

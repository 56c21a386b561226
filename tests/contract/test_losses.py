"""What every loss must keep; one added to the registry is tested without a line here."""

from dataclasses import fields

import numpy as np
import pytest
from cases import case
from reference.losses import TWINS

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses import loss
from rankwright.testing import loss_checks
from rankwright.testing.contract import graded as data_of
from rankwright.testing.losses import (
    GRADES,
    RANKED,
    central_differences,
    with_curvature,
)
from rankwright.testing.losses import random_scores as scores
from rankwright.testing.losses import value_and_grad as at

VARIANTS = {
    "all_threshold": [{"margin": 0.4}],
    "approx_ndcg": [
        {"temperature": 1.5},
        {"metric": "ndcg@3", "temperature": 0.7},
        {"metric": "map", "temperature": 0.7},
        {"metric": "map@3", "temperature": 0.7},
        {"metric": "mrr", "temperature": 0.7},
        {"metric": "p@3", "temperature": 0.7},
        {"metric": "recall@2", "temperature": 0.7},
    ],
    "boltzrank": [
        {"metric": "ndcg@2", "divergence": 0.0},
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
        {"weights": "ndcg_loss1", "normalize": False},
        {"weights": "ndcg_loss1", "metric": "dcg", "truncation": 2},
        {"weights": "ndcg_loss2", "truncation": 2},
        {"weights": "ndcg_loss2", "truncation": None, "normalize": False},
        {"weights": "ndcg_loss2++", "mu": 3.0},
    ],
    "listmle": [
        {"calibration": 0.5, "targets": (0.0, 1.0, 2.5, 3.0, 7.0)},
        {"position_aware": True, "calibration": 0.1},
    ],
    "listnet": [{"target": "gain"}, {"k": 2}, {"k": 3, "samples": 5, "random_state": 2}],
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
        {"divergence": "kl", "domain": "cone", "margin": "large", "size": 0.3, "C_r": 0.2},
    ],
    "soft_zero_one": [{"sigma": 0.5, "normalize": True}],
    "softrank": [
        {"metric": "ndcg@4", "sigma": 0.4},
        {"metric": "dcg@2"},
        {"metric": "p@3"},
        {"form": "exact", "metric": "ndcg@3", "nodes": 6},
    ],
    "squared": [{"targets": "gain"}],
    "stochastic": [
        {"loss": "softmax", "samples": 2, "scale": 0.5, "random_state": 3},
        {"loss": loss("xendcg", newton_terms=3), "samples": 1},
    ],
    "xendcg": [{"sampled": False}, {"newton_terms": 3}, {"sampled": False, "newton_terms": 3}],
}
each_loss = pytest.mark.parametrize("name", registry.LOSSES)


def variants(name):
    """Return a loss with its defaults, and with other parameters that take other paths."""
    return [loss(name, **params) for params in [{}, *VARIANTS.get(name, [])]]


def alone(made):
    """Whether a query's loss is its own: IR-SVM weighs it against the query of most pairs."""
    return getattr(made, "pairs", "") != "ir"


@each_loss
def test_every_loss_keeps_what_losses_promise(name):
    for made in variants(name):
        for check in loss_checks(made):
            with case(made, check.__name__):
                check(made)


# --- values ------------------------------------------------------------------------------------


@each_loss
def test_value_and_gradient_are_those_of_the_slow_twin(name):
    for made in filter(alone, variants(name)):
        for decimals in (9, 0):  # distinct scores, and tied ones
            with case(made, f"{decimals} decimals"):
                check_against_twin(name, made, decimals)


def check_against_twin(name, made, decimals):
    rng = np.random.default_rng(1)
    weights = rng.choice([0.5, 1.0, 2.0], size=17)
    data = data_of(GRADES, sample_weight=weights)
    bound = made.bind(data)
    for t in range(2):
        if hasattr(bound, "set_iteration"):
            bound.set_iteration(t)
        s = scores(data, t, 1.5).round(decimals)
        value, grad = at(bound, s)
        expected, gradients = 0.0, np.zeros(len(s))
        for q in RANKED:
            rows = slice(data.indptr[q], data.indptr[q + 1])
            part = TWINS[name](made, s[rows], data.y[rows], weights[rows], place=(t, q))
            expected += part[0]
            gradients[rows] = part[1]
        assert value == pytest.approx(expected, rel=1e-8)
        exact = 1e-4 if name == "interval" else 1e-9  # the twin of interval is a QP solver
        np.testing.assert_allclose(
            grad, gradients, rtol=exact, atol=exact * np.abs(gradients).max()
        )


@pytest.mark.parametrize(
    "name", ["fidelity", "pair_exp", "pair_hinge", "ranknet", "rocarea_svm", "soft_zero_one"]
)
def test_pairs_of_estimated_relevance_count_by_their_difference(name):
    """Of grades 0, 0.3, 0.6, ... a pair counts 0.3, 0.6 or 0.9, and 1 from there on."""
    weight = np.linspace(0.5, 2.0, 17)
    whole = data_of(GRADES, sample_weight=weight)
    data = whole._replace(y=0.3 * whole.y)
    s = scores(data, 0, 1.0)
    for made in filter(alone, variants(name)):
        with case(made):
            bound = made.bind(data)
            value, grad = at(bound, s)
            parts = [slice(data.indptr[q], data.indptr[q + 1]) for q in RANKED]
            twins = [TWINS[name](made, s[rows], data.y[rows], weight[rows]) for rows in parts]
            assert value == pytest.approx(sum(part[0] for part in twins), rel=1e-9)
            for rows, part in zip(parts, twins, strict=True):
                np.testing.assert_allclose(grad[rows], part[1], rtol=1e-9, atol=1e-12)
            if made.traits.smooth:
                v, out = s[::-1].copy(), np.empty(len(s))
                at(bound, s)
                bound.hess_vec(v, out)
                turned = at(bound, s + 1e-6 * v)[1] - at(bound, s - 1e-6 * v)[1]
                np.testing.assert_allclose(out, turned / 2e-6, rtol=1e-4, atol=1e-6)


EXACT = (
    "domination", "listmle", "listnet", "pair_exp", "ranknet", "sigmoid_cross_entropy", "softmax",
    "squared", "unique_softmax", "xendcg",
)  # fmt: skip


# --- derivatives -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
def test_where_it_is_exact_the_curvature_is_the_diagonal_of_the_hessian(name):
    data = data_of(GRADES, sample_weight=np.linspace(0.5, 2.0, 17))
    integrable = [made for made in variants(name) if made.traits.integrable]
    assert integrable
    for made in integrable:
        bound = made.bind(data)
        for size in (0.3, 3.0):
            with case(made, size):
                s = scores(data, 3, size)
                diagonal = np.diag(central_differences(lambda x, b=bound: at(b, x)[1], s))
                curv = with_curvature(bound, s)[2]
                np.testing.assert_allclose(curv, diagonal, rtol=1e-5, atol=1e-6 * diagonal.max())


BY_RANK = (
    "approx_ndcg", "lambdarank", "neural_ndcg", "position_svm", "precision_svm", "softrank",
)  # fmt: skip


# --- weights ------------------------------------------------------------------------------------


def repeats(name, made):
    """Whether a weight counts as copies: not where ranks, noise or a series by document come in."""
    return (
        name not in BY_RANK
        and not made.traits.stochastic
        and getattr(made, "target", "") != "gain"
        and getattr(made, "newton_terms", 1) == 1
        and getattr(made, "k", 1) == 1
        and not getattr(made, "position_aware", False)
    )


@pytest.mark.parametrize(
    "name", [name for name in registry.LOSSES if any(repeats(name, one) for one in variants(name))]
)
def test_a_weight_of_two_is_a_document_twice_and_of_zero_none(name):
    weight = np.array([1, 2, 3, 1, 0, 2, 1, 0, 1, 1, 2, 3, 1, 0, 2, 1, 2])
    data = data_of(GRADES, sample_weight=weight)
    query = np.repeat(data.query_of_row(), weight)
    copies = RankingData.from_arrays(
        np.zeros((weight.sum(), 1)), np.repeat(data.y, weight), qid=query
    )
    s = scores(data)
    for made in variants(name):
        if repeats(name, made):
            with case(made):
                value, grad = at(made.bind(data), s)
                again, of_copies = at(made.bind(copies), np.repeat(s, weight))
                assert value == pytest.approx(again, rel=1e-10)
                added = np.zeros(len(s))
                np.add.at(added, np.repeat(np.arange(len(s)), weight), of_copies)
                np.testing.assert_allclose(grad, added, rtol=1e-8, atol=1e-9)


# --- names -------------------------------------------------------------------------------------


def test_every_registered_loss_has_a_slow_twin():
    assert TWINS.keys() == registry.LOSSES.keys()


@each_loss
def test_a_loss_is_a_frozen_value(name):
    for made, again in zip(variants(name), variants(name), strict=True):
        assert made == again
        assert hash(made) == hash(again)
        for field in fields(made):
            with pytest.raises(AttributeError):
                setattr(made, field.name, None)


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
    ("ranknet", {"sigma": "steep"}, "sigma must be above 0, not 'steep'"),
    ("softrank", {"nodes": 2.5}, "nodes must be a whole number, 1 or more, not 2.5"),
    ("xendcg", {"newton_terms": 1.5}, "newton_terms must be a whole number, 1 or more, not 1.5"),
]


def test_a_parameter_that_makes_no_sense_is_refused():
    for name, params, sentence in WRONG:
        with case(name, params), pytest.raises(UsageError, match=sentence):
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
    with pytest.raises(DataError, match=r"grade 2000 has a gain of 2\^2000 - 1, which overflows"):
        loss(name, **params).bind(data_of([[2000, 0, 1]]))


def test_a_list_of_targets_is_taken_as_a_tuple():
    assert loss("squared", targets=[0.0, 1.0]) == loss("squared", targets=(0.0, 1.0))

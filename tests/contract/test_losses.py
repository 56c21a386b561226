"""What every loss must keep; one added to the registry is tested without a line here."""

from dataclasses import fields

import numpy as np
import pytest
from reference.losses import TWINS

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import ContractError, DataError, UsageError
from rankwright.losses import Traits, from_function, loss
from rankwright.testing import check_loss, loss_checks
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


def case_name(case):
    return "-".join([case[0], *(f"{key}={value}" for key, value in case[1].items())])


def make(case):
    return loss(case[0], **case[1])


def alone(made):
    """Whether a query's loss is its own: IR-SVM weighs it against the query of most pairs."""
    return getattr(made, "pairs", "") != "ir"


def properties():
    return [
        pytest.param(case, check, id=f"{check.__name__.removeprefix('check_')}-{case_name(case)}")
        for case in CASES
        for check in loss_checks(make(case))
    ]


@pytest.mark.parametrize(("case", "check"), properties())
def test_every_loss_keeps_what_losses_promise(case, check):
    check(make(case))


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
        expected, gradients = 0.0, np.zeros(len(s))
        for q in RANKED:
            rows = slice(data.indptr[q], data.indptr[q + 1])
            part = TWINS[case[0]](made, s[rows], data.y[rows], weights[rows], place=(t, q))
            expected += part[0]
            gradients[rows] = part[1]
        assert value == pytest.approx(expected, rel=1e-8)
        exact = 1e-4 if case[0] == "interval" else 1e-9  # the twin of interval is a QP solver
        np.testing.assert_allclose(
            grad, gradients, rtol=exact, atol=exact * np.abs(gradients).max()
        )


# --- derivatives -------------------------------------------------------------------------------


EXACT = ("domination", "listmle", "listnet", "pair_exp", "ranknet", "squared", "xendcg")


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case[0] in EXACT and make(case).traits.integrable],
    ids=case_name,
)
@pytest.mark.parametrize("size", [0.3, 3.0])
def test_where_it_is_exact_the_curvature_is_the_diagonal_of_the_hessian(case, size):
    data = data_of(GRADES, sample_weight=np.linspace(0.5, 2.0, 17))
    bound = make(case).bind(data)
    s = scores(data, 3, size)
    diagonal = np.diag(central_differences(lambda x: at(bound, x)[1], s))
    curv = with_curvature(make(case), bound, s)[2]
    np.testing.assert_allclose(curv, diagonal, rtol=1e-5, atol=1e-6 * diagonal.max())


# --- weights ------------------------------------------------------------------------------------


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


# --- check_loss tells -------------------------------------------------------------------------


def squared(scores, grades):
    return 0.5 * float(((scores - grades) ** 2).sum()), scores - grades


def test_check_loss_takes_an_object_a_function_and_a_name():
    check_loss(loss("listnet"))
    check_loss("squared")
    check_loss(from_function(squared, convex=True))


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            from_function(lambda s, y: (squared(s, y)[0], 2 * (s - y)), name="double"),
            "loss 'double' breaks the contract 'The gradient is the derivative of the value': the "
            r"gradient is .* at row 0, and the finite difference of the value is",
        ),
        (
            from_function(lambda s, y: (-squared(s, y)[0], y - s), convex=True),
            "A convex loss lies below its chords and above its tangents': between two points",
        ),
        (from_function(squared, shift_invariant=True), "Adding a constant to the scores of a"),
        (
            from_function(squared, curvature=0.5),
            "it is 0.5, and finite differences give 1, so .*third",
        ),
        (
            from_function(lambda s, y: (0.5 * (s**2).sum(), s), name="blind"),
            "loss 'blind' breaks the contract 'From equal scores a step down the gradient puts "
            "better grades higher': the mean gradient is 0 at grade 0 and 0 at grade 2",
        ),
        (
            from_function(
                lambda s, y: ((np.exp(s) - y * s).sum(), np.exp(s) - y, np.exp(s)), name="exp"
            ),
            "'Scores of ten thousand give finite values, gradients and curvatures': (Runtime|Data)",
        ),
        (
            from_function(
                lambda s, y: (squared(s, y)[0] + s[0], s - y + np.eye(len(s))[0]), name="first"
            ),
            "loss 'first' breaks the contract 'The order of documents within a query changes",
        ),
    ],
)
def test_check_loss_names_the_property_that_fails(made, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_loss(made)


def test_check_loss_misses_what_a_trait_claims():
    class Claims:
        traits = Traits(family="pointwise", hess_vec=True)

        def bind(self, data, *, n_jobs=None):
            return from_function(squared).bind(data)

    with pytest.raises(ContractError, match=r"traits.hess_vec is true, but the bound loss has no"):
        check_loss(Claims())
    with pytest.raises(AssertionError, match="it has no method bind"):
        check_loss(object())


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
    with pytest.raises(DataError, match=r"grade 2000 has a gain of 2\^2000 - 1, which overflows"):
        loss(name, **params).bind(data_of([[2000, 0, 1]]))


def test_a_list_of_targets_is_taken_as_a_tuple():
    assert loss("squared", targets=[0.0, 1.0]) == loss("squared", targets=(0.0, 1.0))

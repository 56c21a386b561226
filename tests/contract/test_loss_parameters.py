"""Every loss under every pair of its parameters: what holds for one value must hold for two.

`GRIDS` has values other than the default for each parameter, once. A test walks all pairs of them
for its loss, on top of each of its `BASES`, and reports every combination that breaks a rule.
A combination that a loss refuses with a sentence when bound is as good as one that works.
"""

from dataclasses import fields
from itertools import combinations

import numpy as np
import pytest
from reference.losses import TWINS

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses import loss


def late(grades):
    """Cost of each document at each rank: as if good documents were best at the second."""
    return np.abs(np.arange(len(grades)) - 1.0) * grades[:, None] / 4


TARGETS = ["gain", (0.0, 1.5, 2.0, 4.0)]
GRIDS = {
    "all_threshold": {"margin": [0.4]},
    "approx_ndcg": {
        "temperature": [1.5],
        "metric": ["ndcg@2", "dcg", "map", "mrr", "p@2", "recall@2"],
    },
    "boltzrank": {
        "metric": ["ndcg@2", "dcg", "p@2"],
        "divergence": [0.0, 2.0],
        "pair_potential": [0.7],
        "sharpness": [2.0],
        "samples": [7],
        "random_state": [3],
    },
    "domination": {
        "margin": ["linear", "gain", (0.0, 1.5, 2.0, 4.0)],
        "margin_scale": [0.3],
        "tiers": [(1.0,), (1.0, 3.0)],
    },
    "dual_softmax": {"ridge": [0.5]},
    "fidelity": {"confidence": [0.9], "normalize": [True]},
    "gbrank": {"lambda1": [0.3], "calibration": [0.2], "targets": TARGETS},
    "interval": {
        "lambda1": [0.0, np.inf],
        "lambda2": [0.0, np.inf],
        "targets": ["linear"],
        "calibration": [0.1],
        "scale_by_size": [True],
        "qp_solver": ["barrier", "hard"],
        "penalty": ["huber", "pseudo_huber"],
        "knee": [0.3],
    },
    "lambdarank": {
        "metric": ["ndcg@2", "dcg", "p@2", "map", "mrr", "err", "ndcg@3"],
        "truncation": [None, 1, 2],
        "sigma": [0.7],
        "normalize": [False],
        "label_gain": [(0.0, 1.0, 2.5, 7.0, 12.0)],
        "weights": ["ndcg_loss1", "ndcg_loss2", "ndcg_loss2++"],
        "mu": [3.0],
    },
    "listmle": {"calibration": [0.5], "targets": TARGETS, "position_aware": [True]},
    "listnet": {"target": ["gain"], "k": [2, 3], "samples": [5], "random_state": [2]},
    "ndcg_glm": {"divergence": ["kl"]},
    "neural_ndcg": {
        "metric": ["ndcg@2", "dcg", "p@2"],
        "temperature": [0.3, 3.0],
        "sinkhorn": [0, 1],
    },
    "pair_exp": {"normalize": [True]},
    "pair_hinge": {"form": ["hinge"], "margin": [0.4], "pairs": ["query", "ir"]},
    "position_svm": {
        "metric": ["ndcg@3", "dcg", "wta(modified=true)", "mrr@3", "eru", "p@2"],
        "decay": [0.5, "log", "loglog", "metric"],
        "ties": ["score", "file"],
        "per_group": [1, 2],
        "cost": [late],
    },
    "precision_svm": {"n": [2], "min_grade": [2.0]},
    "query_offset": {"targets": TARGETS},
    "rank_cosine": {"targets": TARGETS, "centred": [True], "softening": [1e-6, 0.3]},
    "ranknet": {"sigma": [0.5], "normalize": [True]},
    "retarget": {
        "divergence": ["kl"],
        "domain": ["cone"],
        "margin": ["none", "constant", "sqrt", "power", "large"],
        "size": [0.3],
        "power": [2.0],
        "kl_margin": ["additive", "surrogate"],
        "targets": TARGETS,
        "within_grade": [True],
        "floor": [0.02],
        "intercept": [False, True],
        "C_r": [0.7],
        "C_w": [0.2],
        "query_weight_exponent": [1.0],
    },
    "rocarea_svm": {"margin": [0.4]},
    "sigmoid_cross_entropy": {},
    "soft_zero_one": {"sigma": [0.5], "normalize": [True]},
    "softmax": {},
    "softrank": {
        "metric": ["ndcg@2", "dcg", "p@2"],
        "sigma": [0.4],
        "form": ["exact"],
        "nodes": [9],
    },
    "squared": {"targets": TARGETS},
    "stochastic": {"loss": ["softmax"], "samples": [2], "scale": [0.5], "random_state": [2]},
    "unique_softmax": {},
    "xendcg": {"sampled": [False], "newton_terms": [3], "random_state": [2]},
}
KL = {"divergence": "kl", "size": 0.02}
BASES = {  # a mode of a loss that decides what its other parameters mean
    "listnet": [{}, {"k": 2, "samples": 5}],
    "retarget": [
        {},
        KL,
        {"divergence": "kl", "domain": "cone", "floor": 0.3},
        {**KL, "kl_margin": "additive"},
    ],
}


def pairs_of(name):
    """All combinations of a base, and of up to two values from the grids."""
    values = [{key: value} for key, grid in GRIDS[name].items() for value in grid]
    chosen = [{}, *values, *(a | b for a, b in combinations(values, 2) if a.keys() != b.keys())]
    found = []
    for params in (base | own for base in BASES.get(name, [{}]) for own in chosen):
        without_gain = params.get("metric") in ("p@2", "map", "mrr", "err")
        if params not in found and not (without_gain and "label_gain" in params):
            found.append(params)
    return found


# --- data ------------------------------------------------------------------------------------

GRADES = [[2, 0, 1, 1, 0], [1, 1], [3, 1, 2, 0], [0, 1]]
RANKED = [0, 2, 3]  # the queries that hold an order
Y = np.array([grade for query in GRADES for grade in query], float)
QID = np.repeat(np.arange(4), [len(query) for query in GRADES])
WEIGHT = np.array([1, 0.5, 2, 1, 2, 1, 1, 2, 0.5, 1, 1, 1.5, 1])
ABSENT = np.array([0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0], bool)  # the best document too
GROUP = np.array([0, 0, 1, 1, 2, 0, 0, 0, 0, 1, 1, 0, 1])
SCORES = 1.2 * np.random.default_rng(3).normal(size=len(Y))


def data_of(rows=slice(None), sample_weight=WEIGHT, query_weight=(1.0, 1.0, 2.0, 0.5)):
    y = Y[rows]
    return RankingData.from_arrays(
        np.zeros((len(y), 1)),
        y,
        qid=QID[rows],
        sample_weight=None if sample_weight is None else sample_weight[rows],
        query_weight=query_weight,
        group=GROUP[rows],
    )


def at(bound, s):
    grad = np.full(len(s), np.nan)
    return bound.grad(s, grad), grad


def differences(function, s, eps):
    return np.array([(function(s + e) - function(s - e)) / (2 * eps) for e in eps * np.eye(len(s))])


def close(actual, expected, rtol):
    size = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * size + 1e-9)


# --- rules -----------------------------------------------------------------------------------


def value_and_gradient_agree(made, bound):
    value, grad = at(bound, SCORES)
    assert bound.value(SCORES) == value
    if made.traits.integrable:
        close(grad, differences(bound.value, SCORES, 1e-5), 1e-6)


def curvature_bounds_the_diagonal(made, bound):
    if made.traits.integrable and made.traits.smooth:
        curv, grad = np.empty(len(Y)), np.empty(len(Y))
        diagonal = np.diag(differences(lambda s: at(bound, s)[1], SCORES, 1e-5))
        bound.grad_curv(SCORES, grad, curv)
        assert (curv >= diagonal - 1e-6 * np.abs(diagonal).max() - 1e-9).all()


def hessian_products_are_differences_of_gradients(made, bound):
    if made.traits.integrable and made.traits.smooth:
        v, out, eps = SCORES[::-1].copy(), np.full(len(Y), np.nan), 1e-6
        expected = at(bound, SCORES + eps * v)[1] - at(bound, SCORES - eps * v)[1]
        at(bound, SCORES)
        bound.hess_vec(v, out)
        close(out, expected / (2 * eps), 1e-5)


def the_slow_twin_agrees(made, bound):
    if not has_twin(made):
        return
    value, grad = at(bound, SCORES)
    query_weight = data_of().query_weight
    total, gradients = 0.0, np.zeros(len(Y))
    for q in RANKED:
        rows = np.flatnonzero(q == QID)
        twin = TWINS[name_of(made)]
        part = twin(made, SCORES[rows], Y[rows], WEIGHT[rows], place=(0, q))
        total += query_weight[q] * part[0]
        gradients[rows] = query_weight[q] * part[1]
    assert value == pytest.approx(total, rel=1e-7, abs=1e-9)
    close(grad, gradients, 1e-4 if name_of(made) == "interval" else 1e-7)


def has_twin(made):
    if name_of(made) == "interval":  # cvxpy: the squared penalty; gradients of others are checked
        return made.penalty == "squared" and made.qp_solver == "newton"
    if name_of(made) == "position_svm":
        return made.per_group is None and made.cost is None and made.decay != "metric"
    return getattr(made, "pairs", "") != "ir"  # weighs a query against that of most pairs


def a_convex_loss_lies_above_its_tangents(made, bound):
    if made.traits.convex:
        rng = np.random.default_rng(5)
        for _ in range(8):
            a, b = 2 * rng.normal(size=(2, len(Y)))
            (value, grad), other = at(bound, a), bound.value(b)
            assert other >= value + grad @ (b - a) - 1e-9 * (1 + abs(value) + abs(other))


def a_constant_for_a_query_changes_nothing(made, bound):
    if made.traits.shift_invariant:
        value, grad = at(bound, SCORES)
        moved, same = at(bound, SCORES + 2.5 * (1 + QID))
        assert moved == pytest.approx(value, rel=1e-8, abs=1e-10)
        close(same, grad, 1e-7)


def the_order_of_documents_does_not_matter(made, bound):
    if not made.traits.stochastic and getattr(made, "ties", "") != "file":
        order = np.lexsort((np.random.default_rng(5).random(len(Y)), QID))
        value, grad = at(bound, SCORES)
        again, moved = at(made.bind(data_of(order)), SCORES[order])
        assert again == pytest.approx(value, rel=1e-9, abs=1e-12)
        close(moved, grad[order], 1e-8)


def documents_of_weight_0_are_as_good_as_absent(made, bound):
    weight = np.where(ABSENT, 0.0, WEIGHT)
    held, short = made.bind(data_of(sample_weight=weight)), made.bind(data_of(~ABSENT))
    for s in (SCORES, np.where(ABSENT, 50.0, SCORES), SCORES.round()):
        value, grad = at(held, s)
        again, gradients = at(short, s[~ABSENT])
        assert value == pytest.approx(again, rel=1e-9, abs=1e-12)
        close(grad[~ABSENT], gradients, 1e-8)
        assert not grad[ABSENT].any()
        curv, bends = np.full(len(Y), np.nan), np.full((~ABSENT).sum(), np.nan)
        held.grad_curv(s, grad, curv)
        short.grad_curv(s[~ABSENT], gradients, bends)
        close(curv[~ABSENT], bends, 1e-8)
        assert not curv[ABSENT].any()
        if made.hessian is not None:
            out, turned = np.full(len(Y), np.nan), np.full((~ABSENT).sum(), np.nan)
            held.hess_vec(SCORES, out)
            short.hess_vec(SCORES[~ABSENT], turned)
            close(out[~ABSENT], turned, 1e-8)
            assert not out[ABSENT].any()


RULES = [
    value_and_gradient_agree,
    curvature_bounds_the_diagonal,
    hessian_products_are_differences_of_gradients,
    the_slow_twin_agrees,
    a_convex_loss_lies_above_its_tangents,
    a_constant_for_a_query_changes_nothing,
    the_order_of_documents_does_not_matter,
    documents_of_weight_0_are_as_good_as_absent,
]


def name_of(made):
    kind = f":{type(made).__name__}"
    return next(name for name, part in registry.LOSSES.items() if part.endswith(kind))


# --- tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.LOSSES)
def test_the_grids_name_every_parameter_and_no_default(name):
    defaults = {field.name: field.default for field in fields(registry.resolve("losses", name))}
    assert GRIDS[name].keys() == defaults.keys()
    for key, grid in GRIDS[name].items():
        assert grid
        assert defaults[key] not in grid


@pytest.mark.parametrize("name", registry.LOSSES)
def test_every_rule_holds_for_every_pair_of_parameters(name):
    broken, worked = [], 0
    for params in pairs_of(name):
        made = loss(name, **params)
        try:
            bound = made.bind(data_of())
        except (UsageError, IncompatibleError):
            continue
        worked += 1
        for rule in RULES:
            try:
                rule(made, bound)
            except AssertionError as error:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                broken.append(f"{params}: {rule.__name__}: {' '.join(lines)[:200]}")
    assert not broken, f"{len(broken)} broken:\n" + "\n".join(broken)
    assert 2 * worked >= len(pairs_of(name))

"""Compare this version of Rankwright with an earlier one, loss by loss and ranker by ranker.

Both versions compute the same cases in a process of their own: values, gradients, curvatures and
Hessian products of every loss, and scores of every ranker, with default parameters, with every
other value in the tables below, and for losses with every pair of them. The report names each case
whose numbers differ by more than the tolerance and each one that only the earlier version accepts.

    git worktree add ../v0_2 7640954
    python tools/compare_versions.py ../v0_2                   # exit status 1 if a number differs
    python tools/compare_versions.py ../v0_2 --only retarget   # one loss or ranker
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

Arrays = dict[str, np.ndarray]
Parameters = dict[str, Any]


def cost_of_late_ranks(grades: np.ndarray) -> np.ndarray:
    """Position costs that prefer good documents at the second rank."""
    return np.abs(np.arange(len(grades)) - 1.0) * grades[:, None] / 4


# Values other than the default. The tables keep the parameters of 0.2.0, unlike those of
# tests/contract/test_loss_parameters.py, so that the report names the ones that are gone.
TARGETS = ["gain", (0.0, 1.5, 2.0, 4.0, 5.0)]
LOSSES: dict[str, dict[str, list[Any]]] = {
    "all_threshold": {"margin": [0.4]},
    "approx_ndcg": {"temperature": [1.5]},
    "boltzrank": {
        "metric": ["ndcg@2", "dcg", "p@2"],
        "divergence": [0.0, 2.0],
        "pair_potential": [0.7],
        "sharpness": [2.0],
        "form": ["exact"],
        "samples": [7],
        "proposal": ["uniform"],
        "random_state": [3],
    },
    "domination": {
        "margin": ["linear", "gain", (0.0, 1.5, 2.0, 4.0, 5.0)],
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
        "metric": ["ndcg@2", "dcg", "p@2", "map", "mrr", "err"],
        "truncation": [None, 1, 2],
        "sigma": [0.7],
        "normalize": [False],
        "label_gain": [(0.0, 1.0, 2.5, 7.0, 12.0)],
    },
    "listmle": {"calibration": [0.5], "targets": TARGETS},
    "listnet": {"target": ["gain"], "k": [2, 3], "samples": [5], "random_state": [2]},
    "ndcg_glm": {"divergence": ["kl"]},
    "neural_ndcg": {
        "metric": ["ndcg@2", "dcg", "p@2"],
        "temperature": [0.3, 3.0],
        "sinkhorn": [0, 1],
    },
    "ordinal_hinge": {"margin": [0.5], "balanced": [True]},
    "pair_exp": {"normalize": [True]},
    "pair_hinge": {"form": ["hinge"], "margin": [0.4], "pairs": ["query", "ir"]},
    "position_svm": {
        "metric": ["ndcg@3", "dcg", "wta(modified=true)", "mrr@3", "eru", "p@2"],
        "decay": [0.5, "log", "loglog", "metric"],
        "ties": ["score", "file"],
        "per_group": [1, 2],
        "cost": [cost_of_late_ranks],
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
    "softrank": {
        "metric": ["ndcg@2", "dcg", "p@2"],
        "sigma": [0.4],
        "form": ["exact"],
        "nodes": [9],
    },
    "squared": {"targets": TARGETS},
    "xendcg": {"sampled": [False], "newton_terms": [3], "random_state": [2]},
}
LOSS_BASES: dict[str, list[Parameters]] = {  # modes that decide what other parameters mean
    "listnet": [{}, {"k": 2, "samples": 5}],
    "retarget": [
        {},
        {"divergence": "kl", "size": 0.02},
        {"divergence": "kl", "domain": "cone", "floor": 0.3},
        {"divergence": "kl", "size": 0.02, "kl_margin": "additive"},
    ],
}

SOLVERS = ["lbfgs", "tron", "sgd", "online", "bundle", "coordinate", "alternating"]
RANKER_VALUES: dict[str, list[Any]] = {  # by parameter, for every ranker that has it
    "C": [1.0],
    "C_r": [0.5],
    "C_w": [0.2],
    "activation": ["relu"],
    "averaging": [False],
    "bag_fraction": [0.5],
    "balanced": [False],
    "batch_size": [100],
    "biases": [False, True],
    "by_query": [False],
    "calibration": [0.3],
    "centred": [True],
    "colsample_bytree": [0.5],
    "confidence": [0.9],
    "cost": [cost_of_late_ranks],
    "decay": [0.5, "log", "loglog"],
    "divergence": ["kl"],
    "domain": ["cone"],
    "dropout": [0.2],
    "early_stopping_rounds": [2],
    "enqueue": [False],
    "falling": [True],
    "folds": [2],
    "form": ["exact"],
    "hidden_layer_sizes": [(8, 4)],
    "k": [2],
    "kl_margin": ["additive", "surrogate"],
    "l1": [0.01],
    "l2": [0.1, "auto"],
    "l2_bias": [0.1],
    "label_gain": [(0.0, 1.0, 2.5, 7.0, 12.0)],
    "lambda1": [0.3],
    "lambda2": [0.1],
    "learning_rate": [0.2],
    "levels": [3],
    "list_context": [4],
    "loss": ["ranknet", "listnet", "squared"],
    "margin": [0.4, "linear", "none", "constant", "sqrt", "power", "large"],
    "margin_scale": [0.3],
    "max_bins": [15],
    "max_depth": [2],
    "max_features": [2],
    "max_iter": [7],
    "max_nodes": [7],
    "max_selections": [2],
    "method": ["als", "alternating", "joint"],
    "metric": ["ndcg@5", "map", "mrr", "err"],
    "min_child_samples": [5],
    "min_child_weight": [1.0],
    "min_grade": [2.0],
    "missing": ["zero", "mean"],
    "monotone_constraints": [[1, 0, 0, -1, 0, 0]],
    "n": [3],
    "n_candidates": [7, "all"],
    "n_factors": [3],
    "n_passes": [2],
    "n_restarts": [2],
    "n_steps": [7],
    "n_tastes": [2],
    "newton_terms": [3],
    "nodes": [9],
    "normalize": [False, True],
    "num_leaves": [5],
    "pair_potential": [0.5],
    "pairs": ["query", "ir"],
    "parsimony": [0.01],
    "per_group": [1],
    "power": [2.0],
    "proposal": ["uniform"],
    "qp_solver": ["barrier", "hard"],
    "query_weight_exponent": [1.0],
    "reg": [0.1],
    "reg_alpha": [0.5],
    "reg_lambda": [1.0],
    "repeats": [2],
    "sampled": [False],
    "samples": [5],
    "scale": [False, True],
    "scale_by_size": [False],
    "sharpness": [2.0],
    "shrinkage": [1.0],
    "sigma": [0.5],
    "size": [0.3],
    "solver": SOLVERS,
    "steps": ["exact", "ranklib"],
    "subsample": [0.6],
    "target": ["gain"],
    "targets": ["gain", "linear", (0.0, 1.5, 2.0, 4.0, 5.0)],
    "threshold_step": [0.5],
    "ties": ["mean", "file"],
    "tiers": [(1.0,), (1.0, 3.0)],
    "tol": [1e-3],
    "truncation": [None, 3],
    "users": [("all",)],
    "variant": ["base", "margin"],
    "weight_decay": [0.1],
    "weights": ["total", (0.3, 0.7)],
}
COMBINATIONS: dict[str, list[Parameters]] = {  # values that only work together
    "irsvm": [{"form": "hinge", "solver": "bundle"}],
    "ranksvm": [{"form": "hinge", "solver": "bundle"}],
}
SMALL = {  # a fit of any ranker takes a fraction of a second
    "blend": {"members": ("memr", "linear_regression"), "folds": 3},
    "coordinate_ascent": {"n_restarts": 1},
    "pamir": {"n_steps": 2000},
    "random_forest": {"n_bags": 10},
    "rankgp": {"population": 40, "n_generations": 4},
}
SMALL_VALUES = {"n_estimators": 12, "epochs": 4, "n_rounds": 15}
MODELS: dict[str, Parameters] = {  # every loss with each of these
    "linear": {},
    "trees": {"n_estimators": 8},
    "forest": {"n_bags": 4},
    "kernel": {"l2": 0.1},
    "network": {"hidden_layer_sizes": (4,), "epochs": 3},
    "additive": {"n_rounds": 8},
}


# --- cases, computed by the version that is imported ------------------------------------------


def compute(only: list[str]) -> tuple[Arrays, dict[str, str]]:
    """Return the numbers of every case and the error of each case that was refused."""
    warnings.filterwarnings("ignore")
    import rankwright as rw

    numbers: Arrays = {}
    refused: dict[str, str] = {}
    for case, function in [*_loss_cases(rw, only), *_ranker_cases(rw, only)]:
        try:
            for quantity, array in function().items():
                numbers[f"{case}|{quantity}"] = np.atleast_1d(np.asarray(array, float))
        except Exception as error:  # any refusal is a result here
            refused[case] = f"{type(error).__name__}: {error}"
    return numbers, refused


def _loss_cases(rw: Any, only: list[str]) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    make = getattr(rw, "make_loss", None) or rw.loss
    data = _graded_lists(rw)
    for name, grids in LOSSES.items():
        if only and name not in only:
            continue
        values = [{key: value} for key, grid in grids.items() for value in grid]
        pairs = [a | b for a, b in combinations(values, 2) if a.keys() != b.keys()]
        cases = [base | own for base in LOSS_BASES.get(name, [{}]) for own in [{}, *values, *pairs]]
        for parameters in {_label(case): case for case in cases}.values():
            yield (
                f"loss {name}({_label(parameters)})",
                lambda name=name, given=parameters: _of_loss(make(name, **given), data),
            )


def _of_loss(loss: Any, data: Any) -> Arrays:
    """Return value, gradient, curvature and Hessian product at ordinary and at tied scores."""
    bound = loss.bind(data, n_jobs=1)
    n = data.n_documents
    rng = np.random.default_rng(3)
    scores, direction = 1.2 * rng.normal(size=n), rng.normal(size=n)
    results: Arrays = {}
    for kind, s in (("scores", scores), ("tied scores", scores.round())):
        gradient, curvature, product = np.full((3, n), np.nan)
        results[f"value at {kind}"] = bound.grad(s.copy(), gradient)
        results[f"gradient at {kind}"] = gradient
        if hasattr(bound, "grad_curv") and getattr(loss.traits, "curvature", True):
            bound.grad_curv(s.copy(), np.empty(n), curvature)
            results[f"curvature at {kind}"] = curvature
        if getattr(loss.traits, "hess_vec", False):
            bound.hess_vec(direction.copy(), product)
            results[f"Hessian product at {kind}"] = product
    return results


def _ranker_cases(rw: Any, only: list[str]) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    from rankwright import registry

    make = getattr(rw, "make_ranker", None) or rw.ranker
    graded = _graded_features(rw, 0), _graded_features(rw, 1)
    rated = _ratings(rw, 0), _ratings(rw, 1)
    for name in registry.RANKERS:
        if name == "ranker" or (only and name not in only):
            continue
        train, test = rated if name in ("cofirank", "jrank", "mmmf") else graded
        parameters = inspect.signature(registry.resolve("rankers", name)).parameters
        small = {key: value for key, value in SMALL_VALUES.items() if key in parameters}
        small |= SMALL.get(name, {})
        variants = [
            {key: value}
            for key in parameters
            for value in RANKER_VALUES.get(key, [])
            if value != parameters[key].default
        ]
        for own in [{}, *variants, *COMBINATIONS.get(name, [])]:
            yield (
                f"ranker {name}({_label(own)})",
                lambda name=name, given=small | own, a=train, b=test: _of_ranker(
                    make(name, **given), a, b
                ),
            )
    for model, options in MODELS.items():
        for loss in LOSSES:
            if not only or loss in only or model in only:
                given = {f"model__{key}": value for key, value in options.items()}
                yield (
                    f"ranker ranker(loss={loss}, model={model})",
                    lambda loss=loss, model=model, given=given: _of_ranker(
                        make("ranker", loss=loss, model=model, **given), *graded
                    ),
                )


def _of_ranker(ranker: Any, train: Any, test: Any) -> Arrays:
    parameters = ranker.get_params()
    if parameters.get("early_stopping_rounds") == 2 or parameters.get("l2") == "auto":
        ranker.fit(train, eval_set=test)
    else:
        ranker.fit(train)
    return {"scores": ranker.predict(test)}


def _graded_lists(rw: Any) -> Any:
    """Return queries with many and few documents, weights, groups, and one without order."""
    rng = np.random.default_rng(0)
    sizes = [5, 2, 4, 2, 30, 1, 12]
    y = np.concatenate([rng.integers(0, 5, size) for size in sizes]).astype(float)
    y[5:7] = 1.0
    n = len(y)
    return rw.RankingData.from_arrays(
        np.zeros((n, 1)),
        y,
        qid=np.repeat(np.arange(len(sizes)), sizes),
        sample_weight=rng.choice([0.0, 0.5, 1.0, 2.0], n),
        query_weight=np.array([1.0, 1.0, 2.0, 0.5, 1.0, 1.0, 0.7]),
        group=rng.integers(0, 3, n),
    )


def _graded_features(rw: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    n = 40 * 15
    X = rng.normal(size=(n, 6))
    utility = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n)
    y = np.digitize(utility, [-0.5, 0.8, 1.8]).astype(float)
    group = rng.integers(0, 6, n)
    return rw.RankingData.from_arrays(X, y, qid=np.repeat(np.arange(40), 15), group=group)


def _ratings(rw: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    tastes = np.random.default_rng(9).normal(size=(30 + 20, 3))
    users, items = np.nonzero(rng.random((30, 20)) < 0.5)
    liking = (tastes[:30] @ tastes[30:].T)[users, items]
    y = np.digitize(liking + 0.3 * rng.normal(size=len(users)), [-1.5, -0.5, 0.5, 1.5])
    X = sparse.csr_matrix((np.ones(len(items)), (np.arange(len(items)), items)), (len(items), 20))
    return rw.RankingData.from_arrays(X, y.astype(float), qid=users)


def _label(parameters: Parameters) -> str:
    return ", ".join(
        f"{key}={getattr(value, '__name__', repr(value))}" for key, value in parameters.items()
    )


# --- the report -------------------------------------------------------------------------------


def report(
    old: tuple[Arrays, dict[str, str]], new: tuple[Arrays, dict[str, str]], tolerance: float
) -> tuple[list[str], int]:
    """Return the lines of the report and the number of cases that differ."""
    old_numbers, new_numbers = old[0], new[0]
    cases: dict[str, list[str]] = {}
    for key in old_numbers:
        case, _, quantity = key.partition("|")
        cases.setdefault(case, []).append(quantity)
    lines: list[str] = []
    groups: dict[str, list[float]] = {}
    gone = 0
    for case, quantities in cases.items():
        differences = {
            quantity: _difference(old_numbers[key], new_numbers[key])
            for quantity in quantities
            if (key := f"{case}|{quantity}") in new_numbers
        }
        if not differences:
            gone += 1
            lines.append(f"gone     {case}: {new[1].get(case, 'not a case of this version')}")
            continue
        worst = max(differences, key=lambda quantity: differences[quantity])
        groups.setdefault(case.partition("(")[0], []).append(differences[worst])
        if differences[worst] > tolerance:
            lines.append(f"differs  {case}: {worst} by {differences[worst]:.1e}")
        missing = [quantity for quantity in quantities if quantity not in differences]
        lines.extend(f"gone     {case}: {quantity}" for quantity in missing)
    lines.append("")
    for group, worst_of_cases in groups.items():
        equal = sum(value <= tolerance for value in worst_of_cases)
        counts = f"{equal:5d} of {len(worst_of_cases):5d} cases equal"
        lines.append(f"{group:30s} {counts}, largest {max(worst_of_cases):.1e}")
    total = sum(map(len, groups.values()))
    differ = sum(value > tolerance for values in groups.values() for value in values)
    lines.append(
        f"{total - differ} of {total} cases equal to {tolerance:g}, {differ} differ, {gone} gone, "
        f"{len(old[1])} refused by the earlier version"
    )
    return lines, differ


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference over the largest number; both may be NaN together."""
    if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return np.inf
    scale = max(float(np.nanmax(np.abs(a), initial=0.0)), 1e-12)
    return float(np.nanmax(np.abs(a - b), initial=0.0)) / scale


def main() -> int:
    """Run both versions and print the report; return 1 if any number differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path, help="a checkout of the earlier version")
    parser.add_argument("--only", nargs="*", default=[], help="names of losses or rankers")
    parser.add_argument("--tolerance", type=float, default=1e-8)
    parser.add_argument("--compute", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compute:
        numbers, refused = compute(options.only)
        np.savez(options.compute, refused=np.array(json.dumps(refused)), **numbers)
        return 0
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for tree in (options.old.resolve(), Path(__file__).resolve().parents[1]):
            target = Path(folder) / f"{len(results)}.npz"
            command = [sys.executable, __file__, str(tree), "--compute", str(target)]
            subprocess.run(
                [*command, "--only", *options.only],
                check=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(tree), "RANKWRIGHT_THREADS": "1"},
            )
            numbers = dict(np.load(target))
            results.append((numbers, json.loads(str(numbers.pop("refused")))))
    lines, differ = report(results[0], results[1], options.tolerance)
    print("\n".join(lines))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

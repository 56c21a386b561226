"""Metrics on a GPU are those of the CPU: the same kernels, the same numbers."""

import numpy as np
import pytest
import torch
from cases import each
from simulated_gpu import DEVICE, small_teams, tensor
from small_data import lists, small_data

from rankwright import RankingData, evaluate
from rankwright.core.rng import stream
from rankwright.core.types import Measured
from rankwright.data.ranking_data import concatenate
from rankwright.errors import DataError, IncompatibleError
from rankwright.losses import loss
from rankwright.metrics import base, evaluation
from rankwright.metrics.evaluation import Evaluator
from rankwright.metrics.ndcg import NDCG
from rankwright.models import network
from rankwright.rankers.selection import Selection

GRADES = ([2, 0, 1, 0, 2], [1], [0, 1, 2, 1, 0, 0, 2, 1, 0], [0, 0], [0, 2, 1], [])
N = sum(len(grades) for grades in GRADES)
METRICS = "ndcg@3,ndcg,dcg@2,map,map@4,mrr,mrr@2,err(max=2),err(max=2)@3,p@2,rbp"
TIES = ("mean", "file", "worst", "best", "reverse")


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch):
    small_teams(monkeypatch)


def _scores():
    s = stream(0, "scores").normal(size=N).round(1)
    s[7], s[9], s[12] = s[6], s[8], s[13]
    return s


def _data(**columns):
    return lists(*GRADES, query_weight=[1.0, 2.0, 0.5, 1.0, 3.0, 1.0], **columns)


@each("convention", ["standard", "ranklib", "sklearn"])
def test_values_of_queries_and_their_means_are_those_of_the_cpu(convention):
    data, s = _data(), _scores()
    evaluator = Evaluator(data, METRICS, convention=convention)
    here, there = evaluator(s), evaluator.on_device(torch)
    found = there.per_query(tensor(s))
    assert list(found) == list(here.per_query)
    for name, values in found.items():
        np.testing.assert_allclose(values.cpu().numpy(), here.per_query[name], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        there.means(tensor(s)).cpu().numpy(), list(here.values()), rtol=0, atol=1e-12
    )
    assert int(there.tied_queries(tensor(s), data.y)) == here.tie_queries > 0


@each("ties", TIES)
def test_every_rule_for_ties_holds_there(ties):
    data, s = _data(), _scores()
    names = [f"{key}(ties={ties})@4" for key in ("ndcg", "map", "mrr")]
    evaluator = Evaluator(data, [*names, f"err(max=2,ties={ties})"])
    here, there = evaluator(s), evaluator.on_device(torch).per_query(tensor(s))
    for name, values in there.items():
        np.testing.assert_allclose(values.cpu().numpy(), here.per_query[name], rtol=0, atol=1e-12)


@each("name", ["auc", "bpref", "kendall", "ndcg(max_per_group=1)@3"])
def test_a_metric_without_a_form_for_the_gpu_is_named(name):
    data = _data(group=np.arange(N) % 3)
    with pytest.raises(IncompatibleError, match="is computed on the CPU alone"):
        Evaluator(data, name).on_device(torch)


class LikeNDCG(NDCG):
    """Half of NDCG, as the CPU computes it; nothing is said of GPUs."""

    def compute(self, ranked, mean, out):
        super().compute(ranked, mean, out)
        out *= 0.5


def test_a_metric_that_computes_something_else_is_not_taken_for_its_base():
    assert Evaluator(_data(), NDCG(k=3)).on_device(torch)
    with pytest.raises(IncompatibleError, match="is computed on the CPU alone"):
        Evaluator(_data(), LikeNDCG(k=3)).on_device(torch)


def test_evaluate_takes_scores_on_the_gpu_in_the_order_of_the_caller(monkeypatch):
    """With the simulator, whose tensors are those of the CPU, in place of the GPU."""
    if DEVICE == "cpu":
        for module in (base, evaluation):
            monkeypatch.setattr(module, "is_on_gpu", lambda s: isinstance(s, torch.Tensor))
    rows = stream(0, "rows").permutation(N)
    data, s = _data(), _scores()
    y, qid = data.y[rows], data.query_of_row()[rows]
    here = evaluate(y, s[rows], "ndcg@3,map", qid=qid)
    there = evaluate(y, tensor(s[rows]), "ndcg@3,map", qid=qid)
    assert dict(there) == pytest.approx(dict(here), abs=1e-12)
    assert there.tie_queries == here.tie_queries
    assert there.tie_intervals() == here.tie_intervals()
    on_cpu = evaluate(y, tensor(s[rows]), "ndcg@3,auc", qid=qid)  # all of it
    assert dict(on_cpu) == dict(evaluate(y, s[rows], "ndcg@3,auc", qid=qid))
    with pytest.raises(DataError, match="score of row 3"):
        evaluate(y, tensor(np.where(np.arange(N) == 3, np.nan, s[rows])), "map", qid=qid)


def test_curves_of_a_network_come_from_metrics_on_the_gpu(monkeypatch):
    if DEVICE == "cpu":
        monkeypatch.setattr(network.Network, "_calm", lambda *_: network.nullcontext("cpu"))
    X, y = stream(0, "X").normal(size=(9, 3)), [0, 1, 2, 1, 1, 2, 0, 1, 1]
    train = RankingData.from_arrays(X, y, group_sizes=[3, 2, 4])  # the second has no order
    valid = {
        "other": small_data(queries=2, documents=4, features=3),
        "last": small_data(queries=3, documents=3, features=3, seed=1),
    }
    curves = []
    for on_device in (False, True):
        problem = network.NetworkProblem
        shown = []

        def made(*args, problem=problem, on_device=on_device, shown=shown, **options):
            if on_device:
                options["there"] = args[5].on_device(torch)
            one = problem(*args, **options)
            _record_what_is_shown(one, shown)
            return one

        with monkeypatch.context() as patch:
            patch.setattr(network, "NetworkProblem", made)
            callback = _selection(train, valid)
            network.Network(
                epochs=2, batch_size=4, device=DEVICE if on_device else "cpu", precision="double",
            ).fit(loss("listnet"), train, callback=callback, n_jobs=1)  # fmt: skip
        assert all(isinstance(scores, Measured) == on_device for _, scores in shown)
        curves.append(callback.curve)
    assert list(curves[0]) == ["loss", "train ndcg@3", "other ndcg@3", "valid ndcg@3"]
    for name, curve in curves[0].items():
        assert curves[1][name] == pytest.approx(curve, abs=1e-9), name


def test_a_metric_of_the_cpu_is_tried_once_in_a_fit(monkeypatch):
    if DEVICE == "cpu":
        monkeypatch.setattr(network.Network, "_calm", lambda *_: network.nullcontext("cpu"))
    train, valid = small_data(queries=3, documents=4), small_data(queries=2, documents=4, seed=1)
    problem, asked = network.NetworkProblem, []
    callback = Selection("auc", "standard", train, valid)
    monkeypatch.setattr(callback, "on_device", asked.append)
    monkeypatch.setattr(
        network,
        "NetworkProblem",
        lambda *args, **options: problem(*args, **options | {"there": args[5].on_device(torch)}),
    )
    model = network.Network(epochs=3, device="auto" if DEVICE == "cpu" else "cuda")
    model.fit(loss("listnet"), train, callback=callback, n_jobs=1)
    assert asked == [torch]
    assert len(callback.curve["valid auc"]) == 3


def _record_what_is_shown(problem, shown):
    watched = problem.watched_scores

    def recording(callback):
        shown.append(watched(callback))
        return shown[-1]

    problem.watched_scores = recording


def _selection(train, valid):
    whole = concatenate(list(valid.values()), shared_ids=True)
    return Selection("ndcg@3", "standard", train, whole, eval_sets=valid)

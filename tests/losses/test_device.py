"""Losses on a GPU are those of the CPU: the same kernels, the same numbers."""

import re
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from cases import each
from simulated_gpu import DEVICE, small_teams, tensor, torch
from small_data import lists, small_data

from rankwright import losses, registry
from rankwright.core.rng import stream
from rankwright.errors import IncompatibleError
from rankwright.losses.base import device_loss
from rankwright.models import Network, network_training

SETTINGS = {
    "retarget": {"divergence": "kl"},
}
GRADES = ([2, 0, 1, 0, 2], [1], [0, 1, 2, 1, 0, 0, 2, 1, 0], [1, 1], [0, 2, 1])
N = sum(len(grades) for grades in GRADES)
ON_CPU = {
    "boltzrank": {},
    "lambdarank": {"metric": "map"},
    "listnet": {"k": 2},
    "neural_ndcg": {},
    "position_svm": {},
    "precision_svm": {},
    "softrank": {},
    "stochastic": {},
}


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch):
    small_teams(monkeypatch)


def _loss(name, **settings):
    return losses.loss(name, **{**SETTINGS.get(name, {}), **settings})


def _data(weighted=True, **columns):
    weight = stream(0, "weights").integers(0, 3, N).astype(float) if weighted else None
    return lists(*GRADES, sample_weight=weight, **columns)


def _scores():
    s = stream(0, "scores").normal(size=N)
    s[7], s[9] = s[6], s[8]
    return s


def _on_device(bound, s):
    there, out = bound.on_device(torch), tensor(np.full(N, np.nan))
    there.grad_queries(0, len(GRADES), tensor(s), out)
    return there, out


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # hashes, in Python
@pytest.mark.parametrize(
    "name", sorted(name for name in registry.names("losses") if ON_CPU.get(name) != {})
)
def test_gradients_and_values_are_those_of_the_cpu(name):
    assert _same_as_on_the_cpu(_loss(name), _data())


def _same_as_on_the_cpu(loss, data):
    s, gradient = _scores(), np.empty(N)
    bound = loss.bind(data, n_jobs=1)
    value = bound.grad(s, gradient)
    per_query = bound.per_query.copy()
    there, out = _on_device(loss.bind(data, n_jobs=1), s)
    np.testing.assert_allclose(out.cpu().numpy(), gradient, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.per_query.cpu().numpy(), per_query, rtol=1e-9, atol=1e-12)
    return np.isfinite(value)


def test_a_part_of_the_queries_leaves_the_rows_of_the_others():
    data, s = _data(), _scores()
    there, whole = _on_device(_loss("lambdarank").bind(data), s)
    part = tensor(np.full(N, 9.0))
    there.grad_queries(2, 3, tensor(s), part)
    rows = slice(*data.indptr[2:4].tolist())
    assert (part[rows] == whole[rows]).all()
    assert (part[: rows.start] == 9.0).all()
    assert (part[rows.stop :] == 9.0).all()


def test_infinite_spreads_of_scores_and_nan_are_as_on_the_cpu():
    data, gradient = _data(weighted=False), np.empty(N)
    for s in (_scores() * 1e4, np.where(np.arange(N) == 8, np.nan, _scores())):
        for name in ("ranknet", "approx_ndcg"):
            bound = _loss(name).bind(data, n_jobs=1)
            bound.grad(s, gradient)
            _, out = _on_device(bound, s)
            there = out.cpu().numpy()
            # max(x, NaN) is x on a GPU, so documents without a pair with NaN may keep a number.
            finite = np.isfinite(gradient)
            np.testing.assert_allclose(there[finite], gradient[finite], rtol=1e-9, atol=1e-12)
            assert np.isnan(there[8]) == np.isnan(gradient[8])


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_what_is_sampled_is_that_of_the_iteration():
    data, s, gradient = _data(), _scores(), np.empty(N)
    bound = _loss("xendcg").bind(data, n_jobs=1)
    there, out = _on_device(_loss("xendcg").bind(data), s)
    first = out.clone()
    bound.set_iteration(3)
    bound.grad(s, gradient)
    there.set_iteration(3)
    there.grad_queries(0, len(GRADES), tensor(s), out)
    np.testing.assert_allclose(out.cpu().numpy(), gradient, rtol=1e-9, atol=1e-12)
    assert (out != first).any()


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # hashes, in Python
def test_the_state_comes_back_and_goes_on_elsewhere():
    data, s = _data(), _scores()
    there, _ = _on_device(_loss("xendcg").bind(data), s)
    there.set_iteration(5)
    again, _ = _on_device(_loss("xendcg").bind(data), s)
    again.load_state(there.state())
    gradients = [tensor(np.full(N, np.nan)) for _ in range(2)]
    for loss, gradient in zip((there, again), gradients, strict=True):
        loss.grad_queries(0, len(GRADES), tensor(s), gradient)
    assert (gradients[0] == gradients[1]).all()


@each(("name", "settings"), list(ON_CPU.items()))
def test_a_loss_that_cannot_run_on_the_gpu_is_computed_on_the_cpu(name, settings):
    loss = _loss(name, **settings)
    why = "its mean over samples" if name == "stochastic" else "allocate memory"
    with pytest.warns(UserWarning, match=f"'{name}' is computed on the CPU.* {why}"):
        assert device_loss(loss, loss.bind(_data()), torch) is None


def test_effects_of_positions_are_computed_on_the_cpu():
    data = _data()._replace(position=np.arange(N) % 4)
    loss = _loss("dual_softmax")
    with pytest.warns(UserWarning, match="its effects of positions are computed on the CPU"):
        assert device_loss(loss, loss.bind(data), torch) is None


def test_a_loss_without_kernels_is_computed_on_the_cpu():
    data = _data(weighted=False)
    loss = losses.from_function(lambda s, y: (0.0, s - y))
    with pytest.warns(UserWarning, match="it is not computed by kernels"):
        assert device_loss(loss, loss.bind(data), torch) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert device_loss(_loss("squared"), _loss("squared").bind(data), torch) is not None


def test_a_loss_with_a_limit_on_scores_is_computed_on_the_cpu(monkeypatch):
    bound = _loss("squared").bind(_data())
    monkeypatch.setattr(bound, "score_limit", 1e9)
    with pytest.raises(IncompatibleError, match="limit on scores"):
        bound.on_device(torch)


def _on_gpu(loss, data, device, *, n_jobs):
    """As `network_training.batch_loss`, with the simulator in place of a GPU."""
    there = loss.bind(data, n_jobs=n_jobs).on_device(torch)
    return network_training.BatchLoss(there, data.indptr, on_gpu=True, device=device)


@pytest.mark.parametrize("name", ["listnet", "lambdarank"])
def test_a_network_learns_from_a_loss_on_the_gpu_what_it_learns_from_that_of_the_cpu(
    monkeypatch, name
):
    data, valid = (small_data(queries=6, documents=5, features=3, seed=seed) for seed in (0, 1))
    settings = {"epochs": 3, "batch_size": 10, "precision": "double"}
    here = list(Network(**settings, device="cpu").rounds(_loss(name), data, valid, n_jobs=1))
    monkeypatch.setattr(network_training, "batch_loss", _on_gpu)
    there = list(Network(**settings, device=DEVICE).rounds(_loss(name), data, valid, n_jobs=1))
    for a, b in zip(here, there, strict=True):
        assert b.loss == pytest.approx(a.loss, rel=1e-9)
        np.testing.assert_allclose(b.valid_scores, a.valid_scores, rtol=1e-9, atol=1e-12)
    arrays = there[-1].model().arrays()
    for key, array in here[-1].model().arrays().items():
        np.testing.assert_allclose(arrays[key], array, rtol=1e-9, atol=1e-12)


def test_batches_are_recorded_in_the_second_epoch_and_then_replayed(monkeypatch):
    """With a graph that repeats the computation itself, in place of CUDA's."""
    data, graphs = small_data(queries=6, documents=5, features=3), []
    trainer, compute = network_training.Trainer, network_training.Trainer._compute
    begin = trainer.__init__

    class Graph:
        """Repeats what is computed while it is recorded."""

        def replay(self):
            compute(*self.recorded)

    def recording(made, *args, **options):
        begin(made, *args, **options)
        made._records = True

    @contextmanager
    def record(graph, **_):
        def compute_once(made, t, batch):
            graph.recorded = made, t, batch
            graphs.append((t, batch))

        monkeypatch.setattr(trainer, "_compute", compute_once)
        yield
        monkeypatch.setattr(trainer, "_compute", compute)

    monkeypatch.setattr(network_training, "batch_loss", _on_gpu)
    network = Network(epochs=4, batch_size=10, device=DEVICE, precision="double")
    expected = [one.loss for one in network.rounds(_loss("listnet"), data, n_jobs=1)]
    monkeypatch.setattr(trainer, "__init__", recording)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)
    values = [one.loss for one in network.rounds(_loss("listnet"), data, n_jobs=1)]
    assert values == pytest.approx(expected, rel=1e-12)
    assert sorted(graphs) == [(1, 0), (1, 1), (1, 2)]


def test_the_page_names_every_loss_where_it_runs():
    page = (Path(__file__).parents[2] / "docs/how-to/gpu.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| `\w+`, ", line)]
    there, here = (
        {name for row in rows for name in re.findall(r"`(\w+)`", row) if test(row)}
        for test in (lambda row: "thread" in row, lambda row: "the CPU" in row)
    )
    assert there | here == set(registry.names("losses"))
    assert here == set(ON_CPU)

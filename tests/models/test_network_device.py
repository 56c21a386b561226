"""Passes through layers give torch's gradients; features that come in turn are those that stay."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from cases import each
from scipy import sparse
from simulated_gpu import DEVICE
from small_data import Onlooker, small_data

from rankwright import losses
from rankwright.core.rng import stream
from rankwright.models import network
from rankwright.models.network_device import DeviceFeatures, LayerPasses

SIZES = (5, 4, 3, 1)


def _weights(sizes=SIZES):
    rng = stream(0, "weights")
    arrays = []
    for n_in, n_out in pairwise(sizes):
        arrays += [rng.normal(size=(n_in, n_out)), rng.normal(size=n_out)]
    return [torch.tensor(a, device=DEVICE, requires_grad=True) for a in arrays]


@each(("activation", "sizes"), [(a, SIZES) for a in network.ACTIVATIONS] + [("relu", (5, 1))])
def test_scores_and_gradients_are_those_of_torch(activation, sizes):
    weights = _weights(sizes)
    x = torch.tensor(stream(0, "x").normal(size=(7, 5)), device=DEVICE)
    g = torch.tensor(stream(0, "g").normal(size=7), device=DEVICE)
    h = x
    for k in range(0, len(weights) - 2, 2):
        h = network._activation(torch, activation)(h @ weights[k] + weights[k + 1])
    s = (h @ weights[-2] + weights[-1])[:, 0]
    wanted = torch.autograd.grad(s, weights, g)
    passes = LayerPasses(torch, activation, mixed=False)
    out = [torch.full_like(w, np.nan) for w in weights]
    with torch.no_grad():
        hidden, found = passes.forward(weights, x)
        passes.backward(weights, hidden, g, out)
    np.testing.assert_allclose(found.cpu(), s.detach().cpu(), rtol=1e-12, atol=1e-12)
    for one, other in zip(out, wanted, strict=True):
        np.testing.assert_allclose(one.cpu(), other.cpu(), rtol=1e-12, atol=1e-12)
    kept = [out[0].clone(), *out[1:-1], None]  # no gradient is asked for of the last bias
    with torch.no_grad():
        passes.backward(weights, hidden, g, kept)
    assert torch.equal(kept[0], out[0])


def test_in_bfloat16_scores_hold_more_digits_than_their_terms():
    weights = _weights()
    x = torch.tensor(stream(0, "x").normal(size=(64, 5)), device=DEVICE)
    single = [w.detach().float() for w in weights]
    exact = LayerPasses(torch, "tanh", mixed=False).forward(weights, x)[1]
    passes = LayerPasses(torch, "tanh", mixed=True)
    if DEVICE == "cpu":
        passes._typed_products = False  # products of bfloat16 are not wider there
    with torch.no_grad():
        hidden, s = passes.forward(single, x.bfloat16())
        assert hidden[-1].dtype == torch.bfloat16
        assert s.dtype == torch.float32
        assert float((s - exact).abs().max()) < 0.1
        out = [torch.full_like(w, np.nan) for w in single]
        passes.backward(single, hidden, torch.ones(64, device=DEVICE), out)
    assert all(torch.isfinite(one).all() and one.dtype == torch.float32 for one in out)
    halves = passes._halves(single[-2][:, 0])
    assert float((halves.float().sum(1) - single[-2][:, 0]).abs().max()) < 2.0**-15


def _features(X, resident, rows):
    def doubled(part):
        return 2.0 * part

    return DeviceFeatures(torch, DEVICE, X, rows, doubled, resident=resident, n_jobs=2)


@each("kind", ["array", "memory map", "sparse"])
def test_features_that_come_in_turn_are_those_that_stay(kind, tmp_path):
    X = stream(0, "X").normal(size=(9_000, 3)).astype(np.float32)
    X[X < -1.0] = 0.0
    given = X
    if kind == "memory map":
        given = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
        given[:] = X
    elif kind == "sparse":
        given = sparse.csr_array(X)
    order = stream(0, "rows").permutation(9_000)
    rows = [order[:5000], order[5000:5001], slice(10, 4_500), order[5001:]]
    stay, come = (_features(given, resident, rows) for resident in (True, False))
    assert (stay.resident, come.resident) == (True, False)
    for asked, expected in (([2, 0, 3, 1], [2, 0, 3, 1]), ([1, 1, 0, 2], [3, 1]), ([0], [])):
        come.expect(expected)  # what was not expected comes too
        for chunk in asked:
            own = 2.0 * X[rows[chunk]]
            np.testing.assert_array_equal(stay[chunk].cpu(), own)
            np.testing.assert_array_equal(come[chunk].cpu(), own)
    come.close()


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_a_network_learns_the_same_from_features_that_come_in_turn(monkeypatch, share):
    settings = {"epochs": 2, "batch_size": 30, "precision": "double"}
    data, valid = (small_data(queries=8, documents=9, seed=seed) for seed in (0, 1))
    here = network.Network(**settings, device="cpu").fit(
        losses.ListNet(), data, callback=Onlooker(valid), n_jobs=1
    )
    made = network.DeviceFeatures
    kinds = []

    def features(*args, resident, **options):
        kinds.append(resident and share > 0.0)
        return made(*args, resident=kinds[-1], **options)

    monkeypatch.setattr(network, "DeviceFeatures", features)
    monkeypatch.setattr(network, "_SHARE_OF_GPU", share)
    if DEVICE == "cpu":
        monkeypatch.setattr(network.Network, "_calm", lambda *_: network.nullcontext("cpu"))
    problem = network.NetworkProblem
    monkeypatch.setattr(
        network,
        "NetworkProblem",
        lambda *args, **options: problem(*args, **{**options, "there": args[5].on_device(torch)}),
    )
    callback = Onlooker(valid)
    there = network.Network(**settings).fit(losses.ListNet(), data, callback=callback, n_jobs=1)
    assert kinds == [share > 0.0] * 2  # of both data sets
    for (a, b), (c, d) in zip(here.layers, there.layers, strict=True):
        np.testing.assert_allclose(c, a, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(d, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(callback.valid_scores[-1], there.scores(valid.X), rtol=1e-9)

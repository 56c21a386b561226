"""The peers of the GPU area, on padded lists, compute the losses that they are compared with."""

import numpy as np
import torch
from cases import each

from benchmarks import gpu
from rankwright import losses

SAME = ("ranknet", "lambdarank", "listnet", "approx_ndcg", "neural_ndcg", "softrank")


@each("name", SAME)  # in ListMLE ties of grades are another's
def test_losses_on_padded_lists_are_ours(name):
    data = gpu._data(np.array([7, 12, 3]), np.random.default_rng(0))
    loss = gpu.LOSSES[name]
    if name == "lambdarank":  # as it is mostly written
        loss = losses.LambdaRank(truncation=None, normalize=False)
    s, gradient = 0.5 * np.random.default_rng(1).normal(size=22), np.empty(22)
    value = loss.bind(data, n_jobs=1).grad(s, gradient)
    mask = torch.arange(12) < torch.tensor(data.sizes)[:, None]
    padded, grades = torch.zeros((2, 3, 12), dtype=torch.float64)
    padded[mask], grades[mask] = torch.tensor(s), torch.tensor(data.y)
    padded.requires_grad_()
    found = gpu._PADDED[name](padded, grades, mask)
    found.backward()
    np.testing.assert_allclose(found.item(), value, rtol=1e-5)
    np.testing.assert_allclose(padded.grad[mask], gradient, rtol=0, atol=1e-5)


def test_lists_of_the_loader_are_padded_to_the_longest():
    data = gpu._data(np.array([2, 5]), np.random.default_rng(0))
    x, y, mask = gpu._Lists(data)[0]
    assert x.shape == (5, gpu.FEATURES)
    assert mask.tolist() == [True, True, False, False, False]
    np.testing.assert_array_equal(x[:2], data.X[:2])
    assert y[:2].tolist() == data.y[:2].tolist()
    assert not x[2:].any()

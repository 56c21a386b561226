"""The losses on padded lists that networks are compared with equal ours."""

import numpy as np
import torch
from cases import each

from benchmarks import networks
from rankwright import RankingData, losses


@each("name", list(networks.PADDED))
def test_losses_on_padded_lists_are_ours(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(22, 3)).astype(np.float32), rng.integers(0, 3, 22).astype(float)
    data = RankingData.from_arrays(X, y, group_sizes=[7, 12, 3])
    loss = networks.LOSSES[name]
    if name == "lambdarank":  # the usual form
        loss = losses.LambdaRank(truncation=None, normalize=False)
    s, gradient = 0.5 * np.random.default_rng(1).normal(size=22), np.empty(22)
    value = loss.bind(data, n_jobs=1).grad(s, gradient)
    mask = torch.arange(12) < torch.tensor(data.sizes)[:, None]
    padded, grades = torch.zeros((2, 3, 12), dtype=torch.float64)
    padded[mask], grades[mask] = torch.tensor(s), torch.tensor(data.y)
    padded.requires_grad_()
    loss_of_peer = networks.PADDED[name](padded, grades, mask)
    loss_of_peer.backward()
    np.testing.assert_allclose(loss_of_peer.item(), value, rtol=1e-5)
    np.testing.assert_allclose(padded.grad[mask], gradient, rtol=0, atol=1e-5)


def test_batches_are_padded_to_their_longest_list():
    X = np.ones((7, 2), np.float32)
    data = RankingData.from_arrays(X, np.arange(7.0), group_sizes=[2, 5])
    ((x, y, mask),) = networks.padded_batches(data, X, 2, "cpu")
    assert x.shape == (2, 5, 2)
    assert sorted(mask.sum(1).tolist()) == [2, 5]
    assert float(x.sum()) == 14.0
    assert float(y.sum()) == 21.0

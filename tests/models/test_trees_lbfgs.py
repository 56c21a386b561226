"""The L-BFGS direction through real trees: it descends, and ends as low as the gradient."""

import numpy as np
import pytest
from forests import as_bytes
from small_data import small_data

from rankwright.data.split import load_fold
from rankwright.losses import loss
from rankwright.models.trees import Trees
from rankwright.rankers.fitting import last_model

LOSSES = {
    "interval": {"scale_by_size": True},
    "listmle": {},
    "ranknet": {"normalize": True},
    "squared": {},
    "lambdarank": {},
}
SAMPLED = {"subsample": 0.7, "query_fraction": 0.7, "colsample_bytree": 0.5}


@pytest.fixture(scope="module")
def ohsumed_train(ohsumed):
    return load_fold(ohsumed / "Fold1", part="train")


def values(name, data, direction, rate, n_estimators=40, **more):
    """The loss before each tree and after the last."""
    made = loss(name, **LOSSES.get(name, {}))
    trees = Trees(
        n_estimators=n_estimators,
        learning_rate=rate,
        leaves="constant",
        direction=direction,
        **{"num_leaves": 31, "colsample_bytree": 1.0, **more},
    )
    rounds = list(trees.rounds(made, data))
    last = made.bind(data).value(rounds[-1].model().scores(data.X))
    return np.array([*(one.loss for one in rounds), last])


def check(name, data, rate, **more):
    quasi, plain = (values(name, data, kind, rate, **more) for kind in ("lbfgs", "gradient"))
    assert np.isfinite(quasi).all()
    if name != "lambdarank":  # whose gradient is that of no function
        assert (quasi[1:] <= quasi[:-1] * 1.001).all()
    assert quasi[-1] <= plain[-1] * 1.02


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_no_worse_than_the_gradient_on_small_data(name, rate):
    check(name, small_data(), rate)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_no_worse_than_the_gradient_on_ohsumed(name, rate, ohsumed_train):
    check(name, ohsumed_train, rate)


@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_no_worse_than_the_gradient_on_samples(rate, ohsumed_train):
    check("interval", ohsumed_train, rate, **SAMPLED)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_descends_where_the_gradient_flies_away(rate, ohsumed_train):
    """Pairs in the hundreds curve GBRank's loss far beyond the 1 of constant leaves."""
    quasi = values("gbrank", ohsumed_train, "lbfgs", rate)
    assert (quasi[1:] <= quasi[:-1] * 1.1).all()
    assert quasi[-1] < 0.5 * quasi[0]


@pytest.mark.parametrize("name", ["xendcg", "lambdarank"])
def test_noise_in_the_gradients_drives_nothing_away(name):
    """xendcg draws its targets anew in each round."""
    quasi = values(name, small_data(), "lbfgs", 0.5)
    assert quasi[-1] < quasi[0]
    assert quasi.max() < 4.0 * quasi[0]


def test_threads_change_no_byte():
    made, data = loss("interval", **LOSSES["interval"]), small_data()
    trees = Trees(n_estimators=10, direction="lbfgs")
    one, two, five = (as_bytes(last_model(trees.rounds(made, data, n_jobs=n))) for n in (1, 2, 5))
    assert one == two == five

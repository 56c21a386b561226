import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.domination import Domination
from rankwright.losses.pair_hinge import PairHinge
from rankwright.models.linear import Linear
from rankwright.rankers.base import Ranker
from reproducibility.topics import (
    DenseLinear,
    SampledPairs,
    SparseDomination,
    fit_topics,
    topic_method,
)

RNG = np.random.default_rng(0)
X = sparse.csr_array(sparse.random(120, 15, 0.3, random_state=1))
LABELS = (X @ RNG.normal(size=(15, 2)) + 0.1 * RNG.normal(size=(120, 2)) > 0.4).astype(float)


def test_parameters_go_to_the_method_to_its_loss_and_to_the_choice():
    method, choice = topic_method(
        "domination", steps=4, margin="linear", margin_scale=2.0, tiers=[1.0, 3.0], min_zero=0.9
    )
    loss = Domination(margin="linear", margin_scale=2.0, tiers=(1.0, 3.0))
    assert (method, choice) == (SparseDomination(loss, steps=4), {"min_zero": 0.9})
    method, choice = topic_method("linear", loss="pair_hinge", pairs="query", l2=[0.1, 0.01])
    assert (method, choice) == (DenseLinear(PairHinge(pairs="query"), l2=(0.1, 0.01)), {})
    method, choice = topic_method("pamir", C=[0.1], within=0.01, seed=5)
    assert (method, choice) == (SampledPairs(C=(0.1,), seed=5), {"within": 0.01})


@pytest.mark.parametrize("loss", ["domination", "pair_hinge"])
def test_dense_weights_are_those_of_the_ranker_with_the_same_loss(loss):
    method, _ = topic_method("linear", loss=loss, l2=[0.5, 0.02], tol=1e-10)
    models = fit_topics(X, LABELS, method)
    for topic in range(2):
        data = RankingData.from_arrays(X, LABELS[:, topic], group_sizes=[120])
        model = Linear(l2=0.02, scale=False, tol=1e-10)
        alone = Ranker(loss=loss, model=model)
        alone.fit(data)
        found = models.coef[[topic]].toarray()[0]
        np.testing.assert_allclose(found, alone.coef_, rtol=1e-4, atol=1e-5)
    assert models.settings == ({"l2": 0.02}, {"l2": 0.02})


def test_wrong_names_are_reported_with_the_nearest():
    with pytest.raises(UsageError, match="method for topics 'dominaton'; did you mean domination"):
        topic_method("dominaton")
    with pytest.raises(UsageError, match="parameter of method 'pamir' 'n_step'; did you mean"):
        topic_method("pamir", n_step=5)
    with pytest.raises(UsageError, match="loss 'domination' has no parameter 'margn'"):
        topic_method("domination", margn="linear")
    with pytest.raises(UsageError, match="another loss needs method 'linear'"):
        topic_method("domination", loss="listnet")
    with pytest.raises(IncompatibleError, match="tron needs"):
        topic_method("linear", loss="lambdarank")


def test_dense_weights_have_the_same_bits_on_one_two_and_five_threads():
    method, _ = topic_method("linear", l2=[0.1])
    found = [fit_topics(X, LABELS, method, n_jobs=n).coef.data.tobytes() for n in (1, 2, 5)]
    assert found[0] == found[1] == found[2]

"""Many topics over one matrix: the same as each alone, without a copy, on any threads."""

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.domination import Domination
from rankwright.metrics.evaluation import evaluate
from rankwright.solvers.coordinate import Coordinate, falling_l1, largest_l1
from reproducibility.topics import SampledPairs, SparseDomination, fit_topics

TOPICS = 6


def collection(seed, n=300, features=80):
    """Documents of random words; a topic is a sum of three words, with noise."""
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(sparse.random(n, features, 0.15, random_state=seed))
    weights = np.zeros((features, TOPICS))
    for topic in range(TOPICS):
        weights[3 * topic : 3 * topic + 3, topic] = [3.0, 2.0, 1.0]
    utility = X @ weights + 0.2 * rng.normal(size=(n, TOPICS))
    return X, (utility > np.quantile(utility, 0.9, axis=0)).astype(float)


X, LABELS = collection(0)
VALID = collection(1)


def test_each_topic_is_the_domination_problem_over_all_documents():
    models = fit_topics(X, LABELS, SparseDomination(l1=0.01, l2=0.001, tol=1e-8))
    for topic in range(TOPICS):
        data = RankingData.from_arrays(X, LABELS[:, topic], group_sizes=[300])
        problem = Domination().bind(data).by_column(sparse.csc_array(X), l1=0.01, l2=0.001)
        alone = Coordinate(tol=1e-8 * largest_l1(problem)).solve(problem)
        np.testing.assert_allclose(models.coef[[topic]].toarray()[0], alone.w, atol=1e-9)
        assert models.settings[topic] == {"l1": 0.01, "l2": 0.001}
        scores = models.scores(X, topic)
        np.testing.assert_allclose(scores, X @ alone.w, atol=1e-9)
    assert (models.zero_share > 0.3).all()
    assert models.zero_share[0] == pytest.approx(np.mean(models.coef[[0]].toarray() == 0.0))


@pytest.mark.parametrize("method", [SparseDomination(steps=6), SampledPairs(n_steps=2_000)])
def test_valid_chooses_the_best_candidate_and_the_words_of_the_topic_are_found(method):
    models = fit_topics(X, LABELS, method, valid=VALID, metric="map")
    for topic in range(TOPICS):
        data = RankingData.from_arrays(VALID[0], VALID[1][:, topic], group_sizes=[300])
        value = evaluate(data, models.scores(VALID[0], topic), "map")["map"]
        assert models.valid[topic] == pytest.approx(value)
        coef = models.coef[[topic]].toarray()[0]
        assert set(np.argsort(-coef)[:2]) <= set(range(3 * topic, 3 * topic + 3))
    assert models.valid.mean() > 0.6


def test_within_a_share_of_the_best_the_sparsest_is_kept():
    best = fit_topics(X, LABELS, SparseDomination(), valid=VALID)
    near = fit_topics(X, LABELS, SparseDomination(), valid=VALID, within=0.05)
    assert (near.valid >= 0.95 * best.valid).all()
    assert (near.zero_share >= best.zero_share).all()
    assert near.zero_share.mean() > best.zero_share.mean()


def test_a_metric_that_falls_chooses_its_smallest_value():
    models = fit_topics(X, LABELS, SparseDomination(steps=5), valid=VALID, metric="pair_error")
    assert (models.valid < 0.2).all()


def test_early_stopping_leaves_out_the_rest_of_the_path():
    whole = fit_topics(X, LABELS, SparseDomination(), valid=VALID)
    cut = fit_topics(X, LABELS, SparseDomination(), valid=VALID, early_stopping_rounds=20)
    assert (cut.coef - whole.coef).nnz == 0
    soon = fit_topics(X, LABELS, SparseDomination(), valid=VALID, early_stopping_rounds=1)
    assert (soon.valid <= whole.valid).all()


@pytest.mark.parametrize("method", [SparseDomination(steps=4), SampledPairs(n_steps=500)])
def test_one_two_and_five_threads_give_the_same_bits(method):
    coefs = [fit_topics(X, LABELS, method, n_jobs=n).coef for n in (1, 2, 5)]
    for other in coefs[1:]:
        assert other.data.tobytes() == coefs[0].data.tobytes()
        assert other.indices.tobytes() == coefs[0].indices.tobytes()


def test_the_matrix_is_shared_and_not_copied():
    csc = sparse.csc_array(X)
    assert SparseDomination().share(csc, None).X is csc
    assert SampledPairs().share(X, None) is X


def test_a_topic_that_no_document_is_on_gets_no_weights():
    labels = np.column_stack([LABELS[:, 0], np.zeros(300)])
    models = fit_topics(X, sparse.csr_array(labels), SparseDomination(l1=0.01))
    assert np.diff(models.coef.indptr).tolist()[1] == 0
    assert models.settings[1] == {}


def test_every_topic_is_reported_once():
    done = []
    fit_topics(X, LABELS, SparseDomination(l1=0.1), report=done.append)
    assert sorted(done) == list(range(TOPICS))


def test_shapes_that_do_not_fit_are_reported():
    with pytest.raises(DataError, match="X has 300 documents, but grades has 299"):
        fit_topics(X, LABELS[:-1], SparseDomination())
    with pytest.raises(DataError, match="300 documents x 6 topics are expected"):
        fit_topics(X, LABELS, SparseDomination(), valid=(VALID[0], VALID[1][:, :2]))
    with pytest.raises(UsageError, match="within is a share"):
        fit_topics(X, LABELS, SparseDomination(), valid=VALID, within=1.5)


def test_together_one_candidate_is_best_on_average_over_the_topics():
    method = SparseDomination(steps=6)
    models = fit_topics(X, LABELS, method, valid=VALID, together=True)
    alone = [fit_topics(X, LABELS, method, valid=VALID, together=True, min_zero=share)
             for share in (0.5, 0.8, 0.95)]  # fmt: skip
    assert all(models.valid.mean() >= one.valid.mean() for one in alone)
    shares = [
        setting["l1"] / path[0] for setting, path in zip(models.settings, paths(), strict=True)
    ]
    np.testing.assert_allclose(shares, shares[0])  # the same place on each topic's own path


def paths():
    """Return the penalties of each topic's path."""
    for topic in range(TOPICS):
        data = RankingData.from_arrays(X, LABELS[:, topic], group_sizes=[300])
        problem = Domination().bind(data).by_column(sparse.csc_array(X))
        yield falling_l1(problem, steps=6, least=1e-2)


def test_weights_of_each_topic_or_of_all_together_are_as_sparse_as_asked():
    each = fit_topics(X, LABELS, SparseDomination(), valid=VALID, min_zero=0.9)
    assert (each.zero_share >= 0.9).all()
    mean = fit_topics(X, LABELS, SparseDomination(), valid=VALID, together=True, min_zero=0.9)
    assert mean.zero_share.mean() >= 0.9
    none = fit_topics(X, LABELS, SampledPairs(n_steps=2000), valid=VALID, min_zero=0.99)
    assert none.coef.nnz == 0


def test_choosing_together_needs_valid_and_all_candidates():
    with pytest.raises(UsageError, match="together=True needs valid"):
        fit_topics(X, LABELS, SparseDomination(), together=True)
    with pytest.raises(UsageError, match="no early_stopping_rounds"):
        fit_topics(
            X, LABELS, SparseDomination(), valid=VALID, together=True, early_stopping_rounds=2
        )

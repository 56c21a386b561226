"""Relevance from clicks: unbiased by enumeration of all clicks, and what rankers make of it."""

import warnings
from itertools import product

import numpy as np
import pytest
from listed_policies import ATTRACTION, EXAMINATION, SLOTS, pbm, whole_log
from served import client

import rankwright as rw
from benchmarks.clicks import LOSSES, hybrid_search
from rankwright import clicks
from rankwright.clicks import ClickLog, Propensity, debias
from rankwright.clicks.debiasing import (
    _Documents,
    clicks_as_grades,
    joint_propensity,
    weighed_by_ideal,
)
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.export import export_model, verify_export
from rankwright.losses import (
    ApproxNDCG,
    DualSoftmax,
    LambdaRank,
    NeuralNDCG,
    QueryOffset,
    RankNet,
)
from rankwright.testing.losses import value_and_grad

THETA = np.array([1.0, 0.4, 0.25])
RELEVANCE = np.array([0.3, 0.9, 0.5])  # of the documents a, b, c
LISTS = {(0, 1, 2): 0.7, (2, 0, 1): 0.3}  # what the logger shows, and how often


def every_click(lists=LISTS, theta=THETA, offset=(0.0, 0.0, 0.0), relevance=RELEVANCE):
    """Return a log with every list and every outcome, weighted by its probability.

    Sums over it are expectations: what a method returns is its mean over all logs of one session.
    """
    shown, clicked, weight = [], [], []
    for order, share in lists.items():
        p = theta * relevance[list(order)] + np.array(offset)
        for outcome in product((0, 1), repeat=3):
            chance = share * np.prod(np.where(outcome, p, 1 - p))
            shown += order
            clicked += outcome
            weight.append(chance)
    features = RankingData.from_arrays(
        np.eye(3), RELEVANCE, group_sizes=[3], doc_id=["a", "b", "c"]
    )
    return ClickLog.from_arrays(
        np.zeros(len(weight), int),
        np.array(["a", "b", "c"])[shown],
        clicked,
        session_sizes=[3] * len(weight),
        weight=weight,
        features=features,
    )


def in_order(data):
    """Return grades by document id."""
    return data.y[np.argsort(data.doc_id)]


def test_corrected_grades_have_the_expectation_of_relevance():
    known = Propensity(THETA)
    for self_normalize in (True, False):
        for weighted in (True, False):
            found = debias(
                every_click(),
                known,
                method="ips",
                self_normalize=self_normalize,
                weighted=weighted,
            )
            np.testing.assert_allclose(in_order(found), RELEVANCE)
            assert found.position is None
    naive = in_order(clicks_as_grades(every_click()))
    assert naive[0] > naive[2]  # though c is the more relevant of the two


def test_affine_corrections_remove_clicks_that_trust_brings():
    offset = np.array([0.3, 0.05, 0.01])
    log = every_click(theta=THETA * 0.6, offset=offset)
    found = debias(log, Propensity(THETA * 0.6, offset), method="ips")
    np.testing.assert_allclose(in_order(found), RELEVANCE)
    found = debias(log, Propensity(THETA * 0.6), method="ips")
    assert np.abs(in_order(found) - RELEVANCE).max() > 0.05


def test_losses_linear_in_grades_have_the_gradient_of_true_relevance():
    """The mean over all outcomes of the gradient is the gradient at the mean grades."""
    s = np.array([0.2, -0.4, 0.7])
    found = debias(every_click(), Propensity(THETA), method="ips")
    s_of = s[np.argsort(found.doc_id).argsort()]
    truth = found._replace(y=RELEVANCE[np.argsort(found.doc_id).argsort()])
    for loss in (DualSoftmax(), QueryOffset()):
        mean, grad = value_and_grad(loss.bind(found), s_of)
        of_truth, by_truth = value_and_grad(loss.bind(truth), s_of)
        assert mean == pytest.approx(of_truth)
        np.testing.assert_allclose(grad, by_truth)


def test_pairs_of_sessions_are_debiased_on_both_sides():
    """RankNet's mean over outcomes is sum over i, j of r_i (1 - r_j) log(1 + exp(s_j - s_i))."""
    s = np.array([0.2, -0.4, 0.7])
    order = (2, 0, 1)
    log = every_click({order: 1.0})
    lists = debias(log, Propensity(THETA), unit="session", both_sides=True)
    value = RankNet().bind(lists).value(np.tile(s[list(order)], lists.n_queries))
    r = RELEVANCE
    expected = sum(
        r[i] * (1 - r[j]) * np.log1p(np.exp(s[j] - s[i]))
        for i in range(3)
        for j in range(3)
        if i != j
    )
    assert value == pytest.approx(expected)
    one_side = debias(log, Propensity(THETA), unit="session")
    assert one_side.sample_weight[one_side.y == 0].tolist() == [1.0] * 12
    np.testing.assert_allclose(
        one_side.sample_weight[one_side.y == 1], np.tile(1 / THETA, 8)[one_side.y == 1]
    )


def test_clipping_bounds_weights_and_brings_bias():
    log = every_click({(0, 1, 2): 1.0})
    found = debias(log, Propensity(THETA), method="ips", clip=0.5)
    np.testing.assert_allclose(in_order(found), RELEVANCE * THETA / np.maximum(THETA, 0.5))


def simulated(eta=1.0, sessions=60, queries=80, **options):
    data = rw.synthetic("mq2008", queries=queries, seed=3)
    return clicks.simulate(data, 1, eta=eta, sessions=sessions, **options)


def test_a_posterior_is_close_to_clicks_with_much_exposure_and_to_the_regression_with_little():
    log, known = simulated(sessions=20_000, queries=20), Propensity.power(1.0, positions=10)
    posterior, ips = debias(log, known), debias(log, known, method="ips")
    np.testing.assert_allclose(posterior.y, np.minimum(ips.y, 1.0), atol=0.02)
    log = simulated(sessions=20)
    posterior, ips = debias(log, known), debias(log, known, method="ips")
    place = log.to_ranking_data("query").position
    assert posterior.y[place > 5].std() < 0.7 * ips.y[place > 5].std()


def test_estimates_are_bounded_however_rarely_a_document_was_shown():
    """One click at position 10 on a document that was shown once would be a relevance of 10."""
    log = simulated(sessions=1, queries=200, temperature=1.0)
    known = Propensity.power(1.0, positions=10)
    assert debias(log, known, method="ips").y.max() > 5.0
    posterior = debias(log, known).y
    assert posterior.min() >= 0.0
    assert posterior.max() <= 1.0


def test_no_query_dominates_a_loss_relative_to_its_ideal_dcg():
    log = simulated(sessions=5, queries=200, temperature=1.0)
    weight = weighed_by_ideal(LambdaRank(), debias(log, "joint")).query_weight
    assert np.sort(weight)[-5:].sum() < 0.1 * weight.sum()


@pytest.mark.parametrize("strength", [3.0, 30.0])
def test_the_strength_of_the_prior_follows_from_the_dispersion_of_clicks(strength):
    """Relevance is drawn from a gamma distribution around the regression, which trees can learn."""
    rng = np.random.default_rng(0)
    n = 6000
    X = rng.integers(0, 2, size=(n, 1)).astype(float)
    mean = np.where(X[:, 0] > 0, 0.3, 0.1)
    relevance = rng.gamma(strength * mean, 1.0 / strength)
    position = np.tile(np.arange(1, 11), n // 10)
    shown = np.full(n, 40.0)
    known = Propensity.power(0.5, positions=10)
    number = rng.poisson(shown * known.at(position)[0] * relevance)
    rows = RankingData.from_arrays(
        X, number / shown, group_sizes=[10] * (n // 10), sample_weight=shown, position=position
    )
    documents = _Documents(rows, known, None)
    posterior = documents.by_posterior(weighted=True, n_jobs=1)
    assert documents.strength == pytest.approx(strength, rel=0.2)
    exposure = shown * known.at(position)[0]
    expected = (strength * mean + number) / (strength + exposure)
    np.testing.assert_allclose(posterior.y, np.minimum(expected, documents.highest), atol=0.03)
    weight = strength + exposure
    np.testing.assert_allclose(posterior.sample_weight, weight / weight.mean(), rtol=0.2)


def test_posteriors_are_closer_to_relevance_than_inverse_propensity_scores():
    log, known = simulated(eta=2.0, sessions=20), Propensity.power(2.0, positions=10)
    relevance = 0.1 + 0.9 * (2 ** log.features.y[np.unique(log.row)] - 1) / 3
    posterior, ips = debias(log, known), debias(log, known, method="ips")
    assert ((posterior.y - relevance) ** 2).mean() < 0.2 * ((ips.y - relevance) ** 2).mean()


def test_clicks_help_every_family_of_losses_on_a_log_with_few_impressions():
    """Half of these lost up to 0.67 of NDCG@10 by the correction of 0.2.0."""
    train, judged = hybrid_search(0), hybrid_search(1)
    log = clicks.simulate(train, "bm25", eta=0.9, sessions=50, temperature=0.5)
    for loss in LOSSES:
        for model in (rw.models.Linear(l2=0.01), rw.models.Trees()):
            ranker = rw.Ranker(loss=loss, model=model)
            reached = []
            for propensity in (None, "joint"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that positions are not corrected
                    ranker.fit(log, propensity=propensity)
                scores = ranker.predict(judged)
                reached.append(rw.evaluate(judged, scores, "ndcg@10")["ndcg@10"])
            assert reached[1] > reached[0] + 0.01, (loss, model)


def test_amounts_above_1_are_kept():
    """Grades of RankingData can be amounts, such as purchases, instead of click rates."""
    rows = simulated(sessions=500).to_ranking_data("query")
    known = Propensity.power(1.0, positions=10)
    assert debias(rows._replace(y=5.0 * rows.y), known).y.max() > 2.0


def test_documents_that_were_never_shown_have_the_regression_and_a_low_weight():
    log = simulated(positions=3)
    for weighted in (True, False):
        every = debias(log, "joint", unshown=True, weighted=weighted)
        assert every.n_documents == log.features.n_documents
        shown = debias(log, "joint", weighted=weighted)
        assert shown.n_documents == len(np.unique(log.row))
        assert set(every.qid.tolist()) == set(log.query_ids.astype(str).tolist())
        added = np.ones(every.n_documents, bool)
        added[np.isin(every.X[:, 0], log.features.X[log.row, 0])] = False
        assert every.sample_weight[added].max() < every.sample_weight[~added].mean()


def test_fit_learns_from_documents_that_were_never_shown_too():
    """Without them a linear ranker that learned from ten documents a query can invert the rest."""
    train, judged = hybrid_search(0, queries=60), hybrid_search(1)
    log = clicks.simulate(train, "bm25", eta=1.0, sessions=100, positions=4)
    known = Propensity.power(1.0, positions=4)
    for ranker in (rw.Ranker(loss="ranknet"), rw.AdaRank(n_rounds=5)):
        seen = []
        ranker._rounds = lambda *parts, rounds=ranker._rounds, seen=seen: (
            seen.append(parts[1].data) or rounds(*parts)
        )
        ranker.fit(log, propensity=known)
        (data,) = seen
        expected = train.n_documents if ranker.has_loss else len(np.unique(log.row))
        assert data.n_documents == expected
    names = [name for name in train.feature_names if name != "age"]
    kept = rw.Ranker(loss="ranknet").fit(log, propensity=known, drop=["age"])
    assert list(kept.feature_names_in_) == names
    assert rw.evaluate(judged, kept.predict(judged.X[:, [0, 1, 2, 4, 5, 6, 7, 8, 9]]), "ndcg@10")


def test_any_loss_learns_from_a_log_with_any_model():
    log = simulated(eta=2.0)
    truth = log.features
    known = Propensity.power(2.0, positions=10)
    for made in (
        rw.LambdaMART(n_estimators=20),
        rw.Ranker(loss="ranknet"),
        rw.Ranker(loss="dual_softmax"),
        rw.Ranker(loss="query_offset", model="trees"),
        rw.ListNet(),
    ):
        made.fit(log, propensity=known)
        assert made.propensity_ is known
        logger = rw.evaluate(truth, truth.X[:, 0].astype(float), "ndcg@10")["ndcg@10"]
        assert rw.evaluate(truth, made.predict(truth), "ndcg@10")["ndcg@10"] > logger


def test_joint_learning_finds_propensities_and_gains_over_clicks():
    log = simulated(sessions=100, queries=200)
    truth = log.features
    joint = rw.Ranker(loss="dual_softmax").fit(log, propensity="joint")
    np.testing.assert_allclose(joint.propensity_.examination, 1 / np.arange(1, 11), atol=0.06)
    with pytest.warns(UserWarning, match="without a correction for their positions"):
        naive = rw.Ranker(loss="query_offset").fit(log)
    reached = [
        rw.evaluate(truth, one.predict(truth), "ndcg@10")["ndcg@10"] for one in (joint, naive)
    ]
    assert reached[0] > reached[1] + 0.02


def test_data_with_positions_learns_as_its_log_does():
    log = simulated()
    rows = log.to_ranking_data("query")
    known = joint_propensity(log)
    assert joint_propensity(rows).examination.tolist() == known.examination.tolist()
    corrected = debias(log, known, unshown=True)  # rows have no documents that were never shown
    made = [
        rw.Ranker(loss="query_offset").fit(*one) for one in ((corrected,), (debias(log, known),))
    ]
    fitted = [rw.Ranker(loss="query_offset").fit(one, propensity=known) for one in (log, rows)]
    for expected, found in zip(made, fitted, strict=True):
        assert found.coef_.tolist() == expected.coef_.tolist()
    at_once = rw.Ranker(loss="dual_softmax").fit(log)  # which takes positions, without a warning
    assert not hasattr(at_once, "propensity_")


def test_what_makes_no_sense_is_refused():
    log, known = every_click(), Propensity(THETA)
    plain = log.features
    for given, kind, says in (
        ((plain, known), DataError, "no positions"),
        ((log, "naive"), UsageError, "'joint', not 'naive'"),
        ((log, Propensity([1.0])), DataError, "knows 1 to 1"),
    ):
        with pytest.raises(kind, match=says):
            debias(*given)
    for options, says in (
        ({"method": "dr"}, "method"),
        ({"unit": "list"}, "unit"),
        ({"both_sides": True}, "unit='session'"),
        ({"clip": 0.1}, "method='ips'"),
        ({"unshown": True, "method": "ips"}, "unshown"),
    ):
        with pytest.raises(UsageError, match=says):
            debias(log, known, **options)
    with pytest.raises(UsageError, match="does not support offsets"):
        debias(log, Propensity(THETA, np.zeros(3)), unit="session")
    with pytest.raises(DataError, match="grades 0 and 1"):
        debias(log.to_ranking_data("query"), known, unit="session")
    silent = ClickLog.from_arrays([0, 0], ["a", "b"], [0, 0], session_sizes=[2], features=plain)
    with pytest.raises(DataError, match="no click"):
        debias(silent, "joint")


def test_queries_without_a_click_count_in_the_regression():
    """Left out, they would make documents look more relevant than they are."""
    log = simulated(eta=2.0, sessions=1, queries=400)
    relevance = 0.1 + 0.9 * (2 ** log.features.y[np.unique(log.row)] - 1) / 3
    found = debias(log, Propensity.power(2.0, positions=10))
    assert found.y.mean() == pytest.approx(relevance.mean(), rel=0.25)


def test_the_order_of_queries_changes_nothing():
    rows = simulated().to_ranking_data("query")
    known = Propensity.power(1.0, positions=10)
    order = np.random.default_rng(0).permutation(rows.n_queries)
    there, shuffled = debias(rows, known), debias(rows.select(order), known)
    back = shuffled.select(np.argsort(order))
    np.testing.assert_allclose(back.y, there.y, rtol=1e-12, atol=1e-12)


def test_a_ranker_that_learned_from_clicks_is_an_ordinary_one(tmp_path):
    log = simulated()
    made = rw.LambdaMART(n_estimators=5).fit(log, propensity="joint")
    scores = made.predict(log.features)
    made.save(tmp_path / "model.rw")
    back = rw.load_model(tmp_path / "model.rw")
    assert back.predict(log.features).tolist() == scores.tolist()
    assert made.n_features_in_ == log.features.n_features
    export_model(back, "python", tmp_path / "export")
    assert verify_export(tmp_path / "export").largest_difference <= 1e-12
    query = log.features.qid[0]
    assert str(query) in str(rw.explain(back, log.features, query=query))
    rows = log.features.X[:3]
    documents = [{"id": str(k), "features": row.tolist()} for k, row in enumerate(rows)]
    served = client(tmp_path / "model.rw").post(
        "/v1/models/model/score", json={"documents": documents}
    )
    found = served.json()["scores"]
    assert found == pytest.approx(scores[:3].tolist())


def test_clicked_first_orders_of_plackett_luce_have_the_expectation_of_relevance():
    """Each click is a choice among all documents; its weight is one over examination.

    The mean over all outcomes of the likelihood, by hand, is sum of r_i (log sum_j exp(s_j) - s_i),
    which `DualSoftmax` computes on grades by inverse propensity scoring.
    """
    s, order = np.array([0.2, -0.4, 0.7]), [2, 0, 1]
    p = THETA * RELEVANCE[order]
    mean = later = 0.0
    for outcome in product((0, 1), repeat=3):
        chance = np.prod(np.where(outcome, p, 1 - p))
        shown = s[order]
        for place in np.flatnonzero(outcome):
            mean += chance / THETA[place] * (np.log(np.exp(shown).sum()) - shown[place])
            left = np.exp(shown).sum() - np.exp(shown[np.flatnonzero(outcome)][:place]).sum()
            later += chance / THETA[place] * (np.log(left) - shown[place])
    found = debias(
        every_click({tuple(order): 1.0}), Propensity(THETA), method="ips", self_normalize=False
    )
    of_found = s[[ord(name) - ord("a") for name in found.doc_id]]
    assert DualSoftmax().bind(found).value(of_found) == pytest.approx(mean)
    assert mean == pytest.approx(RELEVANCE @ (np.log(np.exp(s).sum()) - s))
    assert abs(later - mean) > 0.1  # choices among what is left are not unbiased


def ideal_dcg(data, k=10):
    """Return the ideal DCG of each query, by sorting."""
    return np.array(
        [
            sum((2**g - 1) / np.log2(r + 2) for r, g in enumerate(sorted(own, reverse=True)[:k]))
            for own in np.split(data.y, data.indptr[1:-1])
        ]
    )


def test_queries_weigh_their_ideal_dcg_in_losses_relative_to_it():
    """So that NDCG of noise counts no more than DCG does."""
    grades = debias(simulated(queries=12), "joint")
    ideal = ideal_dcg(grades)
    for objective in (LambdaRank("ndcg@10"), rw.AdaRank(), NeuralNDCG("ndcg@10")):
        weighed = weighed_by_ideal(objective, grades)
        np.testing.assert_allclose(weighed.query_weight, ideal / ideal.mean())
    whole = ideal_dcg(grades, k=10**6)
    np.testing.assert_allclose(
        weighed_by_ideal(ApproxNDCG(), grades).query_weight, whole / whole.mean()
    )
    given = grades._replace(query_weight=np.arange(1.0, 13.0))
    weighed = weighed_by_ideal(LambdaRank("ndcg@10"), given).query_weight
    np.testing.assert_allclose(weighed, given.query_weight * ideal / weighed_mean(given, ideal))
    for objective in (LambdaRank("dcg@10"), RankNet(), DualSoftmax(), None):
        assert weighed_by_ideal(objective, grades) is grades
    assert weighed_by_ideal(rw.AdaRank(metric=lambda y, s: 0.0), grades) is grades


def weighed_mean(data, ideal):
    return float((data.query_weight * ideal).mean())


def test_lambdarank_on_estimates_is_that_of_dcg():
    """With the weights, the gradient of NDCG's is DCG's, up to a constant."""
    grades = debias(simulated(queries=12), "joint")
    s = np.random.default_rng(1).normal(size=grades.n_documents)
    loss = LambdaRank("ndcg@10", normalize=False)
    _, grad = value_and_grad(loss.bind(weighed_by_ideal(loss, grades)), s)
    _, of_dcg = value_and_grad(LambdaRank("dcg@10", normalize=False).bind(grades), s)
    np.testing.assert_allclose(grad * ideal_dcg(grades).mean(), of_dcg, atol=1e-12)
    seen = []
    made = rw.Ranker(loss=loss, model=rw.models.Trees(n_estimators=1))
    made.make_loss = lambda: Recorded(loss, seen)
    made.fit(simulated(queries=12), propensity="joint")
    every = debias(simulated(queries=12), "joint", unshown=True)
    weights = weighed_by_ideal(loss, every).query_weight
    np.testing.assert_allclose(np.sort(seen[-1].query_weight), np.sort(weights))


class Recorded:
    """A loss that keeps the data it is bound to."""

    def __init__(self, loss, seen):
        self.loss, self.seen, self.traits, self.metric = loss, seen, loss.traits, loss.metric

    def bind(self, data, *, n_jobs=None):
        self.seen.append(data)
        return self.loss.bind(data, n_jobs=n_jobs)


def test_how_likely_documents_were_shown_does_not_enter_their_relevance():
    """On the whole distribution of a log estimates are exact, with and without probabilities."""
    log = whole_log(pbm)
    bare = log._replace(propensity=None)
    for self_normalize in (True, False):
        for one in (log, bare):
            found = debias(
                one, Propensity(EXAMINATION), method="ips", self_normalize=self_normalize
            )
            np.testing.assert_allclose(found.y[np.argsort(found.doc_id)], ATTRACTION, rtol=1e-9)
    shown = log.impression_weights()
    divided = np.bincount(log.row, shown * log.click / log.propensity) / np.bincount(log.row, shown)
    assert np.abs(divided - ATTRACTION).min() > 0.02  # not what it would be in place of looks


def test_positions_of_two_layouts_are_numbered_apart():
    """Phones, where few look below the first document, beside desktops."""
    wide, narrow = whole_log(pbm), whole_log(lambda rows: lambda c: phone(rows, len(c)))
    both = clicks.concatenate_logs([wide, narrow._replace(position=narrow.position + SLOTS)])
    both = both._replace(features=wide.features, row=np.concatenate((wide.row, narrow.row)))
    known = Propensity(np.concatenate((EXAMINATION, PHONE)))
    found = debias(both, known, method="ips")
    np.testing.assert_allclose(found.y[np.argsort(found.doc_id)], ATTRACTION, rtol=1e-9)


PHONE = np.array([0.9, 0.05])


def phone(rows, slot):
    return PHONE[slot] * ATTRACTION[rows[slot]]

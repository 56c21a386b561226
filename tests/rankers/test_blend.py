"""`Blend`: what is fitted to what, when one member is kept, and that it is a ranker like others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from small_data import small_data

import rankwright as rw
from rankwright import registry
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.persist import runtime
from rankwright.rankers import blend as module
from rankwright.rankers.base import Ranker
from rankwright.rankers.stacking import Stack

DATA, VALID = small_data(queries=15, documents=10), small_data(queries=8, documents=10, seed=1)


def quick(**more):
    members = ["memr", rw.GBDT(n_estimators=6, min_child_samples=3)]
    return rw.Blend(members, **{"folds": 3, **more})


BLEND = quick().fit(DATA)


def test_members_are_fitted_to_all_data_and_weights_to_folds():
    folds = {
        name: rw.out_of_fold(one, DATA, 3, choose_rounds=True)
        for name, one in zip(("memr", "gbdt"), quick().members, strict=True)
    }
    rounds = folds["gbdt"].rounds_for(15)
    alone = [rw.MEMR().fit(DATA), rw.GBDT(n_estimators=rounds, min_child_samples=3).fit(DATA)]
    scores = np.array([one.by_repeat for one in folds.values()])
    stack = Stack(DATA, scores, rw.metric("ndcg@10"))
    weights = stack.fit_weights(100.0)
    factors = weights / stack.deviations
    expected = sum(f * one.predict(VALID) for f, one in zip(factors, alone, strict=True))
    np.testing.assert_allclose(BLEND.predict(VALID), expected, rtol=1e-12)
    assert BLEND.weights_ == pytest.approx(dict(zip(("memr", "gbdt"), weights, strict=True)))
    np.testing.assert_array_equal(BLEND.out_of_fold_["gbdt"].scores, folds["gbdt"].scores)


def test_weights_of_the_callers_own_are_kept_in_proportion():
    fixed = quick(weights=(1, 3)).fit(DATA)
    assert fixed.weights_ == {"gbdt": 0.75, "memr": 0.25}
    np.testing.assert_array_equal(fixed.model_.deviations, BLEND.model_.deviations)
    alone = quick(weights=(0, 2)).fit(DATA)
    assert alone.weights_ == {"gbdt": 1.0}


def test_validation_data_choose_the_rounds_of_members():
    found = quick().fit(DATA, eval_set=VALID)
    alone = rw.GBDT(n_estimators=6, min_child_samples=3).fit(DATA, eval_set=VALID)
    assert found.model_.members[1].n_trees == alone.best_iteration_
    assert len(found.curve_["valid ndcg@10"]) == found.best_iteration_ == 1


def test_one_member_is_kept_where_it_is_clearly_better():
    rng = np.random.default_rng(0)
    noise = DATA._replace(y=rng.permutation(DATA.y))

    class Misled(rw.MEMR):
        """Learns nothing of use."""

        def fit(self, X, *args, **more):
            return super().fit(X._replace(y=rng.permutation(X.y)), *args, **more)

    kept = rw.Blend([rw.MEMR(), Misled()], folds=3).fit(DATA)
    assert kept.weights_ == {"memr": 1.0}
    np.testing.assert_allclose(
        kept.predict(VALID) * kept.model_.deviations[0], rw.MEMR().fit(DATA).predict(VALID)
    )
    both = rw.Blend([rw.MEMR(), rw.MEMR(l2=2.0)], folds=3).fit(noise)
    assert len(both.weights_) == 2  # neither is clearly better


def test_a_single_member_must_lead_by_three_standard_errors(monkeypatch):
    data = small_data(queries=4, documents=5)
    stack = Stack(data, np.zeros((2, 1, 20)), rw.metric("ndcg@10"))
    values = np.array([[0.5, 0.6, 0.7, 0.8], [0.0, 0.0, 0.0, 0.0]])
    monkeypatch.setattr(Stack, "members_per_query", lambda _: values)
    for lead, expected in (
        ([0.0, 0.1, 0.2, 0.2], None),
        ([0.1, 0.1, 0.1, 0.2], 0),
        ([0] * 4, None),
    ):
        blended = values[0] - np.array(lead)
        monkeypatch.setattr(Stack, "cross_fitted", lambda *_, blended=blended: blended)
        assert module.best_alone(stack, 100.0, 0) == expected


def test_too_few_queries_for_folds_leave_equal_weights():
    one = small_data(queries=1, documents=40)
    found = quick().fit(one)
    assert found.weights_ == {"memr": 0.5, "gbdt": 0.5}
    assert found.out_of_fold_ == {}
    scores = [m.scores(one.X) for m in found.model_.members]
    np.testing.assert_allclose(found.model_.deviations, [s.std() for s in scores])
    assert len(quick().fit(small_data(queries=2, documents=20)).out_of_fold_) == 2


def test_the_default_members_are_of_every_family_that_takes_the_data():
    assert {*module.default_members()} >= {"memr", "gbrank", "random_forest"}
    gaps = DATA._replace(X=np.where(DATA.X > 1.5, np.nan, DATA.X))
    assert {*module.default_members(gaps)} == {"gbrank", "random_forest"}
    kinds = pd.Categorical(["even" if x > 0 else "odd" for x in DATA.X[:, 5]])
    frame = pd.DataFrame({"a": DATA.X[:, 0], "kind": kinds})
    found = rw.Blend(folds=2).fit(frame, DATA.y, qid=DATA.query_of_row())
    assert {*found.weights_} <= {"gbrank", "random_forest"}
    with pytest.raises(IncompatibleError, match="takes numbers, and 'kind' is a category"):
        rw.Blend(["memr", "gbrank"]).fit(frame, DATA.y, qid=DATA.query_of_row())


# --- a ranker like any other -------------------------------------------------------------------


def test_a_file_holds_the_members_and_their_parameters(tmp_path):
    BLEND.save(tmp_path / "b.rw")
    again = rw.load_model(tmp_path / "b.rw")
    np.testing.assert_array_equal(again.predict(VALID), BLEND.predict(VALID))
    assert again.weights_ == BLEND.weights_
    assert again.get_params()["gbdt__n_estimators"] == 6
    np.testing.assert_array_equal(clone(again).fit(DATA).predict(VALID), BLEND.predict(VALID))
    fast = runtime.load(tmp_path / "b.rw")
    np.testing.assert_array_equal(fast.scores(VALID.X), BLEND.predict(VALID.X))


def test_any_number_of_threads_gives_the_same_bytes(tmp_path):
    for threads in (1, 2, 5):
        quick(n_jobs=threads).fit(DATA).save(tmp_path / f"{threads}.rw")
    files = {(tmp_path / f"{threads}.rw").read_bytes() for threads in (1, 2, 5)}
    assert len(files) == 1


def test_contributions_of_features_add_up_over_members():
    found = rw.explain(BLEND, VALID, query=0)
    place = found.documents[0]
    assert place.above_mean == pytest.approx(sum(place.parts.values()))
    pair = rw.explain(BLEND, VALID, query=0, docs=[1, 2])
    assert pair.method == "the members' own contributions"
    assert pair.lead == pytest.approx(sum(part.part for part in pair.parts) + pair.rest)
    assert pair.swaps


def test_members_have_parameters_of_their_own():
    made = rw.Blend(["memr", "gbrank", rw.GBRank(num_leaves=5)])
    assert made.get_params()["gbrank_2__num_leaves"] == 5
    before = made.members[2]
    made.set_params(gbrank__num_leaves=9, gbrank_2__n_estimators=3, folds=2)
    assert [made.members[1].num_leaves, made.members[2].n_estimators, made.folds] == [9, 3, 2]
    assert before.n_estimators == 100
    with pytest.raises(UsageError, match="Blend has no parameter 'gbdt__num_leaves'"):
        made.set_params(gbdt__num_leaves=3)
    named = rw.Blend(["memr"], metric="map", convention="letor4", n_jobs=2, random_state=7)
    member = named._named_members()["memr"]
    common = (member.metric, member.convention, member.n_jobs, member.random_state)
    assert common == ("map", "letor4", 2, 7)


def test_names_may_be_one_text():
    a = rw.Blend("memr,linear_regression", folds=2).fit(DATA)
    b = rw.Blend(["memr", "linear_regression"], folds=2).fit(DATA)
    np.testing.assert_array_equal(a.predict(VALID), b.predict(VALID))


def test_a_blend_of_fitted_rankers_needs_no_fit(tmp_path):
    fitted = {"a": rw.MEMR().fit(DATA), "b": rw.GBDT(n_estimators=4).fit(DATA)}
    made = rw.Blend.of(fitted, [2.0, 1.0])
    expected = 2.0 * fitted["a"].predict(VALID) + fitted["b"].predict(VALID)
    np.testing.assert_allclose(made.predict(VALID), expected, rtol=1e-14)
    made.save(tmp_path / "m.rw")
    np.testing.assert_array_equal(
        rw.load_model(tmp_path / "m.rw").predict(VALID), made.predict(VALID)
    )
    assert made.score(VALID) > 0.5
    with pytest.raises(DataError, match="b was fitted to other features than the first"):
        rw.Blend.of({"a": fitted["a"], "b": rw.MEMR().fit(small_data(features=4))}, [1, 1])


# --- progress and Ctrl-C --------------------------------------------------------------------


def count_fits(monkeypatch, stop_at=None):
    """Count the fits of members; interrupt one of them before it begins."""
    usual, names = Ranker.fit, []

    def fit(self, *data, **more):
        if self.name != "blend":
            names.append(self.name)
            if len(names) == stop_at:
                raise KeyboardInterrupt
        return usual(self, *data, **more)

    monkeypatch.setattr(Ranker, "fit", fit)
    return names


def test_a_blend_takes_no_checkpoint(tmp_path):
    with pytest.raises(UsageError, match="a model 'blend' cannot be resumed"):
        quick().fit(DATA, checkpoint=tmp_path)


def test_progress_shows_the_rounds_of_every_fit():
    shown = []
    made = rw.Blend([rw.GBDT(n_estimators=3), "memr"], folds=2)
    made.fit(DATA, progress=lambda *shown_round: shown.append(shown_round))
    fits = [(number, text.partition(",")[0]) for number, text in shown[:-1]]
    expected = [(1, "gbdt on folds"), (2, "memr on folds"), (3, "gbdt"), (4, "memr")]
    assert list(dict.fromkeys(fits)) == expected
    assert shown[-1][1].startswith("loss ")


def test_ctrl_c_keeps_the_members_that_are_done(monkeypatch):
    count_fits(monkeypatch, stop_at=6)
    found = rw.Blend(["memr", "linear_regression"], folds=2)
    with pytest.raises(KeyboardInterrupt):
        found.fit(DATA)
    assert found.interrupted_
    assert found.weights_ == {"memr": 1.0}


def test_ctrl_c_on_the_folds_leaves_nothing(monkeypatch):
    count_fits(monkeypatch, stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        rw.Blend(["memr", "linear_regression"], folds=2).fit(DATA)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "error", "sentence"),
    [
        (rw.Blend([]), UsageError, "a blend needs at least one member"),
        (rw.Blend(5), UsageError, r"not 5; write Blend\(\['memr', 'gbrank'\]\)"),
        (rw.Blend("memr,nothing"), UsageError, "there is no ranker 'nothing'"),
        (rw.Blend(["nothing"]), UsageError, "there is no ranker 'nothing'"),
        (rw.Blend([3]), UsageError, "is a ranker or its name, not 3"),
        (rw.Blend([rw.Blend()]), UsageError, "cannot be a member of another"),
        (rw.Blend(["cofirank"]), IncompatibleError, "cofirank scores the items of the users"),
        (rw.Blend(["memr"], weights=(1, 2)), UsageError, "2 weights for 1 members"),
        (rw.Blend(["memr"], weights=(-1,)), UsageError, "0 or more, and not all 0"),
        (rw.Blend(["memr"], weights="x"), UsageError, "weights must be numbers"),
        (rw.Blend(weights=(1,)), UsageError, 'members that are named, not "auto"'),
        (rw.Blend(["memr"], folds=1), UsageError, "folds must be 2 or more"),
        (rw.Blend(["memr"], shrinkage=-1), UsageError, "shrinkage must be 0 or more"),
    ],
)
def test_what_makes_no_sense_is_reported_before_any_work(made, error, sentence):
    with pytest.raises(error, match=sentence):
        made.fit(DATA)


def test_a_blend_is_not_continued():
    with pytest.raises(UsageError, match="a blend is not continued"):
        quick().fit(DATA, init_model=BLEND)


def test_it_is_registered_but_its_model_is_not_chosen_by_name():
    assert registry.RANKERS["blend"].endswith(":Blend")
    assert "blend" not in registry.MODELS

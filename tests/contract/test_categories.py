"""Categories end to end in trees: LightGBM's own predictions, and values found by name later."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import run, run_json, sentence
from forests import as_bytes

import rankwright as rw
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.export.folder import export_model, verify_export

FEATURES = ["x", "shop", "size"]
SHOPS = list("abcdefghij")
SMALL = {
    "n_estimators": 8, "num_leaves": 15, "learning_rate": 0.2, "min_child_samples": 20,
    "colsample_bytree": 1.0,
}  # fmt: skip
LIGHTGBM = {
    "objective": "regression",
    "num_leaves": 15,
    "learning_rate": 0.2,
    "min_data_in_leaf": 20,
    "feature_pre_filter": False,
    "deterministic": True,
    "verbosity": -1,
    "num_threads": 1,
}


def made(seed, shops=SHOPS, queries=150):
    """Grades that hang on the shop by its name, whatever the order of the categories."""
    rng = np.random.default_rng(seed)
    n = 10 * queries
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 10), "x": rng.normal(size=n)})
    name = rng.choice(shops, n)
    frame["shop"] = pd.Categorical(name)
    sizes = rng.choice(3, n)
    frame["size"] = pd.Categorical.from_codes(sizes, ["s", "m", "l"], ordered=True)
    worth = np.array([(ord(one) * 7) % 5 - 2.0 for one in name])
    frame["grade"] = np.digitize(frame["x"] + worth + sizes + rng.normal(size=n), [0, 2, 3])
    frame.loc[::17, "shop"] = None
    return frame


@pytest.fixture(scope="module")
def frame():
    return made(0)


@pytest.fixture(scope="module")
def fitted(frame):
    return rw.GBDT(**SMALL).fit(frame, "grade", qid="query")


@pytest.fixture(scope="module")
def theirs(frame):
    """LightGBM on the same pandas frame, which finds the categories itself."""
    return lgb.train(LIGHTGBM, lgb.Dataset(frame[FEATURES], frame["grade"].astype(float)), 8)


def close(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


def other_values(frame):
    """Other orders of the categories, a value that was never seen, and a missing one."""
    changed = made(3)
    changed["shop"] = changed["shop"].cat.rename_categories({"c": "new"})
    changed["shop"] = changed["shop"].cat.reorder_categories([*"jihgfed", "new", "b", "a"])
    return changed


# --- against LightGBM ------------------------------------------------------------------------


def test_predictions_are_those_of_lightgbm_on_the_same_frame(frame, fitted, theirs):
    assert fitted.booster_.trees_to_dataframe()["decision_type"].isin(["=="]).any()
    close(fitted.predict(frame[FEATURES]), theirs.predict(frame[FEATURES]))


def test_categories_of_another_frame_are_found_by_value_as_lightgbm_does(frame, fitted, theirs):
    changed = other_values(frame)
    close(fitted.predict(changed[FEATURES]), theirs.predict(changed[FEATURES]))


def test_the_order_of_categories_does_not_change_the_model(frame, fitted):
    turned = frame.assign(shop=frame["shop"].cat.reorder_categories(SHOPS[::-1]))
    again = rw.GBDT(**SMALL).fit(turned, "grade", qid="query")
    assert (again.predict(frame[FEATURES]) == fitted.predict(frame[FEATURES])).all()
    assert as_bytes(again.model_) == as_bytes(fitted.model_)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(SHOPS[::-1])], ids=["cat", "enum"])
def test_frames_of_other_packages_give_the_same_model(frame, fitted, kind):
    plain = frame.drop(columns="size")
    wanted = rw.GBDT(**SMALL).fit(plain, "grade", qid="query")
    shop = pl.Series([None if v != v else v for v in plain["shop"].tolist()], dtype=kind)
    other = pl.DataFrame(plain.drop(columns="shop").to_dict("list")).with_columns(shop=shop)
    again = rw.GBDT(**SMALL).fit(other, "grade", qid="query")
    assert as_bytes(again.model_) == as_bytes(wanted.model_)
    assert (again.predict(other) == wanted.predict(plain[["x", "shop"]])).all()


def test_named_codes_of_numbers_are_categories_as_before(frame):
    codes = frame["shop"].cat.codes.to_numpy().astype(float)
    X = np.column_stack([frame["x"], np.where(codes < 0, np.nan, codes)])
    named = rw.GBDT(**SMALL, categorical_feature=[1]).fit(X, frame["grade"], qid=frame["query"])
    typed = rw.GBDT(**SMALL).fit(frame.drop(columns="size"), "grade", qid="query")
    assert (named.predict(X) == typed.predict(frame[["x", "shop"]])).all()
    both = rw.GBDT(**SMALL, categorical_feature=["shop"])
    both.fit(frame.drop(columns="size"), "grade", qid="query")
    assert as_bytes(both.model_) == as_bytes(typed.model_)


@pytest.mark.parametrize("name", ["lambdamart", "xendcg", "random_forest"])
def test_every_ranker_of_trees_takes_them(frame, name):
    size = {"n_bags": 3} if name == "random_forest" else {"n_estimators": 3}
    made_of = rw.ranker(name, **size).fit(frame, "grade", qid="query")
    without = rw.ranker(name, **size).fit(frame.drop(columns="shop"), "grade", qid="query")
    assert made_of.score(frame[FEATURES], frame["grade"], qid=frame["query"]) > 0.03 + (
        without.score(frame[["x", "size"]], frame["grade"], qid=frame["query"])
    )


# --- what a caller may give ------------------------------------------------------------------


def test_columns_may_come_in_another_order_or_as_text(frame, fitted):
    wanted = fitted.predict(frame[FEATURES])
    assert (fitted.predict(frame[["size", "x", "shop"]]) == wanted).all()
    text = frame.assign(shop=frame["shop"].astype(object), size=frame["size"].astype(str))
    assert (fitted.predict(text[FEATURES]) == wanted).all()


def test_ranking_data_with_other_codes_is_brought_in_order(frame, fitted):
    changed = other_values(frame)
    data = rw.RankingData.from_frame(changed, qid="query", label="grade")
    assert data.categories["shop"] != fitted.categories_["shop"]
    assert (fitted.predict(data) == fitted.predict(changed[FEATURES])).all()
    assert fitted.rank(data).order.tolist() == (
        fitted.rank(changed[FEATURES], qid=changed["query"]).order.tolist()
    )


@pytest.mark.parametrize("as_text", [False, True])
def test_a_validation_set_is_read_by_value(frame, as_text):
    valid = other_values(frame)
    valid["query"] = "other " + valid["query"].astype(str)
    shop = valid["shop"].astype(object) if as_text else valid["shop"]
    tupled = (valid.assign(shop=shop)[FEATURES], valid["grade"], valid["query"])
    ranker = rw.GBDT(**SMALL).fit(frame, "grade", qid="query", eval_set=tupled)
    value = ranker.score(valid[FEATURES], valid["grade"], qid=valid["query"])
    assert ranker.evals_result_["valid"]["ndcg@10"][ranker.best_iteration_ - 1] == (
        pytest.approx(value, abs=1e-12)
    )


def test_numbers_in_place_of_names_are_refused(frame, fitted):
    with pytest.raises(DataError, match="'shop' holds numbers, where categories such as 'a', 'b'"):
        fitted.predict(frame[FEATURES].assign(shop=1.0))
    numbers = rw.GBDT(**SMALL).fit(frame[["query", "x", "grade"]], "grade", qid="query")
    with pytest.raises(DataError, match="'x' of X is a category, and the ranker was fitted to it"):
        numbers.predict(frame[["shop"]].rename(columns={"shop": "x"}))


@pytest.mark.parametrize("name", ["memr", "ranknet", "rankboost", "coordinate_ascent"])
def test_other_models_refuse_them_by_name(frame, name):
    wanted = "takes numbers, and 'shop', 'size' are categories; use a model of trees"
    with pytest.raises(IncompatibleError, match=wanted):
        rw.ranker(name).fit(frame, "grade", qid="query")


def test_a_sign_for_a_category_is_refused(frame):
    ranker = rw.GBDT(**SMALL, monotone_constraints={"shop": 1})
    with pytest.raises(UsageError, match="sign for 'shop', which is a category without order"):
        ranker.fit(frame, "grade", qid="query")
    rw.GBDT(**SMALL, monotone_constraints={"size": 1}).fit(frame, "grade", qid="query")


def test_a_fit_goes_on_from_another_by_value(frame, fitted, theirs):
    later = other_values(frame)
    longer = rw.GBDT(**SMALL).fit(later, "grade", qid="query", init_model=fitted)
    assert longer.categories_ == fitted.categories_
    known = later.assign(shop=later["shop"].cat.set_categories(SHOPS))  # LightGBM goes by code here
    data = lgb.Dataset(known[FEATURES], known["grade"].astype(float))
    both = lgb.train(LIGHTGBM, data, 8, init_model=theirs)
    close(longer.predict(later[FEATURES]), both.predict(known[FEATURES]))


def test_auto_tries_trees(frame):
    found = rw.auto(rw.RankingData.from_frame(frame[:600], qid="query", label="grade"))
    boosted = {"xendcg", "gbdt", "gbrank", "lambdamart", "intervalrank"}
    assert {each.ranker for each in found.candidates} == {*boosted, "random_forest"}
    assert "3 features of which 2 are categories" in found.why


# --- what is kept ----------------------------------------------------------------------------


def test_a_model_file_keeps_them(frame, fitted, tmp_path):
    from rankwright.persist import runtime

    fitted.save(tmp_path / "m.rw")
    loaded = rw.load_model(tmp_path / "m.rw")
    assert loaded.categories_ == fitted.categories_
    changed = other_values(frame)
    wanted = fitted.predict(changed[FEATURES])
    assert (loaded.predict(changed[FEATURES]) == wanted).all()
    data = rw.RankingData.from_frame(changed, qid="query", label="grade")
    assert (runtime.load(tmp_path / "m.rw").scores(data) == wanted).all()


def test_a_checkpoint_is_of_the_same_categories(frame, tmp_path):
    whole = rw.GBDT(**SMALL).fit(frame, "grade", qid="query")

    def stop(t, _):
        if t == 5:
            raise RuntimeError

    kept = rw.Checkpoint(tmp_path / "kept", every=2)
    with pytest.raises(RuntimeError):
        rw.GBDT(**SMALL).fit(frame, "grade", qid="query", checkpoint=kept, progress=stop)
    renamed = frame.assign(shop=frame["shop"].cat.rename_categories({"a": "aa"}))
    again = rw.Checkpoint(tmp_path / "kept", every=2, resume=True)
    with pytest.raises(UsageError, match="another run: training data was"):
        rw.GBDT(**SMALL).fit(renamed, "grade", qid="query", checkpoint=again)
    again = rw.Checkpoint(tmp_path / "kept", every=2, resume=True)
    resumed = rw.GBDT(**SMALL).fit(frame, "grade", qid="query", checkpoint=again)
    assert resumed.resumed_from_ is not None
    assert as_bytes(resumed.model_) == as_bytes(whole.model_)


@pytest.mark.parametrize("to", ["lightgbm", "json", "python"])
def test_an_export_holds_and_knows_the_values(frame, fitted, tmp_path, to):
    about = export_model(fitted, to, tmp_path / "out")
    assert about["features"][1]["categories"] == SHOPS
    assert about["parity"]["kinds"]["category"] > 10
    assert verify_export(tmp_path / "out").largest_difference < 1e-12
    if to == "lightgbm":
        theirs = lgb.Booster(model_file=str(tmp_path / "out" / "model.txt"))
        changed = other_values(frame)
        close(theirs.predict(changed[FEATURES]), fitted.predict(changed[FEATURES]))
    if to == "python":
        names = {}
        exec((tmp_path / "out" / "rankwright_model.py").read_text(), names)  # noqa: S102
        row = {"x": 0.5, "shop": "c", "size": "m"}
        wanted = fitted.predict(pd.DataFrame([row, {**row, "shop": "none of them"}]))
        assert names["score"](row) == wanted[0]
        assert names["score"]({**row, "shop": "none of them"}) == wanted[1]


@pytest.mark.parametrize("to", ["onnx", "xgboost-json", "solr", "ranklib", "vespa"])
def test_a_target_without_splits_on_categories_is_refused(fitted, tmp_path, to):
    with pytest.raises(UsageError, match="splits on categories"):
        export_model(fitted, to, tmp_path / "out")


# --- what is shown ---------------------------------------------------------------------------


def test_explanations_show_the_value(frame, fitted):
    data = rw.RankingData.from_frame(other_values(frame), qid="query", label="grade")
    shops = data.to_frame()["shop"].tolist()[:10]
    assert isinstance(shops[1], str)
    assert isinstance(shops[2], str)
    for pair in ((2, 3), (4, 6)):
        found = rw.explain(fitted, data, query=0, docs=pair)
        upper, lower = (shops[int(place.document) - 1] for place in (found.upper, found.lower))
        known = [one if one != "new" else "missing" for one in (upper, lower)]
        part = next(part for part in found.parts if part.feature == "shop")
        assert [part.upper, part.lower] == known
        assert f"shop: {known[0]} against {known[1]}" in str(found)
        for swap in found.swaps:
            if swap.feature == "shop":
                _check_swap(fitted, data, found, swap)
    assert any(swap.feature == "shop" for swap in found.swaps)
    moved = rw.explain(fitted, data, query=0, docs=[2], against=rw.GBDT(n_estimators=1).fit(data))
    assert {shift.feature: shift.value for shift in moved.shifts}["shop"] == shops[1]


def _check_swap(fitted, data, found, swap):
    """Change that category in the frame, and see that the two documents change places."""
    frame = data.to_frame()[:10]
    row = int(swap.document) - 1
    frame["shop"] = frame["shop"].astype(object)
    frame.loc[row, "shop"] = swap.needed
    scores = fitted.predict(frame[FEATURES])
    upper, lower = int(found.upper.document) - 1, int(found.lower.document) - 1
    assert scores[upper] < scores[lower]


def test_importance_names_them(frame, fitted):
    data = rw.RankingData.from_frame(other_values(frame), qid="query", label="grade")
    for kind in ("gain", "split", "shap", "permutation"):
        found = rw.importance(fitted, kind, data=data, repeats=1)
        assert set(found) == set(FEATURES)
        assert found["shop"] > 0


def test_the_command_line_takes_them_from_a_table(frame, tmp_path):
    frame.to_parquet(tmp_path / "train.parquet")
    other_values(frame).to_parquet(tmp_path / "test.parquet")
    model = tmp_path / "m.rw"
    given = ("--set", "n_estimators=5", "--save", model)
    train = ("train", "gbdt", "--train", tmp_path / "train.parquet", *given)
    found = run_json(*train, "--test", tmp_path / "test.parquet")
    loaded = rw.load_model(model)
    test = rw.load(tmp_path / "test.parquet")
    assert found["test"]["ndcg@10"] == pytest.approx(loaded.score(test), abs=1e-12)
    shown = run("explain", model, tmp_path / "test.parquet", "--query", 0, "--docs", 2, 3).stdout
    assert "shop: " in shown
    assert "against" in shown
    said = sentence("train", "memr", "--train", tmp_path / "train.parquet")
    assert "'shop', 'size' are categories" in said
    said = sentence("convert", tmp_path / "train.parquet", tmp_path / "out.txt")
    assert "cannot hold categories ('shop', 'size')" in said


def test_compare_and_its_report_take_them(frame, tmp_path):
    data = rw.RankingData.from_frame(frame, qid="query", label="grade")
    rankers = {"trees": rw.GBDT(**SMALL), "linear": rw.MEMR()}
    found = rw.compare(data, rankers, folds=3, cache=tmp_path / "cache", jobs=1)
    assert "are categories" in found.failures["linear"]
    from rankwright.comparison.report import report_content

    for query in report_content(found)["opened"].values():
        assert set(query["features"]["1"]) <= {*SHOPS, None}


# --- serving ---------------------------------------------------------------------------------


@pytest.fixture
def served(fitted, tmp_path):
    pytest.importorskip("starlette")
    from served import client

    fitted.save(tmp_path / "m.rw")
    return lambda **settings: client(tmp_path / "m.rw", **settings)


DOCUMENTS = [
    {"x": 0.5, "shop": "c", "size": "l"},
    {"x": 0.4, "shop": "none of them", "size": "s"},
    {"x": 0.1, "shop": None},
]


def test_a_server_takes_categories_as_text(fitted, served):
    rows = pd.DataFrame(DOCUMENTS)
    wanted = fitted.predict(rows).tolist()
    request = {"documents": [{"features": one} for one in DOCUMENTS]}
    web = served(missing="nan")
    assert web.post("/v1/models/m/score", json=request).json()["scores"] == wanted
    in_order = [[one["x"], one["shop"], one.get("size")] for one in DOCUMENTS]
    request = {"documents": [{"features": one} for one in in_order]}
    assert web.post("/v1/models/m/score", json=request).json()["scores"] == wanted
    about = web.get("/v1/models/m").json()["models"][0]
    assert about["categories"] == {"shop": SHOPS, "size": ["s", "m", "l"]}


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"x": "c"}, "documents[0].features.x must be a number; null is a missing value"),
        (["c", "c", "s"], "documents[0].features[0] must be a number; null is a missing value"),
        ({"shop": 3}, "feature 'shop' is a category; give it as text, not 3"),
    ],
)
def test_a_server_says_what_is_wrong_with_a_category(served, features, said):
    answer = served().post("/v1/models/m/score", json={"documents": [{"features": features}]})
    assert answer.status_code == 422
    assert said in answer.json()["error"]


def test_a_server_that_takes_no_gaps_takes_no_unknown_category(served):
    whole = {"x": 1.0, "shop": "none", "size": "s"}
    answer = served(missing="error").post(
        "/v1/models/m/score", json={"documents": [{"features": whole}]}
    )
    assert answer.status_code == 422
    assert "does not know the category 'none' of feature 'shop'" in answer.json()["error"]

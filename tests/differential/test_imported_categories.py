"""Imported models find the categories of a frame by value, as LightGBM and XGBoost do.

A value that was not seen in training is missing, as LightGBM has it. XGBoost 3.2 means to refuse
it, and does so where it sorts after all others; any other it takes for the next one.
"""

import json

import lightgbm
import numpy as np
import pytest
from other_models import QID, SIZES

import rankwright as rw
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError, UsageError
from rankwright.export import export_model

pd = pytest.importorskip("pandas")
xgboost = pytest.importorskip("xgboost")

TOWNS = ["Zug", "York", "Xi'an", "Aarhus", "Bonn", "Cork"]  # in no order
SIZE = ["small", "medium", "large"]


def _frame(seed=0, *, booleans=False):
    rng = np.random.default_rng(seed)
    n = len(QID)
    frame = pd.DataFrame(
        {
            "price": rng.normal(size=n),
            "town": pd.Categorical(rng.choice(TOWNS, n), TOWNS),
            "stock": rng.integers(0, 5, n).astype(float),
            "code": pd.Categorical(rng.choice([30, 7, 512], n)),
            "size": pd.Categorical(rng.choice(SIZE, n), SIZE, ordered=True),
        }
    )
    if booleans:  # and numbers with a point, which XGBoost does not take
        frame["new"] = pd.Categorical(rng.choice([True, False], n))
        frame["share"] = pd.Categorical(rng.choice([0.5, 0.25], n))
    frame.loc[rng.random(n) < 0.05, "town"] = np.nan
    return frame


def _grades(frame):
    effect = frame["price"] + 2.0 * (frame["town"].cat.codes % 3) + frame["stock"]
    effect += 1.5 * (frame["code"].cat.codes == 1) + 2.0 * (frame["size"].cat.codes == 1)
    return np.digitize(effect, [0.5, 2.0, 4.0])


def _spanish(frame):
    return frame.assign(town=frame["town"].cat.rename_categories({"Cork": "Córdoba"}))


def _others(frame):
    """Return frames that hold the same under other codes, or what was not seen in training."""
    turned = frame.copy()
    for name in ("town", "code"):
        turned[name] = frame[name].cat.reorder_categories(list(frame[name].cat.categories[::-1]))
    fewer = frame[frame["town"].isin(TOWNS[:2])].copy()
    fewer["town"] = fewer["town"].cat.remove_unused_categories()
    unseen = frame.copy()
    unseen["town"] = frame["town"].cat.add_categories(["Oslo"])
    unseen.loc[::3, "town"] = "Oslo"
    unseen["code"] = frame["code"].cat.rename_categories({7: 8})
    return {"as trained": frame, "turned": turned, "fewer": fewer, "unseen": unseen}


def _same_for_all(ranker, predict, frame):
    known = predict(frame)
    assert len(np.unique(known)) > 20
    for name, one in _others(frame).items():
        theirs = np.asarray(predict(one), np.float64)
        np.testing.assert_array_equal(ranker.predict(one), theirs, err_msg=name)
        wide = one[one.columns[::-1]].assign(text="not a feature")
        np.testing.assert_array_equal(ranker.predict(wide), theirs, err_msg=name)
    assert not np.array_equal(predict(_others(frame)["unseen"]), known)


# --- LightGBM ------------------------------------------------------------------------------------


def _imported(booster, frame):
    return rw.import_model(booster, categories=list(frame.select_dtypes("category").columns))


def _lightgbm(frame, y, **more):
    params = {"objective": "lambdarank", "num_leaves": 15, "min_data_in_leaf": 3, "verbosity": -1}
    params |= {"min_data_per_group": 1, "cat_smooth": 1, "num_threads": 1}
    return lightgbm.train(params, lightgbm.Dataset(frame, y, group=SIZES, **more), 10)


@pytest.mark.parametrize("booleans", [False, True])
def test_lightgbm(booleans):
    frame = _spanish(_frame(booleans=booleans))
    booster = _lightgbm(frame, _grades(frame))
    ranker = _imported(booster, frame)
    assert list(ranker.categories_["town"].values) == [*TOWNS[:-1], "Córdoba"]
    assert ranker.categories_["size"].ordered
    assert set(ranker.categories_) == set(frame.select_dtypes("category").columns)
    _same_for_all(ranker, booster.predict, _spanish(_frame(1, booleans=booleans)))


def test_categories_of_lightgbm_in_files(tmp_path):
    frame = _frame()
    booster = _lightgbm(frame, _grades(frame))
    booster.save_model(tmp_path / "model.txt")
    ranker = rw.load_model(tmp_path / "model.txt", categories=["size", "town", "code"])
    _same_for_all(ranker, booster.predict, _frame(1))
    ranker.save(tmp_path / "model.rw")
    _same_for_all(rw.load_model(tmp_path / "model.rw"), booster.predict, _frame(1))


def test_a_file_of_lightgbm_takes_codes_if_no_column_is_named(tmp_path):
    frame = _frame()
    booster = _lightgbm(frame, _grades(frame))
    booster.save_model(tmp_path / "model.txt")
    with pytest.warns(UserWarning, match="lists the categories of 3 columns, but not"):
        ranker = rw.load_model(tmp_path / "model.txt")
    with pytest.raises(RankwrightError, match="'town' of X is a category"):
        ranker.predict(frame)
    codes = frame.assign(**{c: frame[c].cat.codes for c in ("town", "code", "size")})
    np.testing.assert_array_equal(ranker.predict(codes), booster.predict(frame))


def test_categories_are_only_for_models_of_lightgbm(tmp_path):
    frame = _frame()
    _xgboost(frame, _grades(frame)).save_model(tmp_path / "model.json")
    data = rw.load("digits/train", queries=2, documents=5)
    rw.LinearRegression().fit(data).save(tmp_path / "model.rw")
    (tmp_path / "model.ranklib").write_text("## Coordinate Ascent\n")
    for name in ("model.json", "model.rw", "model.ranklib"):
        with pytest.raises(UsageError, match="is for models of LightGBM"):
            rw.load_model(tmp_path / name, categories=["town"])
    with pytest.raises(RankwrightError, match=r"absent\.txt"):
        rw.load_model(tmp_path / "absent.txt", categories=["town"])


def test_a_ranker_of_lightgbms_scikit_learn_interface():
    frame = _frame()
    model = lightgbm.LGBMRanker(n_estimators=5, verbose=-1, min_child_samples=3)
    model.fit(frame, _grades(frame), group=SIZES)
    _same_for_all(_imported(model, frame), model.predict, _frame(1))


def test_columns_that_do_not_fit_the_categories_of_lightgbm_are_refused():
    frame = _frame()[["stock", "price", "size"]]
    booster = _lightgbm(frame, _grades(_frame()))
    for wrong in (["weight"], ["size", "siz"], [3]):
        with pytest.raises(UsageError, match=f"'{wrong[-1]}', and the model has no such feature; "):
            rw.import_model(booster, categories=wrong)
    for wrong in (["size", "stock"], [], ["size", "size"]):
        with pytest.raises(UsageError, match="does not fit the model, which has 1 column of"):
            rw.import_model(booster, categories=wrong)
    for number in ("price", "stock"):  # real numbers; whole numbers above the last code
        with pytest.raises(UsageError, match=f"'{number}', which is not of the type category"):
            rw.import_model(booster, categories=[number])
    for wrong in ("size", 3):
        with pytest.raises(UsageError, match=r"takes a list of names: \["):
            rw.import_model(booster, categories=wrong)


def test_whole_numbers_that_lightgbm_took_for_categories_stay_numbers():
    frame = _frame()[["price", "town", "stock"]].assign(shop=np.arange(len(QID)) % 11)
    booster = _lightgbm(frame, _grades(_frame()), categorical_feature=["town", "shop"])
    ranker = _imported(booster, frame)
    assert list(ranker.categories_) == ["town"]
    np.testing.assert_array_equal(ranker.predict(frame), booster.predict(frame))


def test_an_export_to_lightgbm_keeps_the_categories(tmp_path):
    frame = _frame()
    booster = _lightgbm(frame, _grades(frame))
    export_model(_imported(booster, frame), "lightgbm", tmp_path / "export")
    exported = lightgbm.Booster(model_file=tmp_path / "export" / "model.txt")
    ranker = _imported(exported, frame)
    assert list(ranker.categories_) == ["town", "code", "size"]
    turned = _others(_frame(1))["turned"]
    np.testing.assert_array_equal(ranker.predict(turned), booster.predict(turned))


def test_a_fit_that_starts_from_an_imported_booster_takes_its_categories():
    frame = _frame()
    booster = _lightgbm(frame, _grades(frame))
    turned = _others(frame)["turned"]
    longer = rw.LambdaMART(n_estimators=1, learning_rate=1e-12, min_child_samples=3)
    longer.fit(turned, _grades(frame), qid=QID, init_model=_imported(booster, frame))
    assert longer.model_.n_trees == booster.num_trees() + 1
    assert list(longer.categories_["town"].values) == TOWNS
    np.testing.assert_allclose(longer.predict(turned), booster.predict(frame), atol=1e-9)


# --- XGBoost -------------------------------------------------------------------------------------


def _matrix(frame, y=None):
    return xgboost.DMatrix(frame, y, enable_categorical=True, nthread=1)


def _theirs(booster, frame):
    """Return XGBoost's scores, of a frame with missing values in place of unseen ones."""
    kept = frame.copy()
    for name, known in {"town": TOWNS, "code": [7, 30, 512]}.items():
        unseen = [value for value in frame[name].cat.categories if value not in known]
        kept[name] = frame[name].cat.remove_categories(unseen)
    return booster.predict(_matrix(kept))


def _xgboost(frame, y):
    data = _matrix(frame, y)
    data.set_group(SIZES)
    params = {"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, "max_cat_to_onehot": 1}
    return xgboost.train(params, data, 10)


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_xgboost(ending, tmp_path):
    frame = _frame()
    booster = _xgboost(frame, _grades(frame))
    booster.save_model(tmp_path / f"model.{ending}")
    ranker = rw.load_model(tmp_path / f"model.{ending}")
    assert list(ranker.categories_) == ["town", "code", "size"]
    assert list(ranker.categories_["town"].values) == TOWNS
    _same_for_all(ranker, lambda one: _theirs(booster, one), _frame(1))
    ranker.save(tmp_path / "model.rw")
    again = rw.load_model(tmp_path / "model.rw")
    np.testing.assert_array_equal(again.predict(frame), booster.predict(_matrix(frame)))


def test_texts_that_xgboost_does_not_keep_whole_are_warned_of():
    frame = _spanish(_frame())
    booster = _xgboost(frame, _grades(frame))
    with pytest.warns(UserWarning, match="'town'"):
        ranker = rw.import_model(booster)
    assert list(ranker.categories_) == ["code", "size"]
    codes = frame.assign(town=frame["town"].cat.codes.replace(-1, np.nan))
    np.testing.assert_array_equal(ranker.predict(codes), booster.predict(_matrix(frame)))


def test_a_file_of_xgboost_without_categories_takes_codes(tmp_path):
    frame = _frame()
    booster = _xgboost(frame, _grades(frame))
    found = json.loads(booster.save_raw("json").decode())
    del found["learner"]["gradient_booster"]["model"]["cats"]  # as XGBoost 3.0 wrote it
    (tmp_path / "model.json").write_text(json.dumps(found))
    ranker = rw.load_model(tmp_path / "model.json")
    with pytest.raises(RankwrightError, match="give it as a number"):
        ranker.predict(frame)
    codes = frame.assign(**{c: frame[c].cat.codes.replace(-1, np.nan)
                            for c in ("town", "code", "size")})  # fmt: skip
    np.testing.assert_array_equal(ranker.predict(codes), booster.predict(_matrix(frame)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda cats: cats["enc"].pop(),
        lambda cats: cats["enc"][1]["offsets"].__setitem__(1, -9),
        lambda cats: cats["enc"][1]["offsets"].__setitem__(-1, 999),
        lambda cats: cats["enc"][3]["values"].__setitem__(0, 30),
    ],
)
def test_damaged_categories_of_xgboost_are_refused(damage, tmp_path):
    frame = _frame()
    found = json.loads(_xgboost(frame, _grades(frame)).save_raw("json").decode())
    damage(found["learner"]["gradient_booster"]["model"]["cats"])
    (tmp_path / "model.json").write_text(json.dumps(found))
    with pytest.raises(RankwrightError, match="save it again with XGBoost"):
        rw.load_model(tmp_path / "model.json")


# --- beyond predict ------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["LightGBM", "XGBoost"])
def test_rank_explain_and_compare_take_the_frame(library):
    frame = _frame()
    y = _grades(frame)
    grow, predict = {
        "LightGBM": (_lightgbm, lambda booster, one: booster.predict(one)),
        "XGBoost": (_xgboost, _theirs),
    }[library]
    booster = grow(frame, y)
    ranker = _imported(booster, frame) if library == "LightGBM" else rw.import_model(booster)
    other = _others(_frame(1))["unseen"]
    theirs = np.asarray(predict(booster, other), np.float64)
    full = other.assign(qid=QID, label=_grades(_frame(1)))
    expected = np.concatenate([-np.sort(-theirs[query == QID]) for query in range(len(SIZES))])
    np.testing.assert_array_equal(ranker.rank(full, qid="qid").scores, expected)
    shown = rw.explain(ranker, full, query=3)
    above = theirs[QID == 3] - theirs[QID == 3].mean()
    found = np.sort([one.above_mean for one in shown.documents])
    np.testing.assert_allclose(found, np.sort(above), atol=1e-5)
    summed = np.sort([sum(one.parts.values()) for one in shown.documents])
    np.testing.assert_allclose(summed, np.sort(above), atol=1e-5)
    data = RankingData.from_frame(full, qid="qid", label="label")
    assert list(data.categories["town"].values) != TOWNS  # under other codes
    with pytest.warns(UserWarning, match="was fitted before this comparison"):
        found = rw.compare(data, {"imported": ranker}, folds=3)
    for number, fold in enumerate(found.folds):
        expected = np.concatenate([theirs[query == QID] for query in fold.test.qid])
        np.testing.assert_array_equal(found.scores["imported"][number], expected)

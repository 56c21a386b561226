"""Files and objects of other libraries: what cannot be imported is refused in one sentence."""

import json
import random

import lightgbm
import numpy as np
import pytest
from other_models import QID, SIZES, training_data

import rankwright as rw
from rankwright import runtime
from rankwright.errors import RankwrightError, UsageError

xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")
X, Y = training_data()
NAMES = ["price", "clicks", "tiny", "age", "kind", "side"]


@pytest.fixture(scope="module")
def boosters():
    data = lightgbm.Dataset(X, Y, group=SIZES, feature_name=NAMES)
    params = {"objective": "lambdarank", "num_leaves": 5, "verbosity": -1}
    matrix = xgboost.DMatrix(X, Y, feature_names=NAMES)
    matrix.set_group(SIZES)
    pool = catboost.Pool(X, Y, group_id=QID, feature_names=NAMES)
    quiet = {"verbose": 0, "allow_writing_files": False}
    yeti = {"loss_function": "YetiRank", "iterations": 3, "depth": 3}
    return {
        "model.txt": lightgbm.train(params, data, 3),
        "model.json": xgboost.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 3),
        "model.ubj": xgboost.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 3),
        "catboost.json": catboost.CatBoost({**yeti, **quiet}).fit(pool),
        "nested.json": catboost.CatBoost({**yeti, **quiet, "grow_policy": "Lossguide"}).fit(pool),
    }


@pytest.fixture(scope="module")
def files(boosters, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, model in boosters.items():
        more = {"format": "json"} if name in ("catboost.json", "nested.json") else {}
        model.save_model(folder / name, **more)
    return folder


@pytest.mark.parametrize("name", ["model.txt", "model.json", "model.ubj", "catboost.json"])
def test_features_are_found_by_their_names(files, boosters, name):
    pd = pytest.importorskip("pandas")
    ranker = rw.load_model(files / name)
    assert list(ranker.feature_names_in_) == NAMES
    frame = pd.DataFrame(X[:, ::-1], columns=NAMES[::-1])
    np.testing.assert_array_equal(ranker.predict(frame), ranker.predict(X))
    ranker.save(files / "again.rw")
    assert list(rw.load_model(files / "again.rw").feature_names_in_) == NAMES


@pytest.mark.parametrize("name", ["model.txt", "model.json", "catboost.json"])
def test_the_small_runtime_takes_the_same_files(files, name):
    model = runtime.load(files / name)
    assert model.feature_names == tuple(NAMES)
    np.testing.assert_array_equal(model.scores(X), rw.load_model(files / name).predict(X))


def test_a_feature_without_a_name_has_none():
    booster = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(X, Y), 2)
    assert not hasattr(rw.import_model(booster), "feature_names_in_")


# --- refused -------------------------------------------------------------------------------------


def _refused(call, *words):
    with pytest.raises(RankwrightError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in words), text


def test_several_classes_are_refused():
    params = {"objective": "multiclass", "num_class": 4, "verbosity": -1}
    booster = lightgbm.train(params, lightgbm.Dataset(X, Y), 2)
    _refused(lambda: rw.import_model(booster), "4 scores for each document")
    params = {"objective": "multi:softprob", "num_class": 4}
    booster = xgboost.train(params, xgboost.DMatrix(X, Y), 2)
    _refused(lambda: rw.import_model(booster), "several scores")
    model = catboost.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False)
    _refused(lambda: rw.import_model(model.fit(X, Y)), "several scores")


def test_what_has_no_trees_to_import_is_refused():
    whole = np.nan_to_num(X)
    linear = {"linear_tree": True, "verbosity": -1}
    booster = lightgbm.train(linear, lightgbm.Dataset(whole, Y, params=linear), 2)
    _refused(lambda: rw.import_model(booster), "linear_tree")
    booster = xgboost.train({"booster": "gblinear"}, xgboost.DMatrix(whole, Y), 2)
    _refused(lambda: rw.import_model(booster), "gblinear")


def test_categories_of_catboost_are_refused():
    rows = [[float(x), str(int(k))] for x, k in np.nan_to_num(X[:, [0, 4]])]
    pool = catboost.Pool(rows, Y, cat_features=[1])
    model = catboost.CatBoost({"iterations": 3, "verbose": 0, "allow_writing_files": False})
    _refused(lambda: rw.import_model(model.fit(pool)), "numeric features")


def test_objects_that_are_not_fitted_or_not_models_are_refused():
    for model in (lightgbm.LGBMRanker(), xgboost.XGBRanker(), catboost.CatBoostRanker()):
        _refused(lambda m=model: rw.import_model(m), "not fitted")
    _refused(lambda: rw.import_model(3), "not int")
    _refused(lambda: rw.import_model("model.txt"), "load_model")
    ranker = xgboost.XGBRanker(n_estimators=2, missing=0.0).fit(X, Y, qid=QID)
    _refused(lambda: rw.import_model(ranker), "0.0", "NaN")


def test_other_formats_of_the_libraries_say_which_to_save(boosters, tmp_path):
    boosters["catboost.json"].save_model(tmp_path / "model.cbm")
    _refused(lambda: rw.load_model(tmp_path / "model.cbm"), "format='json'")
    (tmp_path / "dump.json").write_text(json.dumps(boosters["model.txt"].dump_model()))
    _refused(lambda: rw.load_model(tmp_path / "dump.json"), "model.txt")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04K\x01.")
    _refused(lambda: rw.load_model(tmp_path / "model.pkl"), "import_model")


def test_an_imported_model_is_not_fitted_again(files):
    with pytest.raises(UsageError, match="a model of XGBoost predicts and is not fitted again"):
        rw.load_model(files / "model.json").fit(X, Y, qid=QID)


# --- damaged -------------------------------------------------------------------------------------


def _learner(found):
    return found["learner"]["gradient_booster"]["model"]


def _first(found):
    return _learner(found)["trees"][0]


def _cycle(found):
    _first(found)["left_children"][0] = 0


def _astray(found):
    _first(found)["right_children"][0] = 10**6


def _one_child(found):
    _first(found)["right_children"][0] = -1


def _two_parents(found):
    _first(found)["right_children"][0] = _first(found)["left_children"][0]


def _feature(found):
    _first(found)["split_indices"][0] = 6


def _negative(found):
    _first(found)["split_indices"][0] = -1


def _short(found):
    _first(found)["split_conditions"].pop()


def _no_number(found):
    _first(found)["split_conditions"][0] = float("nan")


def _no_leaf_value(found):
    _first(found)["split_conditions"][-1] = float("nan")


def _fewer_rounds(found):
    _learner(found)["iteration_indptr"] = [0, 1]


def _names(found):
    found["learner"]["feature_names"].pop()


def _twice(found):
    found["learner"]["feature_names"][0] = "age"


def _categories(found):
    _first(found)["split_type"][0] = 1


@pytest.mark.parametrize(
    "damage",
    [_cycle, _astray, _one_child, _two_parents, _feature, _negative, _short, _no_number,
     _no_leaf_value, _fewer_rounds, _names, _twice, _categories],
)  # fmt: skip
def test_damaged_trees_of_xgboost_are_refused(files, tmp_path, damage):
    found = json.loads((files / "model.json").read_text())
    damage(found)
    (tmp_path / "model.json").write_text(json.dumps(found))
    _refused(lambda: rw.load_model(tmp_path / "model.json"), "model.json", "XGBoost", "save it")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("left_child=", "left_child=0 "),
        ("split_feature=", "split_feature=6 "),
        ("num_leaves=5", "num_leaves=9"),
        ("end of trees", "end"),
        ("max_feature_idx=5", "max_feature_idx=4"),
        ("tree_sizes=", "tree_sizes=9 "),
        ("leaf_value=", "leaf_value=nan "),
    ],
)
def test_damaged_trees_of_lightgbm_are_refused(files, tmp_path, old, new):
    text = (files / "model.txt").read_text()
    assert old in text
    (tmp_path / "model.txt").write_text(text.replace(old, new, 1))
    _refused(lambda: rw.load_model(tmp_path / "model.txt"), "LightGBM", "save it again")


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m["oblivious_trees"][0]["leaf_values"].pop(),
        lambda m: m["oblivious_trees"][0]["leaf_weights"].pop(),
        lambda m: m["oblivious_trees"][0]["splits"][0].update(float_feature_index=77),
        lambda m: m["oblivious_trees"][0]["splits"][0].update(border=None),
        lambda m: m["features_info"]["float_features"][0].update(flat_feature_index=-3),
        lambda m: m["features_info"]["float_features"][0].update(nan_value_treatment="Perhaps"),
        lambda m: m.pop("scale_and_bias"),
        lambda m: m["oblivious_trees"][0]["leaf_values"].__setitem__(0, float("nan")),
    ],
)
def test_damaged_trees_of_catboost_are_refused(files, tmp_path, damage):
    found = json.loads((files / "catboost.json").read_text())
    damage(found)
    (tmp_path / "model.json").write_text(json.dumps(found))
    _refused(lambda: rw.load_model(tmp_path / "model.json"), "CatBoost", "save it again")


@pytest.mark.parametrize(
    "name", ["model.txt", "model.json", "model.ubj", "catboost.json", "nested.json"]
)
def test_files_damaged_anywhere_score_or_are_refused(files, tmp_path, name):
    whole, draw = (files / name).read_bytes(), random.Random(name)
    path, outcomes = tmp_path / name, []
    for _ in range(120):
        content = bytearray(whole)
        if draw.random() < 0.3:
            del content[draw.randrange(40, len(content)) :]
        else:
            for _ in range(draw.choice([1, 3, 20])):
                content[draw.randrange(len(content))] = draw.choice(b'09-.e,[]{}"\0\xffa1')
        path.write_bytes(content)
        try:
            with np.errstate(all="ignore"):
                ranker = rw.load_model(path)
                wide = np.zeros((9, ranker.n_features_in_))
                wide[1:4] = np.arange(3)[:, None]
                ranker.model_.scores(wide)
            outcomes.append("scored")
        except RankwrightError as error:
            outcomes.append("refused" if "\n" not in str(error) else "two lines")
    assert set(outcomes) == {"scored", "refused"}


def test_a_damaged_model_file_of_imported_trees_is_refused(files):
    model = rw.load_model(files / "model.json").model_
    arrays, texts = model.arrays(), model.texts()
    restore = type(model).restore
    assert restore(arrays, texts, 6).n_trees == 3
    for name, at, value in (
        ("tree_left", 0, 10**6), ("tree_left", 0, 0), ("tree_view", 0, 99), ("tree_roots", 0, 1),
        ("tree_feature", -1, 6), ("tree_rule", 0, 12), ("tree_leaves", 0, 10**6),
        ("tree_threshold", 0, np.nan), ("set_sizes", 0, 4),
    ):  # fmt: skip
        damaged = {key: array.copy() for key, array in arrays.items()}
        damaged[name][at] = value
        _refused(lambda d=damaged: restore(d, texts, 6), "damaged")

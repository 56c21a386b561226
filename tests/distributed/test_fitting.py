"""A ranker that was fitted over partitions is a ranker as any other."""

from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data

import rankwright
from rankwright.data.files import save
from rankwright.distributed import fit
from rankwright.distributed.partitions import Partitions
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.rankers.base import Ranker, ranker

DATA = small_data(queries=12, documents=6, features=4)
VALID = small_data(queries=6, documents=6, features=4, seed=1)


def cut(data, *borders):
    ends = [*borders, data.n_queries]
    return [data.select(slice(lo, hi)) for lo, hi in zip([0, *borders], ends, strict=True)]


@pytest.fixture(scope="module")
def local():
    return Partitions.from_list(cut(DATA, 5, 7))


def test_l2_is_chosen_on_valid_as_in_one_process(local):
    over = fit(ranker("ranksvm", l2="auto"), local, VALID)
    whole = ranker("ranksvm", l2="auto").fit(DATA, eval_set=VALID)
    assert over.best_iteration_ == whole.best_iteration_
    assert over.curve_.keys() == whole.curve_.keys()
    curves = over.curve_["valid ndcg@10"], whole.curve_["valid ndcg@10"]
    np.testing.assert_allclose(*curves, rtol=1e-9)
    assert over.evals_result_.keys() == {"valid"}


def test_valid_data_go_to_the_workers_too(client, local):
    over = fit(ranker("ranksvm"), DATA, VALID, client=client, n_parts=3)
    assert over.curve_ == fit(ranker("ranksvm"), over_three(), VALID).curve_


def over_three():
    return Partitions.from_list(cut(DATA, 4, 8))


def test_valid_data_may_lie_in_parts_too(local):
    found = [
        fit(ranker("ranksvm", l2="auto"), local, Partitions.from_list(parts)).curve_
        for parts in ([VALID], cut(VALID, 2))
    ]
    assert found[0] == found[1]


def test_it_is_saved_and_loaded_with_the_digest_of_the_whole(local, tmp_path):
    made = fit(ranker("memr"), local)
    whole = ranker("memr").fit(DATA)
    assert made.data_digest_ == whole.data_digest_
    assert made.n_features_in_ == 4
    made.save(tmp_path / "model.rw")
    again = rankwright.load_model(tmp_path / "model.rw")
    np.testing.assert_array_equal(again.predict(DATA.X), made.predict(DATA.X))


def test_names_of_features_are_kept():
    named = replace(DATA, feature_names=("a", "b", "c", "d"))
    made = fit(ranker("ranksvm"), Partitions.from_list(cut(named, 4)))
    assert made.feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_it_goes_on_from_another_fit(local):
    first = fit(ranker("ranksvm"), local)
    again = fit(ranker("ranksvm"), local, init_model=first)
    assert again.solution_.iterations <= 1


def test_a_checkpoint_of_a_linear_model_is_refused(local, tmp_path):
    with pytest.raises(UsageError, match="a model 'linear' cannot be resumed"):
        fit(ranker("ranksvm"), local, checkpoint=tmp_path)


def test_a_start_of_another_kind_is_refused(local):
    trees = fit(ranker("gbdt", n_estimators=2), local)
    with pytest.raises(IncompatibleError, match="a model 'linear' cannot continue from a model"):
        fit(ranker("ranksvm"), local, init_model=trees)


def test_files_are_trained_on_where_they_are(client, tmp_path, local):
    for k, part in enumerate(local.parts):
        save(part, tmp_path / f"{k}.parquet")
    found = fit(ranker("memr"), tmp_path, client=client)
    np.testing.assert_array_equal(found.coef_, fit(ranker("memr"), local).coef_)


NAMED = replace(DATA, feature_names=("a", "b", "c", "d"))
TURNED = replace(VALID, X=VALID.X[:, ::-1].copy(), feature_names=("d", "c", "b", "a"))


@pytest.mark.parametrize("name", ["ranksvm", "gbdt"])
def test_columns_of_valid_data_are_found_by_their_names(name):
    few = {"n_estimators": 3} if name == "gbdt" else {}
    parts = Partitions.from_list(cut(NAMED, 5))
    expected = fit(ranker(name, **few), parts, replace(TURNED, X=VALID.X, feature_names=None))
    assert fit(ranker(name, **few), parts, TURNED).curve_ == expected.curve_
    with pytest.raises(DataError, match="the feature 'a' of the fitted ranker is missing in the v"):
        fit(ranker(name, **few), parts, replace(TURNED, feature_names=("d", "c", "b", "z")))


def test_columns_of_valid_parts_must_be_those_of_train():
    with pytest.raises(DataError, match="column 0 is 'a' in the training data and 'd' in the val"):
        fit(ranker("ranksvm"), Partitions.from_list(cut(NAMED, 5)), Partitions.from_list([TURNED]))


@pytest.mark.parametrize("name", ["ranksvm", "gbdt"])
def test_valid_files_are_read_with_the_options_too(name, client, tmp_path):
    for file, data in (("train", NAMED), ("valid", replace(VALID, feature_names=("a", *"bcd")))):
        save(data, tmp_path / f"{file}.csv")
        text = (tmp_path / f"{file}.csv").read_text()
        assert text.startswith('"qid",')
        (tmp_path / f"{file}.csv").write_text(text.replace("qid", "session", 1))
    few = {"n_estimators": 3} if name == "gbdt" else {}
    files = tmp_path / "train.csv", tmp_path / "valid.csv"
    over = fit(ranker(name, **few), *files, client=client, qid="session")
    whole = ranker(name, **few).fit(DATA, eval_set=VALID)
    np.testing.assert_allclose(over.curve_["valid ndcg@10"], whole.curve_["valid ndcg@10"])
    one_read = fit(ranker(name, **few), DATA, files[1], client=client, qid="session")
    assert one_read.curve_.keys() == over.curve_.keys()
    with pytest.raises(UsageError, match="qid is for reading data; these are read already"):
        fit(ranker(name), DATA, VALID, client=client, qid="session")


def test_callbacks_that_are_none_are_refused_before_any_work(local):
    with pytest.raises(UsageError, match="callbacks is a list of functions"):
        fit(ranker("ranksvm"), local, callbacks=print)


def test_valid_data_of_another_width_are_refused(local):
    with pytest.raises(DataError, match="the validation data has 3 features, the training data 4"):
        fit(ranker("ranksvm"), local, small_data(queries=2, features=3))


def test_without_valid_data_nothing_can_be_chosen(local):
    with pytest.raises(UsageError, match="l2='auto' is chosen on validation data"):
        fit(ranker("ranksvm", l2="auto"), local)


def test_effects_of_positions_are_not_learned_part_by_part(local):
    placed = replace(DATA, position=np.tile(np.arange(1, 7), 12))
    made = Ranker(loss="dual_softmax")
    with pytest.raises(IncompatibleError, match="not over parts"):
        fit(made, Partitions.from_list(cut(placed, 5)))
    assert fit(made, local).predict(VALID).std() > 0.0


def test_ctrl_c_keeps_the_best_rounds_and_is_raised(local):
    def interrupt(t, _text):
        if t == 3:
            raise KeyboardInterrupt

    made = ranker("gbdt", n_estimators=9)
    with pytest.raises(KeyboardInterrupt, match="gbdt keeps the best of the rounds so far"):
        fit(made, local, progress=interrupt)
    assert made.interrupted_
    assert made.best_iteration_ == 3
    assert made.predict(DATA).shape == DATA.y.shape


@pytest.mark.parametrize("valid", [DATA.select(slice(None)), Partitions.from_list(cut(DATA, 3))])
def test_validation_data_that_is_the_training_data_is_reported(local, valid):
    with pytest.warns(UserWarning, match="valid holds the same queries as the training data"):
        fit(ranker("ranksvm"), local, valid)

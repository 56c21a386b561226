"""A model file is known by what it holds, not by its name."""

import zipfile

import pytest
from small_data import small_data

import rankwright as rw
from rankwright.errors import RankwrightError
from rankwright.ranklib.model_files import is_model, is_ranklib, load_model

RANKLIB = "## Coordinate Ascent\n1:0.5 3:-2.0"


def test_a_text_of_ranklib_is_known_by_its_first_line(tmp_path):
    path = tmp_path / "model.anything"
    path.write_text(RANKLIB)
    assert is_ranklib(path)
    assert is_model(path)
    ranker = load_model(path, n_features=4)
    assert ranker.predict([[1.0, 9.0, 1.0, 9.0]]).tolist() == [0.5 - 2.0]


def test_a_file_of_ours_is_known_by_its_form(tmp_path):
    data = small_data(queries=3, documents=4, features=2)
    fitted = rw.ranker("linear_regression").fit(data)
    fitted.save(tmp_path / "model.anything")
    assert zipfile.is_zipfile(tmp_path / "model.anything")
    assert is_model(tmp_path / "model.anything")
    assert (load_model(tmp_path / "model.anything").predict(data) == fitted.predict(data)).all()


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "data.txt").write_text("1 qid:1 1:2\n")
    assert not is_model(tmp_path / "data.txt")
    assert not is_ranklib(tmp_path)
    assert not is_ranklib(tmp_path / "gone")
    with pytest.raises(RankwrightError, match=r"data\.txt"):
        load_model(tmp_path / "data.txt")

"""``rankwright features``: names from the command line, from data or from a model."""

import json

import pytest
from command import run
from small_data import small_data

import rankwright as rw
from rankwright.data.files import save


@pytest.fixture
def files(tmp_path):
    frame = small_data(queries=4, documents=5, features=2).to_frame()
    data = rw.RankingData.from_frame(
        frame.rename(columns={"f1": "bm25", "f2": "age"}), qid="qid", label="label"
    )
    save(data, tmp_path / "data.csv")
    rw.LinearRegression().fit(data).save(tmp_path / "model.rw")
    return tmp_path


def test_names_come_from_the_command_line_data_or_a_model(files):
    for names in (("bm25", "age"), (files / "data.csv",), (files / "model.rw",)):
        said = json.loads(run("features", *names, "--to", "solr", "--name", "films").stdout)
        assert [(one["name"], one["store"]) for one in said] == [
            ("bm25", "films"),
            ("age", "films"),
        ]


def test_the_file_is_written_where_it_is_named(files):
    target = files / "featureset.json"
    run("features", "bm25", "--to", "opensearch", "-o", target)
    assert json.loads(target.read_text())["featureset"]["features"][0]["name"] == "bm25"

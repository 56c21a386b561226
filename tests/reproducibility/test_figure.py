import json
import sys

import numpy as np
import pytest
from tiny_experiment import FIGURE, TABLE, drawn_curves, write_folds, write_toml

from rankwright.errors import MissingExtraError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker
from reproducibility.experiment_file import experiment
from reproducibility.figure import check_drawable, draw, run_curves
from reproducibility.folds_run import load_folds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return drawn_curves(tmp_path_factory.mktemp("tiny"), FIGURE)


def test_a_curve_is_the_mean_over_test_queries_at_each_number_of_trees(run):
    result, folds, _ = run
    curve = next(c for c in result.curves if (c.study, c.row) == ("tiny", "GBDT"))
    assert curve.x == (1, 3, 6)
    setting = {"learning_rate": 0.3, "min_child_samples": 5, "num_leaves": 3, "n_estimators": 3}
    values = []
    for fold in folds["tiny"]:
        scores = ranker("gbdt", **setting).fit(fold.train).predict(fold.test)
        values.append(evaluate(fold.test, scores, "ndcg@1").per_query["ndcg@1"])
    assert curve.column == "ndcg@1"
    assert curve.ours[1] == pytest.approx(np.concatenate(values).mean(), abs=1e-12)


def test_every_row_has_a_curve_in_every_study_and_column(run):
    result, _, lines = run
    assert [(c.study, c.row, c.column) for c in result.curves] == [
        *(("tiny", row, f"ndcg@{k}") for row in ROWS for k in (1, 5)),
        *(("web", row, "ndcg(max_per_group=2)@5 of hosts") for row in ROWS),
    ]
    assert lines[-1] == "web: ListMLE calibrated drawn"
    assert len(lines) == 3 * 3 + 3 + 2 * 3  # fits of the three folds and of web; rows drawn


ROWS = ("GBDT", "ListMLE", "ListMLE calibrated")


def test_the_json_has_the_table_s_rows_and_the_curves(run, tmp_path):
    result = run[0]
    found = result.as_json()
    assert list(found) == ["table", "rows", "curves"]
    assert list(found["curves"][0]) == ["study", "row", "column", "over", "x", "ours"]
    result.write(tmp_path / "curves.json")
    record = json.loads((tmp_path / "curves.json").read_text())
    assert record["curves"] == json.loads(json.dumps(found["curves"]))
    assert record["chosen"]


def test_without_trees_the_curves_are_the_rows_of_the_table_over_cut_offs(tmp_path):
    toml = TABLE.replace('kind = "table"', 'kind = "figure"').replace("ndcg@1:2,map", "ndcg@1:3")
    toml = toml.replace('columns = ["ndcg@1", "map"]', 'columns = ["ndcg@1", "ndcg@2"]')
    made = experiment(write_toml(tmp_path / "cut.toml", toml))
    result = run_curves(made, load_folds(made, write_folds(tmp_path)))
    curve = result.curves[0]
    assert (curve.study, curve.row, curve.column) == ("tiny", "GBDT", "letor3")
    assert (curve.over, curve.x) == ("cut-off", (1, 2, 3))
    assert curve.ours == tuple(result.table.cell("GBDT", f"ndcg@{k}").ours for k in (1, 2, 3))
    draw(result, tmp_path / "cut.svg")
    assert (tmp_path / "cut.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("ending", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_the_figure_is_drawn_alike_to_the_byte(run, tmp_path, ending, magic):
    target = tmp_path / f"a.{ending}"
    draw(run[0], target)
    first = target.read_bytes()
    assert first.startswith(magic)
    draw(run[0], target)
    assert target.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_the_figure_names_what_it_shows(run, tmp_path):
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw(run[0], tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    for words in ("Tiny, Figure 0", "tiny: ndcg@1", "number of trees", "ListMLE calibrated"):
        assert words in text


def test_a_file_that_is_no_picture_is_refused_before_any_work(tmp_path):
    with pytest.raises(UsageError, match=r"ends in \.svg, \.png, \.pdf; 'a\.txt' does not"):
        check_drawable(tmp_path / "a.txt")


def test_a_missing_matplotlib_is_named_with_the_command_that_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[plot\]'"):
        check_drawable(tmp_path / "a.svg")

import lzma

import numpy as np
import pytest
from tiny_experiment import write_toml

from rankwright.errors import DataError, UsageError
from reproducibility.drawn_queries import (
    check_classes,
    draw_folds,
    load_classes,
    read_classes,
)
from reproducibility.experiment import experiment
from reproducibility.folds_run import load_folds
from reproducibility.table import run_table


def numbered(rows=60):
    """Rows whose only feature is their own number, of three classes."""
    return np.arange(rows, dtype=float)[:, None], np.arange(rows) % 3.0


def rows_of(part):
    return set(part.X[:, 0].astype(int))


def test_commas_and_blanks_part_cells_and_the_lowest_class_is_grade_0(tmp_path):
    (tmp_path / "a.tra").write_text(" 5,.5, 3\n 6, 1,1\n\n")
    with lzma.open(tmp_path / "a.tes.xz", "wt") as stream:
        stream.write("   7  .25   2\n")
    X, y = read_classes([tmp_path / "a.tra", tmp_path / "a.tes"])
    np.testing.assert_array_equal(X, [[5.0, 0.5], [6.0, 1.0], [7.0, 0.25]])
    np.testing.assert_array_equal(y, [2.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,2,3\n1,2\n", r"a\.data, row 2: 2 columns, where the first row has 3"),
        ("1,2,x\n", r"a\.data: not all cells are numbers .*'x'"),
        ("\n", r"a\.data holds no rows"),
    ],
)
def test_a_fault_in_a_table_names_the_file(tmp_path, text, says):
    (tmp_path / "a.data").write_text(text)
    with pytest.raises(DataError, match=says):
        read_classes([tmp_path / "a.data"])


def test_files_of_different_width_and_files_not_there_are_refused(tmp_path):
    (tmp_path / "a").write_text("1,2\n")
    (tmp_path / "b").write_text("1,2,3\n")
    with pytest.raises(DataError, match=r"b has 3 columns, .*a has 2"):
        read_classes([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(DataError, match=r"c is not there, nor compressed \(\.gz"):
        read_classes([tmp_path / "c"])


def test_a_draw_has_queries_of_the_size_asked_for_and_shares_no_row_between_its_parts():
    X, y = numbered()
    folds = draw_folds(X, y, queries=7, documents=5, draws=3, sizes=(0.4, 0.1, 0.5))
    assert len(folds) == 3
    for fold in folds:
        for part in fold:
            np.testing.assert_array_equal(np.diff(part.indptr), [5] * 7)
            for query in part.X[:, 0].reshape(7, 5):
                assert len(set(query)) == 5
            np.testing.assert_array_equal(part.y, part.X[:, 0] % 3)
        train, valid, test = map(rows_of, fold)
        assert len(train | valid | test) == len(train) + len(valid) + len(test)
        assert len(valid) <= 6


def test_draws_differ_from_one_another_and_a_seed_repeats_them():
    X, y = numbered()
    one, two = draw_folds(X, y, queries=3, documents=5, draws=2)
    assert not np.array_equal(one.test.X, two.test.X)
    again = draw_folds(X, y, queries=3, documents=5, draws=1)[0]
    np.testing.assert_array_equal(one.test.X, again.test.X)
    other = draw_folds(X, y, queries=3, documents=5, draws=1, seed=1)[0]
    assert not np.array_equal(one.test.X, other.test.X)


def test_too_few_rows_and_odd_shares_are_refused():
    X, y = numbered(40)
    with pytest.raises(DataError, match=r"leave 6 for a part: too few for queries of 7"):
        draw_folds(X, y, documents=7)
    with pytest.raises(UsageError, match="three shares above 0"):
        draw_folds(X, y, sizes=(0.5, 0.0, 0.5))


def test_options_are_checked_before_any_work():
    with pytest.raises(UsageError, match="'querys'; did you mean queries"):
        check_classes({"files": ["a"], "querys": 5})
    with pytest.raises(UsageError, match="classes needs files"):
        check_classes({"queries": 5})


TABLE = """
title = "Tiny classes"
paper = "nobody2010"
kind = "table"
baseline = "DORM"
[[studies]]
name = "tiny"
classes = { files = ["tiny.data"], queries = 4, documents = 8, draws = 2, sizes = [0.4, 0.2, 0.4] }
select = "ndcg@3"
[[studies.columns]]
metrics = "ndcg@3"
[[rows]]
name = "DORM"
ranker = "dorm"
fixed = { model = "kernel" }
grid = { "model.gamma" = [0.1, 1.0] }
[[rows]]
name = "SVM"
ranker = "classifier_svm"
grid = { C = [0.1, 1.0] }
"""


def test_a_table_runs_on_drawn_queries_with_another_tool_beside_ours(tmp_path):
    draw = np.random.default_rng(3)
    grade = draw.integers(0, 3, 80)
    rows = np.column_stack([grade + 0.1 * draw.normal(size=80), draw.normal(size=80), grade + 1])
    np.savetxt(tmp_path / "tiny.data", rows)
    made = experiment(write_toml(tmp_path / "t.toml", TABLE))
    with pytest.raises(DataError, match=r"holds tiny\.data"):
        load_folds(made, None)
    folds = load_folds(made, tmp_path)
    expected = load_classes(made.studies[0].classes, tmp_path)
    np.testing.assert_array_equal(folds["tiny"][1].test.X, expected[1].test.X)
    result = run_table(made, folds)
    assert result.queries == {"tiny": 2 * 4}
    assert result.cell("SVM", "ndcg@3").ours > 0.9
    assert result.cell("DORM", "ndcg@3").ours > 0.9
    rounds = {one["row"]: one["rounds"] for one in result.record()["chosen"]}
    assert rounds == {"DORM": 1, "SVM": None}

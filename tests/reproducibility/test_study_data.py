import lzma

import numpy as np
import pytest
from tiny_experiment import write_toml

from rankwright.data.ratings import ratings_of_triples
from rankwright.errors import DataError, UsageError
from reproducibility.experiment_file import experiment
from reproducibility.folds_run import load_folds
from reproducibility.study_data import (
    check_classes,
    check_ratings,
    draw_folds,
    draw_ratings,
    in_levels,
    load_classes,
    load_ratings,
    read_classes,
)
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
paper = "author2010"
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


# --- test_drawn_ratings ---


def ratings(users=20, items=8):
    """Every user rates every item but one; user 0 rates two."""
    user, item = np.divmod(np.arange(users * items), items)
    kept = ((user + item) % items != 0) & ((user > 0) | (item < 3))
    user, item = user[kept], item[kept]
    return ratings_of_triples(user, item, (user * 7 + item * 3) % 11 - 5.0)


def pairs(data):
    return set(zip(data.qid[data.query_of_row()].tolist(), data.X.indices.tolist(), strict=True))


def draw(**options):
    return draw_ratings(ratings(), users=3, input_users=5, least=4, **options)


def test_a_user_s_ratings_are_either_known_or_asked_and_input_users_are_known_wholly():
    data = ratings()
    for fold in draw(known=2, draws=3):
        assert fold.train.n_queries == 3 + 3 + 5
        assert (fold.valid.n_queries, fold.test.n_queries) == (3, 3)
        assert not set(fold.valid.qid) & set(fold.test.qid)
        assert 0 not in fold.train.qid  # has fewer than 4 ratings
        asked = set(fold.valid.qid) | set(fold.test.qid)
        for user, size in zip(fold.train.qid, fold.train.sizes, strict=True):
            assert size == (2 if user in asked else 7)
        together = [pairs(part) for part in fold]
        assert sum(map(len, together)) == len(set.union(*together))
        assert set.union(*together) == {p for p in pairs(data) if p[0] in set(fold.train.qid)}


def test_with_items_the_same_ones_are_known_of_all_users_asked_about():
    (fold,) = draw(items=5, draws=1)
    asked = set(fold.valid.qid) | set(fold.test.qid)
    known = {item for user, item in pairs(fold.train) if user in asked}
    hidden = {item for part in (fold.valid, fold.test) for _, item in pairs(part)}
    assert len(known) == 5
    assert not known & hidden
    assert known | hidden == set(range(8))


def test_draws_differ_and_the_seed_decides_them():
    first, second = draw(known=2, draws=2)
    assert pairs(first.test) != pairs(second.test)
    assert pairs(draw(known=2, draws=2)[1].test) == pairs(second.test)
    assert pairs(draw(known=2, draws=2, seed=1)[1].test) != pairs(second.test)


def test_levels_are_equal_parts_of_the_range():
    data = ratings_of_triples([0] * 5, range(5), [0.0, 4.9, 5.0, 9.9, 10.0])
    assert in_levels(data, 2).y.tolist() == [0, 0, 1, 1, 1]
    with pytest.raises(UsageError, match="levels must be 2 or more"):
        in_levels(data, 1)


def test_a_file_is_read_below_the_data_folder(tmp_path):
    lines = [f"{u},{i},{(u + i) % 5}" for u in range(6) for i in range(4)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    asked = {"file": "r.csv", "known": 2, "users": 1, "input_users": 2, "least": 3, "draws": 2}
    folds = load_ratings({**asked, "levels": 5}, tmp_path)
    assert [fold.train.n_queries for fold in folds] == [4, 4]
    assert folds[0].test.n_documents == 2
    with pytest.raises(DataError, match=r"s\.csv is not there"):
        load_ratings({**asked, "file": "s.csv"}, tmp_path)
    with pytest.raises(DataError, match="6 users have 3 ratings or more: too few to draw 22"):
        load_ratings({**asked, "input_users": 20}, tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"file": "a", "know": 3}, "no option of ratings 'know'; did you mean known"),
        ({"known": 3}, "ratings needs file"),
        ({"file": "a"}, "ratings needs known or items"),
        ({"file": "a", "known": 3, "items": 4}, "ratings needs known or items"),
    ],
)
def test_a_wrong_option_is_reported_before_any_work(options, says):
    with pytest.raises(UsageError, match=says):
        check_ratings(options)

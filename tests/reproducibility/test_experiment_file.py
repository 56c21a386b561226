import pytest
from tiny_experiment import FIGURE, TABLE, write_toml

from rankwright.errors import DataError, UsageError
from rankwright.losses import Interval
from rankwright.models import Trees
from rankwright.rankers.base import ranker
from reproducibility.experiment import Column, parameters, with_trees
from reproducibility.experiment_file import experiment, names, overview


@pytest.fixture
def tiny(tmp_path):
    return experiment(write_toml(tmp_path / "tiny_table0.toml"))


def refusal(tmp_path, changes, text=TABLE):
    path = write_toml(tmp_path / "wrong.toml", text, changes=changes)
    with pytest.raises(DataError) as caught:
        experiment(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_file_of_ones_own_is_named_after_itself(tiny):
    assert (tiny.name, tiny.title, tiny.kind) == ("tiny-table0", "Tiny, Table 0", "table")


def test_a_range_of_metrics_becomes_a_column_each_and_the_template_names_them(tiny):
    (study,) = tiny.studies
    assert study.columns == (
        Column("ndcg@1", "ndcg@1", "letor3", cutoff=1),
        Column("ndcg@2", "ndcg@2", "letor3", cutoff=2),
        Column("map", "map", "letor3"),
        Column("ndcg@3 standard", "ndcg@3", "standard", 100.0, cutoff=3),
    )


def test_settings_are_every_combination_of_the_shared_and_the_row_s_own(tiny):
    shared = {"n_estimators": 4, "learning_rate": 0.3, "min_child_samples": 5}
    gbdt, interval = tiny.rows
    assert list(gbdt.settings) == [{**shared, "num_leaves": n} for n in (2, 5)]
    own = {**shared, "targets": [0.0, 1.0, 3.0], "num_leaves": 3}  # the row's grid goes first
    assert list(interval.settings) == [{**own, "lambda1": value} for value in (0.1, 1.0)]


def test_settings_reach_the_parts_by_dotted_names_and_by_tables(tmp_path):
    fixed = 'fixed = { "model.max_bins" = 63, targets = [0.0, 1.0, 3.0] }'
    made = experiment(
        write_toml(tmp_path / "t.toml", changes={"fixed = { targets = [0.0, 1.0, 3.0] }": fixed})
    )
    setting = parameters(with_trees(made.rows[1].settings[0], 7))
    built = ranker("intervalrank", **setting)
    assert (built.targets, built.lambda1) == ((0.0, 1.0, 3.0), 0.1)
    assert built.make_model() == Trees(
        n_estimators=7, learning_rate=0.3, min_child_samples=5, num_leaves=3, max_bins=63
    )
    listed = {"loss": {"name": "interval", "lambda1": 0.1, "targets": [0.0, 2.0]}, "n_bags": 2}
    assert parameters(listed) == {"loss": Interval(0.1, targets=(0.0, 2.0)), "n_bags": 2}


def test_settings_of_a_study_are_checked_with_those_of_its_rows(tmp_path):
    changes = {'{ "model.n_estimators" = 6 }': "{ leaf = 3 }"}
    assert "GBDT has no parameter 'leaf'" in refusal(tmp_path, changes, FIGURE)


def test_rounds_are_shared_too_and_a_row_may_have_its_own(tmp_path):
    changes = {
        "grid = { num_leaves = [2, 5] }": "grid = { num_leaves = [2, 5] }\nrounds = [9, 3]",
        "grid = { num_leaves = [3]": "rounds = []\ngrid = { num_leaves = [3]",
    }
    made = experiment(write_toml(tmp_path / "t.toml", changes=changes))
    assert [row.rounds for row in made.rows] == [(3, 9), ()]


def test_the_paper_s_rows_come_in_its_order_and_ours_after_them(tiny):
    assert tiny.row_names == ("Oracle", "IntervalRank", "GBDT")
    assert tiny.printed["Oracle"] == {"ndcg@1": 0.9, "map": 0.8}


def test_fewer_rows_can_be_asked_for(tiny):
    less = tiny.with_rows(["GBDT"])
    assert [row.name for row in less.rows] == ["GBDT"]
    assert less.row_names == tiny.row_names
    with pytest.raises(UsageError, match="there is no row 'GBTD'; did you mean GBDT"):
        tiny.with_rows(["GBTD"])


def test_rows_of_a_family_differ_from_others(tmp_path):
    figure = experiment(write_toml(tmp_path / "f.toml", FIGURE))
    assert [row.family for row in figure.rows] == ["GBDT", "ListMLE", "ListMLE"]
    assert [study.trees for study in figure.studies] == [(1, 3, 6), (2, 4)]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({'title = "Tiny, Table 0"': ""}, "'title' is missing"),
        ({"kind": "kinds"}, "there is no entry 'kinds'; did you mean kind"),
        ({'kind = "table"': 'kind = "poem"'}, "kind must be table, figure, time, topics or"),
        ({'kind = "table"': 'kind = "figure"'}, "study 'tiny': a figure is drawn over trees"),
        ({'select = "ndcg@5"': "trees = [1]"}, "study 'tiny' has trees, which only a figure"),
        ({'metrics = "ndcg@3"': 'metrics = "seconds"'}, "measures time, which needs kind"),
        ({'"GBDT"\n\n[printed]': '"GBTD"\n\n[printed]'}, "did you mean GBDT"),
        ({"Oracle = [0.9, 0.8]": "Oracle = [0.9]"}, "'Oracle' has 1 figures for 2 columns"),
        ({'["ndcg@1", "map"]': '["ndcg@9", "map"]'}, "there is no column (that was printed)"),
        ({'use = "trees"': 'use = "tress"'}, "there is no shared settings 'tress'"),
        ({'ranker = "gbdt"': 'ranker = "gbtd"'}, "there is no ranker 'gbtd'; did you mean gbdt"),
        ({"lambda1": "lambda9"}, "IntervalRank has no parameter 'lambda9'"),
        ({'name = "IntervalRank"': 'name = "GBDT"'}, "two rows are called 'GBDT'"),
        ({'name = "{metric} standard"': 'name = "map"'}, "two columns are called 'map'"),
        ({'folds = "TINY"': ""}, "a study needs folds, synthetic, classes, ratings or topics"),
        ({'metrics = "ndcg@3"': 'metrics = "ncdg@3"'}, "there is no metric 'ncdg'"),
        ({"grid = { num_leaves = [2, 5] }": "grid = 3"}, "is not of the kind expected"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence_that_names_the_file(tmp_path, changes, says):
    assert says in refusal(tmp_path, changes)


def test_expected_figures_must_be_of_the_table(tmp_path):
    bound = '\n[[expected_metrics]]\nrow = "Oracle"\ncolumn = "map"\nvalue = 0.5\ntolerance = 0.1\n'
    assert "no 'map' of row 'Oracle'" in refusal(tmp_path, {}, TABLE + bound)


def test_a_file_that_is_no_toml_or_not_there_is_reported(tmp_path):
    (tmp_path / "a.toml").write_text("title = ")
    with pytest.raises(DataError, match=r"a\.toml is not a TOML file"):
        experiment(tmp_path / "a.toml")
    with pytest.raises(DataError, match=r"b\.toml cannot be read: No such file"):
        experiment(tmp_path / "b.toml")


# --- the shipped files -----------------------------------------------------------------------


def test_every_shipped_experiment_reads_and_has_a_title():
    assert list(overview()) == list(names())
    for name, about in overview().items():
        made = experiment(name)
        assert (made.title, made.note, made.digest) == (
            about["title"],
            about["note"],
            about["digest"],
        )


def test_table_1_of_intervalrank_is_the_paper_s():
    table = experiment("intervalrank-table1")
    assert table.row_names[:7] == (
        "RankBoost", "RankSVM", "FRank", "ListNet", "AdaRank.MAP", "AdaRank.NDCG", "IntervalRank",
    )  # fmt: skip
    assert list(table.printed["IntervalRank"].values())[:5] == [
        0.5628, 0.5448, 0.4900, 0.4703, 0.4609,
    ]  # fmt: skip
    printed = [
        column for column in table.studies[0].columns if column.name in table.printed["FRank"]
    ]
    assert {column.convention for column in printed} == {"letor3"}
    assert len(printed) == 11


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean intervalrank-table1"):
        experiment("intervalrank-tabel1")
    assert experiment("intervalrank_table1") == experiment("intervalrank-table1")

import json

import numpy as np
import pytest
from tiny_experiment import write_toml
from tiny_reuters import write_reuters
from tiny_topics import TOPICS

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError
from rankwright.metrics.evaluation import evaluate
from reproducibility.experiment_file import experiment
from reproducibility.topic_data import load_topics
from reproducibility.topics_run import choose_topics, run_topics, steps


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_reuters(folder / "Reuters21578")
    made = experiment(write_toml(folder / "tiny_topics.toml", TOPICS))
    return made, load_topics(made, folder)


@pytest.fixture(scope="module")
def done(tiny):
    lines = []
    return run_topics(*tiny, report=lines.append), lines


def test_every_row_is_measured_in_every_study_beside_what_was_printed(done):
    result, _ = done
    assert result.cell("sparse", "map").paper == 0.7
    assert (result.cell("Oracle", "map").paper, result.cell("Oracle", "map").ours) == (0.9, None)
    for row in ("sparse", "dense", "pairs"):
        assert result.cell(row, "map").ours > 0.9  # a topic's words are on its stories alone
        cell = result.cell(row, "clicks map")
        assert cell.low <= cell.ours <= cell.high
    assert result.queries == {"random": 3, "clicks": 3}
    assert result.cell("dense", "map").p_value is not None


def test_a_figure_is_the_mean_over_topics_of_the_chosen_models_on_test(tiny, done):
    _, folds = tiny
    result, _ = done
    test, models = folds["random"].test, result.chosen["random"]["dense"].models
    per_topic = []
    for topic in range(3):
        grades = test.grades.toarray()[:, topic]
        data = RankingData.from_arrays(test.X, grades, group_sizes=[len(grades)])
        weights = models.coef.toarray()[topic]
        per_topic.append(evaluate(data, test.X @ weights, "pair_error")["pair_error"])
    assert result.cell("dense", "pair_error").ours == pytest.approx(np.mean(per_topic))


def test_zero_weights_are_a_percentage(done):
    result, _ = done
    share = result.chosen["random"]["sparse"].models.zero_share
    assert result.cell("sparse", "zero_weights").ours == pytest.approx(100 * share.mean())
    assert result.cell("sparse", "zero_weights").ours >= 50.0
    assert result.cell("dense", "zero_weights").ours < 20.0


def test_the_best_setting_on_valid_is_kept_also_where_less_is_better(tiny, done):
    made, folds = tiny
    result, _ = done
    study, row = made.studies[1], made.rows[0]
    kept = result.chosen["clicks"]["sparse"]
    for setting in row.settings:
        alone = choose_topics(
            type(row)(row.name, row.ranker, (setting,), row.family), study, folds["clicks"]
        )
        assert kept.valid <= alone.valid


def test_clicks_are_judged_as_selected_or_not(tiny, done):
    _, folds = tiny
    result, _ = done
    test, models = folds["clicks"].test, result.chosen["clicks"]["dense"].models
    errors = []
    for topic in range(3):
        relevant = (test.grades.toarray()[:, topic] >= 1).astype(float)
        data = RankingData.from_arrays(test.X, relevant, group_sizes=[len(relevant)])
        scores = models.scores(test.X, topic)
        errors.append(evaluate(data, scores, "domination_error")["domination_error"])
    assert test.grades.data.max() > 1
    assert result.cell("dense", "clicks domination_error").ours == pytest.approx(np.mean(errors))


def test_a_line_is_printed_for_ten_topics_and_for_the_last(tiny, done):
    _, lines = done
    assert len(lines) == steps(*tiny) == 4 * 2
    assert lines[0] == "random, sparse: 3 of 3 topics"


def test_test_documents_change_no_choice(tiny, done):
    made, folds = tiny
    result, _ = done
    only = made.with_rows(["pairs"])
    swapped = {}
    for name, fold in folds.items():
        part = type(fold.test)(fold.test.X[::-1], fold.test.grades)
        swapped[name] = type(fold)(fold.topics, fold.train, fold.valid, part)
    again = run_topics(only, swapped)
    for study in folds:
        one, other = (r.chosen[study]["pairs"].models.coef for r in (result, again))
        assert (one != other).nnz == 0


def test_the_record_has_what_was_chosen_for_each_topic(done, tmp_path):
    result, _ = done
    result.write(tmp_path / "t.json")
    record = json.loads((tmp_path / "t.json").read_text())
    assert record["topics"]["random"] == ["grain", "money", "ship"]
    first = record["chosen"][0]
    assert (first["study"], first["row"]) == ("random", "sparse")
    assert first["setting"]["margin_scale"] in (0.0, 2.0)
    assert [len(first[key]) for key in ("of_topics", "valid_of_topics", "zero_weights")] == [3] * 3
    assert set(record["rows"][0]) == {"row", "column", "paper", "ours", "low", "high"}


def test_too_few_zero_weights_miss_what_is_expected(tmp_path, tiny):
    _, folds = tiny
    bound = (
        '\n[[expected_metrics]]\nrow = "dense"\ncolumn = "zero_weights"\n'
        "value = 95.0\ntolerance = 1.0\n"
    )
    made = experiment(write_toml(tmp_path / "t.toml", TOPICS + bound)).with_rows(["dense"])
    (missed,) = run_topics(made, folds).missed()
    assert missed.startswith("dense, zero_weights: ")


def test_missing_data_is_reported(tiny, tmp_path):
    made, _ = tiny
    with pytest.raises(DataError, match="random needs its data: pass --data DIR"):
        load_topics(made, None)
    with pytest.raises(DataError, match="Reuters21578 does not exist"):
        load_topics(made, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "topics"', 'kind = "table"', "Domination has no parameter 'steps'"),
        ('ranker = "linear"', 'ranker = "dense"', "no method for topics 'dense'"),
        ("min_zero", "min_zeros", "loss 'domination' has no parameter 'min_zeros'"),
        ("[studies.topics]", "[studies.synthetic]", "need each other"),
        ("zero_weights,", "zero_weight,", "zero_weight"),
        ("queries = 3", "querys = 3", "option of topics 'querys'; did you"),
        ("min_train = 5", "min_trian = 5", "option of topics 'min_trian'; did you mean min_train"),
        ('reuters = "Reuters21578", ', "", "topics needs reuters or clicks"),
    ],
)
def test_a_fault_of_the_file_is_reported_with_its_name(tmp_path, old, new, words):
    text = TOPICS.replace("pair_error,zero_weights", "zero_weights,pair_error")
    path = write_toml(tmp_path / "t.toml", text, changes={old: new})
    with pytest.raises(DataError, match=words) as caught:
        experiment(path)
    assert str(caught.value).startswith(f"{path}: ")

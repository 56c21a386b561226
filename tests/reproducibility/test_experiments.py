"""All experiments are listed, their printed figures are complete, and small ones run."""

import csv
import re
from pathlib import Path

import numpy as np
from scipy import sparse
from small_data import small_data

import rankwright as rw
from reproducibility import __main__ as command
from reproducibility import memr
from reproducibility.peers import BestFeature, ClassifierSVM, LiblinearPairs
from reproducibility.protocol import Run, columns
from reproducibility.report import PRINTED, printed_figures
from reproducibility.reuters import Part, TopicFold
from reproducibility.sparse import average_ranks, ranks_of
from reproducibility.topics import choose_settings, domination_path, evaluate_topics, pamir, ridge

ROOT = Path(__file__).parents[2]
PRINTED_FIGURES = {  # how many, by experiment
    "deck-table": 0,
    "dorm-figure2": 0,
    "dorm-figure4": 0,
    "dorm-sizes": 0,
    "dorm-table1": 12,
    "dorm-table2": 18,
    "dorm-table3": 6,
    "dorm-table4": 36,
    "intervalrank-figure3": 0,
    "intervalrank-table1": 77,
    "memr-figure2": 0,
    "memr-figure3": 0,
    "memr-figure4": 0,
    "memr-table1": 7,
    "memr-table2": 9,
    "memr-table4": 7,
    "mq2008-trees": 35,
    "new-losses": 0,
    "sparse-table11": 18,
    "sparse-table12": 25,
    "sparse-table13": 10,
}


def test_every_experiment_is_listed_and_documented(capsys):
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(PRINTED_FIGURES)
    for page in ("docs/papers.md", "docs/reproduction.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [name for name in PRINTED_FIGURES if not re.search(rf"[`=]{name}`", text)] == []


def test_the_printed_figures_are_complete():
    with PRINTED.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == sum(PRINTED_FIGURES.values())
    assert {name: len(printed_figures(name)) for name in PRINTED_FIGURES} == PRINTED_FIGURES
    assert printed_figures("intervalrank-table1")["IntervalRank", "ndcg@1"] == 0.5628


def test_one_failure_does_not_stop_the_others(monkeypatch, tmp_path, capsys):
    def fail(run):
        """Fail."""
        raise ValueError("no data")

    tables = {"a": fail, "memr-table2": memr.table2}
    monkeypatch.setattr(command, "experiments", lambda: tables)
    monkeypatch.setattr(rw, "synthetic", lambda *_, **__: small_data(queries=10))
    arguments = ["all", "--data", str(tmp_path), "--results", str(tmp_path / "out")]
    assert command.main(arguments) == 1
    out, err = capsys.readouterr()
    assert "a failed: ValueError: no data" in err
    assert "Sqr.MEMR LBFGS" in out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["memr-table2.csv"]


def make_topics(seed=0):
    """Return documents whose first words tell their topics."""
    rng = np.random.default_rng(seed)
    parts = []
    for n in (120, 60, 60):
        X = np.abs(rng.normal(size=(n, 20))) * (rng.random((n, 20)) < 0.4)
        y = (X[:, :2] + 0.1 * rng.normal(size=(n, 2)) > 0.9).astype(float)
        parts.append(Part(sparse.csr_array(X), sparse.csc_array(y)))
    return TopicFold(("a", "b"), *parts)


def test_a_ranking_function_for_each_topic_is_chosen_on_validation_data():
    fold, run = make_topics(), Run(data=None, n_jobs=1)
    X = fold.train.X
    methods = {
        "path": domination_path(X, steps=6, least=0.05, tiers=(1.0,)),
        "ridge": ridge(X, loss="domination", l2=(1e-1, 1e-2)),
        "pamir": pamir(X, C=(0.1,), n_steps=500, seed=0),
    }
    for name, method in methods.items():
        models = choose_settings(name, fold, [method], run)
        measures = columns("map", "zero_weights")
        values = evaluate_topics(models, fold.test, measures)
        assert values["map"][0].min() > 0.7, name
        zeros = 100.0 * (models.coef.toarray() == 0.0).mean(axis=1)
        np.testing.assert_allclose(values["zero_weights"][0], zeros)
    sparse_models = choose_settings("sparse", fold, [methods["path"]], run, min_zero=0.9)
    assert sparse_models.zero_weights.mean() >= 90.0


def test_average_ranks_are_among_the_rows_of_the_paper():
    among = np.array([True, True, False])
    np.testing.assert_array_equal(ranks_of(np.array([0.3, 0.5, 0.4]), among), [2.0, 1.0, 2.0])
    np.testing.assert_array_equal(ranks_of(np.array([0.3, 0.3, 0.3]), among), [1.5, 1.5, 2.0])
    rng = np.random.default_rng(0)
    values = [rng.random((3, 40)) + np.array([[0.0], [0.1], [0.2]]) for _ in range(2)]
    ranks, low, high = average_ranks(values, among, seed=0)
    assert ranks.tolist() == [2.0, 1.0, 1.0]
    assert (low <= ranks).all()
    assert (ranks <= high).all()


def test_rivals_learn_the_feature_that_tells_the_grades():
    data = small_data(queries=10)
    for rival in (LiblinearPairs(), ClassifierSVM(), ClassifierSVM(min_grade=1.0), BestFeature()):
        scores = rival.fit(data).predict(data)
        assert rw.evaluate(data, scores, "ndcg@5")["ndcg@5"] > 0.7, rival

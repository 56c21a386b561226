"""What is wrong with a command is reported before data is read: none of these files exists."""

import pytest
from command import run_json, sentence
from small_data import small_data

import rankwright as rw
from rankwright.cli.options import checked_ranker
from rankwright.errors import UsageError
from rankwright.rankers.base import ranker

TRAIN = ("train", "gbdt", "--train", "absent.txt")
AUTO = ("train", "auto", "--train", "absent.txt")
TUNE = ("tune", "ranksvm", "--train", "absent.txt", "--valid", "absent.txt")
EVALUATE = ("evaluate", "absent.txt", "--feature", "1")
COMPARE = ("compare", "absent.txt", "--rankers", "ranksvm")
RANK = ("rank", "model.rw", "absent.txt")
EXPLAIN = ("explain", "model.rw", "absent.txt", "--query", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flags")
    ranker("linear_regression").fit(small_data(queries=4)).save(folder / "model.rw")
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*TRAIN, "--metric", "ncdg@10"), "there is no metric 'ncdg'; did you mean ndcg"),
        ((*TRAIN, "--set", "metric=ncdg"), "there is no metric 'ncdg'"),
        ((*TRAIN, "--convention", "foo"), "there is no convention 'foo'"),
        (
            (*TRAIN, "--threads", "0"),
            "the number of threads must be 1 or more, or -1 for all CPUs, not 0",
        ),
        ((*TRAIN, "--read", "zero_based"), "--read takes key=value, not 'zero_based'"),
        ((*TRAIN, "--save", "no/model.rw"), "no is not a folder; make it"),
        ((*AUTO, "--metric", "ncdg@10"), "there is no metric 'ncdg'"),
        ((*AUTO, "--convention", "foo"), "there is no convention 'foo'"),
        ((*TUNE, "--metric", "ncdg@10"), "there is no metric 'ncdg'"),
        ((*TUNE, "--convention", "foo"), "there is no convention 'foo'"),
        ((*TUNE, "--trials", "0"), "the number of trials must be 1 or more, not 0"),
        ((*TUNE, "--set", "l2=1", "--set", "pairs=query"), "has nothing to search"),
        ((*TUNE, "--storage", "no/trials.log"), "no is not a folder; make it"),
        ((*TUNE, "--at-once", "2"), "--at-once needs --dask"),
        ((*EVALUATE, "--metrics", "ncdg@10"), "there is no metric 'ncdg'"),
        ((*EVALUATE, "--convention", "standard,foo"), "there is no convention 'foo'"),
        ((*EVALUATE, "--per-query", "no/values.tsv"), "no is not a folder; make it"),
        ((*EVALUATE, "--dask", "local:1"), "--dask evaluates models: give --load MODEL"),
        (("evaluate", "absent.txt", "--load", "nothing.rw"), "nothing.rw does not exist"),
        (("evaluate", "absent.txt", "--scores", "none.txt"), "none.txt does not exist"),
        (
            ("evaluate", "absent.txt", "--load", "model.rw", "--ties", "--dask", "local:1"),
            "--ties looks at all queries in one process; leave --dask out",
        ),
        ((*COMPARE, "--metrics", "ncdg@10"), "there is no metric 'ncdg'"),
        ((*COMPARE, "--select", "ncdg@10"), "there is no metric 'ncdg'"),
        ((*COMPARE, "--convention", "foo"), "there is no convention 'foo'"),
        ((*COMPARE, "--baseline", "gbdt"), "there is no ranker in this comparison called 'gbdt'"),
        ((*COMPARE, "--folds", "2"), "the number of folds must be 3 or more"),
        ((*COMPARE, "--jobs", "0"), "the number of jobs must be 1 or more"),
        ((*COMPARE, "--threads", "0"), "the number of threads must be 1 or more"),
        ((*COMPARE, "-o", "no/report.html"), "no is not a folder; make it"),
        ((*RANK, "-o", "no/run.txt"), "no is not a folder; make it"),
        ((*RANK, "--threads", "0"), "the number of threads must be 1 or more"),
        (("rank", "nothing.rw", "absent.txt"), "nothing.rw does not exist"),
        ((*EXPLAIN, "--against", "nothing.rw"), "nothing.rw does not exist"),
        ((*EXPLAIN, "--doc", "1", "--docs", "1", "2"), "give --doc or --docs, not both"),
        (("demo", "-o", "no/report.html"), "no is not a folder; make it"),
    ],
)
def test_the_flag_is_reported_and_not_the_file(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    reported = sentence(*arguments)
    assert words in reported
    assert "absent.txt" not in reported
    assert [path.name for path in folder.iterdir()] == ["model.rw"]


def test_each_part_of_a_ranker_is_checked():
    for parameters, words in (
        ({"loss": "listnets"}, "there is no loss 'listnets'; did you mean listnet?"),
        ({"loss": "listnet", "model": "trees", "solver": "tron"}, "'trees' takes no solver"),
        ({"loss": "listnet", "metric": "ncdg"}, "there is no metric 'ncdg'"),
    ):
        with pytest.raises(UsageError, match=words):
            checked_ranker("ranker", **parameters)


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["evaluate", "--run", "a.txt", "--run=b.txt", "--qrels", "q.txt"], "--run"),
        (["evaluate", "d.txt", "--metrics", "map", "--metrics", "ndcg"], "--metrics"),
        (["rank", "m.rw", "d.txt", "-o", "a", "--output", "b"], "--output"),
        (["clicks", "evaluate", "log.jsonl", "--estimator", "ips", "--estimator", "dr"], "--est"),
    ],
)
def test_a_second_value_of_an_option_is_refused(arguments, flag):
    said = sentence(*arguments)
    assert said.startswith(flag)
    assert "is given 2 times and takes one value; " in said
    assert ("rankwright compare DATA --rankers a=run:A.txt" in said) == (flag == "--run")


def test_options_that_may_be_repeated_are(tmp_path):
    data = rw.synthetic("mq2008", queries=6)
    rw.data.save(data, tmp_path / "d.csv")
    found = run_json("inspect", tmp_path / "d.csv", "--read", "drop=f1", "--read", "dtype=float32")
    assert found["data"][0]["features"] == data.n_features - 1

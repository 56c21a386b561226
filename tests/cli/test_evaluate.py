import numpy as np
import pytest
from command import run, run_json, sentence

LINES = """\
2 qid:a 1:0.1 2:0.5 # x
0 qid:a 1:0.9 2:0.5 # y
1 qid:b 1:0.3 2:0.1 # z
0 qid:b 1:0.2 2:0.2 # w
0 qid:c 1:0.5 2:0.5 # v
"""


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(LINES)
    return path


def test_scores_from_a_file(data, tmp_path):
    scores = tmp_path / "scores.txt"
    scores.write_text("1\n2\n4\n3\n0\n")
    found = run_json(
        "evaluate", data, "--scores", scores, "--metrics", "ndcg@1:2,map,err@2", alone=True
    )
    second = 1 / np.log2(3)
    assert list(found["metrics"]) == ["ndcg@1", "ndcg@2", "map", "err@2"]
    assert found["convention"] == "standard"
    assert (found["queries"], found["empty_queries"]) == (3, 1)
    assert found["metrics"]["ndcg@2"] == pytest.approx((second + 1 + 0) / 3)
    assert found["metrics"]["map"] == pytest.approx((0.5 + 1 + 0) / 3)


def test_a_single_feature_ranks_by_itself(data):
    found = run_json("evaluate", data, "--feature", "1", "--metrics", "p@1")
    assert found["metrics"]["p@1"] == pytest.approx(1 / 3)


def test_several_conventions_stand_side_by_side_with_what_differs(data):
    options = ("--feature", "1", "--convention", "standard,lightgbm", "--metrics", "ndcg@2")
    found = run_json("evaluate", data, *options)
    assert found["lightgbm"]["metrics"]["ndcg@2"] > found["standard"]["metrics"]["ndcg@2"]
    text = run("evaluate", data, *options).stdout
    assert "standard and lightgbm differ:" in text
    assert "1 of them (33.3%) without a relevant document" in text


def test_ties_that_decide_are_reported_and_shown(data):
    done = run("evaluate", data, "--feature", "2", "--metrics", "ndcg@1", "--ties")
    assert "worst / mean / best" in done.stdout
    assert "in 1 query, documents of different grade have equal scores" in done.stderr
    assert "equal scores" not in run("-q", "evaluate", data, "--feature", "2").stderr
    ties = run_json("evaluate", data, "--feature", "2", "--metrics", "ndcg@1", "--ties")["ties"]
    assert ties["ndcg@1"] == pytest.approx([0, 1 / 6, 1 / 3])


def test_values_of_each_query_go_to_a_file(data, tmp_path):
    out = tmp_path / "values.tsv"
    run("evaluate", data, "--feature", "1", "--metrics", "p@1,map", "--per-query", out)
    assert out.read_text().splitlines() == [
        "convention\tqid\tp@1\tmap",
        "standard\ta\t0.0\t0.5",
        "standard\tb\t1.0\t1.0",
        "standard\tc\t0.0\t0.0",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            (),
            "specify what to evaluate, one of --load MODEL, --scores FILE, --feature ID and --run",
        ),
        (("--feature", "9"), "there is no feature '9'; known: 1 to 2"),
        (("--feature", "1", "--metrics", "ncdg"), "there is no metric 'ncdg'; did you mean ndcg"),
        (("--feature", "1", "--metrics", "map@9223372036854775807"), "k must be 1,000,000,000 or"),
        (("--feature", "1", "--metrics", "ndcg@1:999999999"), "more than 1,000 cut-offs"),
        (("--feature", "1", "--convention", "letor5"), "letor4"),
        (("--scores", "absent.txt"), "absent.txt does not exist"),
    ],
)
def test_mistakes_are_one_sentence(data, options, expected):
    assert expected in sentence("evaluate", data, *options)


def test_too_few_scores_are_reported(data, tmp_path):
    (tmp_path / "s.txt").write_text("1\n2\n")
    assert "5" in sentence("evaluate", data, "--scores", tmp_path / "s.txt")


RUN = """\
q1 Q0 d1 1 3 t
q1 Q0 d2 2 2 t
q1 Q0 d3 3 1 t
q2 Q0 d4 1 2 t
q2 Q0 d5 2 1 t
q3 Q0 d9 1 1 t
"""
QRELS = "q1 0 d1 0\nq1 0 d2 2\nq1 0 d7 1\nq2 0 d4 1\nq2 0 d5 0\nq4 0 d1 1\n"


@pytest.fixture
def judged(tmp_path):
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return "--run", tmp_path / "run.txt", "--qrels", tmp_path / "qrels.txt"


def test_a_run_gets_the_figures_of_trec_eval(judged):
    done = run("evaluate", *judged, "--metrics", "ndcg@10,map", alone=True)
    assert [line.split() for line in done.stdout.splitlines()[:3]] == [
        ["metric", "trec_eval"],
        ["ndcg@10", "0.7398"],
        ["map", "0.6250"],
    ]
    assert "2 queries" in done.stdout
    assert "1 left out, as the query has no judgments: q3." in done.stdout
    assert "1 left out, as the query is not in the run: q4." in done.stdout


def test_names_of_other_tools_and_diversity_judgments(judged, tmp_path):
    found = run_json("evaluate", *judged, "--metrics", "P_10,nDCG@10,IPrec@0.1,Judged@10,num_rel")
    assert found["metrics"] == pytest.approx(
        {"P_10": 0.1, "nDCG@10": 0.7398, "IPrec@0.1": 0.75, "Judged@10": 5 / 6, "num_rel": 3},
        abs=1e-4,
    )
    (tmp_path / "qrels.txt").write_text("q1 1 d1 1\nq1 2 d1 1\nq1 2 d2 1\nq2 1 d5 1\n")
    found = run_json("evaluate", *judged, "--metrics", "ERR_IA@2,P_IA@2")
    ideal = 1 + 1 / 4
    err_ia = ((2 + 1 / 4) / (2 * ideal) + (1 / 2) / ideal) / 2
    assert found["metrics"] == pytest.approx({"ERR_IA@2": err_ia, "P_IA@2": (3 / 4 + 1 / 2) / 2})


def test_complete_and_relevance_level_of_a_run(judged, tmp_path):
    values = tmp_path / "values.tsv"
    options = ("-c", "-l", "2", "--metrics", "map,p@2", "--per-query", values)
    found = run_json("evaluate", *judged, *options)
    assert found["queries"] == 3
    assert found["convention"] == "trec_eval(min_grade=2)"
    assert found["left_out"] == {"q3": "has no judgments"}
    assert found["metrics"] == pytest.approx({"map": (1 / 2) / 3, "p@2": (1 / 2) / 3})
    assert values.read_text().splitlines()[1:] == [
        "trec_eval\tq1\t0.5\t0.5",
        "trec_eval\tq2\t0.0\t0.0",
        "trec_eval\tq4\t0.0\t0.0",
    ]


def test_an_empty_run_is_refused_or_0_for_all_judged_queries(judged, tmp_path):
    (tmp_path / "empty.run").write_text("")
    options = ("--run", tmp_path / "empty.run", *judged[2:], "--metrics", "map")
    assert "empty.run is empty" in sentence("evaluate", *options)
    found = run_json("evaluate", *options, "-c")
    assert (found["queries"], found["metrics"]) == (3, {"map": 0.0})


def test_a_run_without_a_judged_document_is_warned_about(judged, tmp_path):
    (tmp_path / "other.run").write_text("q1 Q0 d1.0 1 1 tag\n")
    done = run("evaluate", "--run", tmp_path / "other.run", *judged[2:])
    assert "the run has documents such as 'd1.0', the judgments such as 'd1'" in done.stderr


def test_other_conventions_of_a_run(judged):
    found = run_json("evaluate", *judged, "--metrics", "ndcg", "--convention", "standard,ranx")
    second = 1 / np.log2(3)
    assert found["standard"]["metrics"]["ndcg"] == pytest.approx(
        (3 * second / (3 + second) + 1) / 2
    )
    assert found["ranx"]["metrics"]["ndcg"] == pytest.approx((2 * second / (2 + second) + 1) / 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "say what to evaluate: DATA, or --run RUN --qrels QRELS"),
        (("run.txt", "-c", "--feature", "1"), "belong to a run: give --run RUN"),
        (("--run", "run.txt"), "run.txt is a run; name its judgments with --qrels FILE"),
        (("--run", "a", "--qrels", "b", "--feature", "1"), "specify what to evaluate, one of"),
        (("digits", "--run", "a", "--qrels", "b"), "omit DATA"),
        (("a.run", "--feature", "score"), "rankwright evaluate --run a.run --qrels QRELS"),
    ],
)
def test_mistakes_with_runs_are_one_sentence(options, expected):
    assert expected in sentence("evaluate", *options)


def test_the_number_of_queries_that_a_mean_is_over_is_shown(data):
    options = ("--feature", "1", "--metrics", "p@1,auc")
    assert run_json("evaluate", data, *options)["queries_by_metric"] == {"p@1": 3, "auc": 2}
    text = run("evaluate", data, *options).stdout
    assert "Queries with a value, over which the mean is: auc 2." in text

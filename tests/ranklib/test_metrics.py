"""RankLib's metrics: its names and defaults, and where --strict repeats its errors."""

import numpy as np
import pytest
from ranklib_runs import figure

from rankwright.ranklib.command import run
from rankwright.ranklib.metrics import RankLibMetric


@pytest.mark.parametrize(
    ("text", "label", "ours"),
    [
        ("ndcg@5", "NDCG@5", "ndcg@5"),
        ("NDCG", "NDCG@10", "ndcg@10"),
        ("map", "MAP", "map"),
        ("RR@3", "RR@3", "mrr@3"),
        ("ERR", "ERR@10", "err(max=4)@10"),
        ("BEST", "BEST@10", "best@10"),
        ("P@5", "P@5", "p@5"),
    ],
)
def test_metrics_have_ranklibs_names_and_defaults(text, label, ours):
    metric = RankLibMetric.of(text)
    assert (metric.label, metric.name) == (label, ours)


def test_rr_without_k_is_zero_in_ranklib(files, capsys):
    base = ["-test", str(files / "test.txt"), "-metric2T", "RR"]
    run(base)
    shown = capsys.readouterr()
    assert figure(shown.out, "test") > 0
    assert "RR without @k" in shown.err
    run([*base, "--strict"])
    assert figure(capsys.readouterr().out, "test") == 0.0


def test_judgments_change_what_there_is_to_find(tmp_path, capsys):
    (tmp_path / "data.txt").write_text("1 qid:1 1:2 # a\n0 qid:1 1:1 # b\n1 qid:2 1:1 # c\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 z 1\n")
    base = ["-test", str(tmp_path / "data.txt"), "-qrel", str(tmp_path / "qrels")]
    run([*base, "-metric2T", "MAP"])
    assert figure(capsys.readouterr().out, "test") == (1 / 2 + 0) / 2  # of query 2 nothing is known
    run([*base, "-metric2T", "NDCG@10"])
    best = 1 + 1 / np.log2(3)
    assert figure(capsys.readouterr().out, "test") == pytest.approx((1 / best + 1) / 2, abs=5e-5)


def test_the_best_list_of_a_query_id_is_remembered_in_ranklib(tmp_path, capsys):
    """Two lists of one id: RankLib divides the second by the best of the first."""
    rows = ["2 qid:1 1:1", "0 qid:2 1:1", "1 qid:1 1:1"]
    (tmp_path / "data.txt").write_text("\n".join(rows) + "\n")
    base = ["-test", str(tmp_path / "data.txt"), "-metric2T", "NDCG@10"]
    run(base)
    assert figure(capsys.readouterr().out, "test") == pytest.approx((1 + 0 + 1) / 3, abs=5e-5)
    run([*base, "--strict"])
    assert figure(capsys.readouterr().out, "test") == pytest.approx((1 + 0 + 1 / 3) / 3, abs=5e-5)


def test_hr_leaves_lists_without_a_relevant_document_out(tmp_path, capsys):
    (tmp_path / "data.txt").write_text("0 qid:1 1:2\n1 qid:2 1:1\n")
    run(["-test", str(tmp_path / "data.txt"), "-metric2T", "NDCG@10"])
    assert figure(capsys.readouterr().out, "test") == 0.5
    run(["-test", str(tmp_path / "data.txt"), "-metric2T", "NDCG@10", "-hr"])
    assert figure(capsys.readouterr().out, "test") == 1.0

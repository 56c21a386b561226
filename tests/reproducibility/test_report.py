"""Figures with intervals next to the printed ones, verdicts, tests and claims."""

import csv
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from reproducibility import report as module
from reproducibility.protocol import Run
from reproducibility.report import Report, verdict

RUN = Run(data=None)


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Return a report of two rows in two folds, of which the paper has one row and another."""
    printed = tmp_path / "printed.csv"
    printed.write_text("experiment,row,column,printed\nx,A,map,0.5\nx,P,map,0.4\ny,A,map,9\n")
    monkeypatch.setattr(module, "PRINTED", printed)
    rng = np.random.default_rng(0)
    a = [rng.random(30), rng.random(20)]
    made = Report("x", RUN, baseline="A")
    made.add_values("s", {"A": {"map": a}, "B": {"map": [part + 0.2 for part in a]}})
    return made


def test_ours_is_the_pooled_mean_with_its_bootstrap_interval(report):
    cell = next(cell for cell in report.cells if cell.row == "A")
    pooled = np.concatenate(report.values["A"]["map"])
    assert cell.ours == pytest.approx(pooled.mean(), rel=1e-12)
    half = 2.01 * pooled.std(ddof=1) / np.sqrt(50)  # Student's t, 49 degrees of freedom
    expected = [pooled.mean() - half, pooled.mean() + half]
    np.testing.assert_allclose([cell.low, cell.high], expected, atol=0.005)


def test_the_paper_s_rows_come_first_with_their_figures(report):
    table = report.table()
    assert [(cell.row, cell.printed) for cell in table] == [("A", 0.5), ("P", 0.4), ("B", None)]
    assert table[0].verdict == verdict(0.5, table[0].low, table[0].high)
    assert (table[1].ours, table[1].verdict) == (None, "")
    report.printed_on = "other data"
    assert [cell.verdict for cell in report.table()] == ["", "", ""]


@pytest.mark.parametrize(
    ("printed", "expected"), [(0.1, "better"), (0.3, "within"), (0.5, "within"), (0.6, "worse")]
)
def test_the_verdict_compares_the_printed_figure_with_our_interval(printed, expected):
    assert verdict(printed, 0.3, 0.5) == expected


def test_rows_are_tested_against_the_baseline(report):
    a, b = report.cells
    assert (a.difference, a.p_value) == (None, None)
    assert b.difference == pytest.approx(0.2)
    assert b.p_value < 0.001


def test_a_paired_contrast_pools_queries_and_an_unpaired_one_has_a_value_for_each_fold(report):
    report.contrast("B", "A", ["map"])
    report.contrast("B", "A", ["map"], unpaired=True)
    paired, unpaired = report.contrasts
    assert (paired.ours, paired.low, paired.high) == pytest.approx((0.2, 0.2, 0.2))
    a, b = ([part.mean() for part in report.values[name]["map"]] for name in "AB")
    assert unpaired.p_value == pytest.approx(stats.ttest_ind(b, a, equal_var=False).pvalue)
    assert "B is better" in report.notes[0]
    assert "p = 0.0044, Welch" in report.notes[1]


def test_a_claim_counts_the_columns_in_which_a_row_is_ahead(report):
    report.claim("B is best", "B", ["map"])
    report.claim("A is best", "A", ["map"], above=["B"])
    assert report.notes[0] == "The paper: B is best. Here in 1 of 1 columns"
    assert report.notes[1].startswith("The paper: A is best. Here in 0 of 1 columns; not in map (B")


def test_the_csv_file_and_the_printed_table_hold_the_figures(report, tmp_path):
    report.contrast("B", "A", ["map"])
    with report.write(tmp_path / "results").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["row"] for line in lines] == ["A", "P", "B", "B - A"]
    assert float(lines[0]["ours"]) == pytest.approx(report.cells[0].ours, rel=1e-5)
    out = StringIO()
    report.show("A title", Console(file=out))
    text = out.getvalue()
    assert "A title" in text
    assert f"{report.cells[0].ours:.4f}" in text
    assert "paper 0.4" in text

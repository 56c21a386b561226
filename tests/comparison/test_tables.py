"""Tables for a paper: against values worked out by hand from made-up scores."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rankwright.comparison.compare import compare
from rankwright.comparison.report import report_content
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold
from rankwright.errors import UsageError
from rankwright.metrics.significance import Interval, bootstrap_interval

QUERIES = 40


@pytest.fixture(scope="module")
def data():
    """One relevant document of two in each query: p@1 is 1 where it is first, else 0."""
    y = np.tile([1.0, 0.0], QUERIES)
    return RankingData.from_arrays(np.zeros((2 * QUERIES, 1)), y, qid=np.arange(QUERIES).repeat(2))


def right_in(count):
    """Scores that put the relevant document first in this many queries."""
    first = np.where(np.arange(QUERIES) < count, 1.0, -1.0)
    return np.column_stack((first, np.zeros(QUERIES))).ravel()


GIVEN = {
    "base_1": right_in(20),
    "good & new": right_in(36),
    "bad": right_in(4),
    "like": right_in(21),
}


def compared(data, **options):
    options = {"metrics": "p@1,pair_error", "test": "t", "jobs": 1, **options}
    return compare(Fold(data, None, data), GIVEN, **options)


@pytest.fixture(scope="module")
def found(data, tmp_path_factory):
    return compared(data, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def pairs(data, tmp_path_factory):
    return compared(
        data,
        cache=tmp_path_factory.mktemp("cache"),
        baseline="all",
        correction="bh",
        test="wilcoxon",
    )


def body(latex):
    """The rows between the rules, as cells."""
    inside = latex.partition("\\midrule\n")[2].partition("    \\bottomrule")[0]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)&", row.strip().removesuffix("\\\\"))]
        for row in inside.strip().splitlines()
    ]


def test_latex_has_best_second_and_marks(found):
    assert body(found.to_latex()) == [
        [r"base\_1", "0.5000", "0.5000"],
        [r"good \& new", r"\textbf{0.9000}$^{\dagger}$", r"\textbf{0.1000}$^{\dagger}$"],
        ["bad", r"0.1000$^{\ddagger}$", r"0.9000$^{\ddagger}$"],
        ["like", r"\underline{0.5250}", r"\underline{0.4750}"],
    ]


def test_latex_is_a_whole_table_of_booktabs(found):
    latex = found.to_latex(label="tab:mine")
    opened = re.findall(r"\\begin\{(\w+)\}", latex)
    assert opened == re.findall(r"\\end\{(\w+)\}", latex)[::-1] == ["table", "tabular"]
    assert [rule for rule in ("toprule", "midrule", "bottomrule") if f"\\{rule}" in latex] == [
        "toprule", "midrule", "bottomrule",
    ]  # fmt: skip
    assert r"\begin{tabular}{lll}" in latex
    assert r"Ranker & P@1 & pair\_error $\downarrow$ \\" in latex
    assert r"\label{tab:mine}" in latex
    assert latex.isascii()
    unescaped = re.sub(r"\\[a-zA-Z]+|\\.", "", latex).count
    assert unescaped("{") == unescaped("}")


def test_the_caption_says_how_it_was_tested(found):
    caption = re.search(r"\\caption\{(.*)\}\n", found.to_latex())[1]
    assert caption == (
        r"Mean over 40 test queries of one fold, convention standard. The best value of each "
        r"metric is bold, the second best underlined; $\downarrow$: lower is better. $\dagger$ and "
        r"$\ddagger$: significantly better and worse than base\_1 (two-sided paired t-test, p at "
        r"most 0.05, Holm's correction over the 3 tests of each metric)."
    )
    assert r"\caption{Mine: 5\%}" in found.to_latex(caption=r"Mine: 5\%")


def test_differences_to_the_baseline_have_intervals(found, pairs, tmp_path):
    """The 40 differences of p@1 are 16 times 1, and otherwise 0."""
    test = found.test("good & new", "p@1")
    difference = np.repeat([1.0, 0.0], [16, 24])
    expected = bootstrap_interval(difference, bounds=(-1, 1))
    assert test.difference == expected.mean
    assert 0.2 < test.low < 0.4 < test.high < 0.6
    assert (test.low, test.high) == pytest.approx((expected.low, expected.high), abs=0.01)
    back = test.reversed()
    assert (back.low, back.high) == (-test.high, -test.low)
    reported = found.as_json()["tests"][0]
    assert (reported["low"], reported["high"]) == (test.low, test.high)
    shown = f"+0.4000 ({test.low:+.4f} to {test.high:+.4f})"
    lines = str(found).splitlines()
    assert lines[5].startswith("Differences to base_1, with 95 % intervals")
    assert lines[6].startswith(f"  good & new  p@1 {shown}, pair_error -0.4000 (")
    assert shown in found._repr_html_()
    found.write(tmp_path / "t.html")
    assert shown in (tmp_path / "t.html").read_text()
    frame = found.to_frame()
    assert frame["p@1 difference low"].tolist()[1] == test.low
    assert found.to_frame(long=True)["difference_high"].tolist()[2] == test.high
    assert "Differences to" not in str(pairs)


def test_entries_that_are_worse_are_named_for_a_gate(found):
    assert [test.ranker for test in found.worse()] == ["bad"]
    high = found.test("bad", "p@1").high  # the best that the difference may be
    assert [test.ranker for test in found.worse(-high - 0.01)] == ["bad"]
    assert found.worse(-high + 0.01) == []
    assert [test.ranker for test in found.worse(0.1, "pair_error")] == ["bad"]
    with pytest.raises(UsageError, match="the margin must be a number from 0"):
        found.worse(-0.1)
    with pytest.raises(UsageError, match="metric in this comparison called 'map'"):
        found.worse(metric="map")


def test_letters_mark_all_pairs(pairs):
    """Good beats all; base and like beat bad alone."""
    table = body(pairs.to_latex(metrics=["p@1"]))
    assert table[0] == [r"$^{\mathrm{a}}$ base\_1", r"0.5000$^{\mathrm{c}}$"]
    assert table[1][1] == r"\textbf{0.9000}$^{\mathrm{acd}}$"
    assert table[2][1] == "0.1000"
    assert table[3][1] == r"\underline{0.5250}$^{\mathrm{c}}$"
    latex = pairs.to_latex()
    assert "Wilcoxon signed-rank test" in latex
    assert "Benjamini-Hochberg correction over the 6 tests of each metric" in latex


def test_markdown_has_the_same(found, pairs):
    lines = found.to_markdown(digits=3).splitlines()
    assert lines[:4] == [
        "| Ranker | P@1 | pair\\_error ↓ |",
        "| --- | ---: | ---: |",
        "| base\\_1 | 0.500 | 0.500 |",
        "| good & new | **0.900**† | **0.100**† |",
    ]
    assert lines[5] == "| like | <u>0.525</u> | <u>0.475</u> |"
    assert "† and ‡: significantly better and worse than base\\_1" in lines[7]
    assert "| <sup>b</sup> good & new | **0.9000**<sup>acd</sup> |" in pairs.to_markdown(
        metrics="p@1"
    )


def test_equal_when_rounded_is_equally_bold(found):
    close = dict(found.intervals)
    close["like"] = {**close["like"], "p@1": Interval(0.90001, 0.8, 1.0, 0.95)}
    rows = body(replace(found, intervals=close).to_latex(metrics=["p@1"]))
    assert [r"\textbf" in row[1] for row in rows] == [False, True, False, True]
    assert [r"\underline" in row[1] for row in rows] == [True, False, False, False]


def test_names_intervals_and_digits_are_chosen(found):
    names = {"base_1": "BM25", "p@1": "Prec."}
    latex = found.to_latex(names=names, intervals=True, digits=2, metrics=["p@1"])
    at = found.intervals["base_1"]["p@1"]
    assert body(latex)[0] == ["BM25", rf"0.50 {{\scriptsize [{at.low:.2f}, {at.high:.2f}]}}"]
    assert "Ranker & Prec." in latex
    assert "worse than BM25" in latex
    with pytest.raises(UsageError, match="metric in this comparison called 'map'"):
        found.to_latex(metrics=["map"])
    with pytest.raises(UsageError, match="called 'goood'"):
        found.to_markdown(names={"goood": "x"})


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_frame_has_a_row_per_ranker(found, backend):
    frame = found.to_frame(backend)
    table = pd.DataFrame(frame.to_pandas() if backend != "pandas" else frame)
    assert table["ranker"].tolist() == list(GIVEN)
    assert table["p@1"].tolist() == pytest.approx([0.5, 0.9, 0.1, 0.525])
    assert table["p@1 mark"].tolist() == ["", "+", "-", ""]
    assert table["p@1 p"].tolist()[1] == found.test("good & new", "p@1").adjusted


def test_the_long_frame_has_a_row_per_ranker_and_metric(found, pairs):
    table = found.to_frame("polars", long=True)
    assert table.height == 8
    good = table.filter((pl.col("ranker") == "good & new") & (pl.col("metric") == "p@1"))
    assert good["difference"].item() == pytest.approx(0.4)
    assert pairs.to_frame()["p@1 mark"].tolist() == ["c", "acd", "", "c"]
    with pytest.raises(UsageError, match="frame backend"):
        found.to_frame("panda")


def test_it_is_written_as_the_suffix_says(found, tmp_path):
    for name in ("t.tex", "t.md", "t.csv", "t.json", "t.html"):
        found.write(tmp_path / name)
    assert (tmp_path / "t.tex").read_text() == found.to_latex()
    assert (tmp_path / "t.md").read_text() == found.to_markdown()
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [float(row["p@1"]) for row in rows] == pytest.approx([0.5, 0.9, 0.1, 0.525])
    assert json.loads((tmp_path / "t.json").read_text())["test"] == "t"
    assert "<table" in (tmp_path / "t.html").read_text()
    with pytest.raises(UsageError, match=r"unknown file extension of 't.docx': a comparison is"):
        found.write(tmp_path / "t.docx")


def test_the_report_of_all_pairs_explains_the_arrows_that_it_shows(pairs):
    marks = "▲ ▼: significantly better or worse than base_1"
    assert marks in report_content(pairs)["about"]
    assert "▲" not in pairs.about()

"""A comparison as a table: rows of text, with intervals and marks; for a terminal or a notebook."""

from __future__ import annotations

from html import escape
from string import ascii_lowercase
from typing import TYPE_CHECKING

from rankwright.metrics.significance import LEVEL

if TYPE_CHECKING:
    from rankwright.experiments.comparison import Comparison


TESTS = {
    "randomisation": "two-sided paired randomisation test",
    "t": "two-sided paired t-test",
    "wilcoxon": "two-sided Wilcoxon signed-rank test",
}
CORRECTIONS = {"holm": "Holm's correction", "bh": "Benjamini-Hochberg correction"}


def rows(found: Comparison) -> list[list[str]]:
    """Return the table as text, its heading first; an interval stands on a line below its mean."""
    head = ["", *found.metrics, "wins/ties/losses", "seconds", "size"]
    return [head, *(_row(found, label) for label in found.rankers)]


def about(found: Comparison, *, arrows: bool = False) -> str:
    """Return the sentence under the table: how it was made and what its marks mean.

    With ``arrows`` the marks are those against the baseline, also where all pairs were tested.
    """
    if found.all_pairs and not arrows:
        marks = "a letter after a value: significantly better than the ranker of that letter"
    else:
        marks = f"▲ ▼: significantly better or worse than {found.baseline}"
    return (
        f"{found.name}: mean and 95 % bootstrap interval over {tested_queries(found)}; {marks} "
        f"({test_words(found)}); wins, ties and losses are queries against {found.baseline} by "
        f"{found.metrics[0]}; seconds are those of a fit, the median over folds, without "
        "compilation."
    )


def tested_queries(found: Comparison) -> str:
    """Return how many queries of how many folds were tested, and under which convention."""
    folds = f"{len(found.folds)} folds" if len(found.folds) > 1 else "one fold"
    return f"{len(found.qid):,} test queries of {folds}, convention {found.convention}"


def test_words(found: Comparison) -> str:
    """Return the test, its level and the correction."""
    count = len({(test.ranker, test.baseline) for test in found.tests})
    if found.correction is None:
        corrected = "no correction"
    else:
        of = f"the {count} tests" if count != 1 else "the one test"
        corrected = f"{CORRECTIONS[found.correction]} over {of} of each metric"
    return f"{TESTS[found.test_name]}, p at most {LEVEL:g}, {corrected}"


def letters(found: Comparison) -> dict[str, str]:
    """Return the letter that stands for each entry where all pairs are tested: a, b, ... aa."""
    alphabet = ascii_lowercase
    return {
        label: alphabet[k] if k < 26 else alphabet[k // 26 - 1] + alphabet[k % 26]
        for k, label in enumerate(found.rankers)
    }


def marks(found: Comparison, label: str, metric: str) -> str:
    """Return what a value differs from significantly.

    That is "+" or "-", where it is better or worse than the baseline; where all pairs are tested,
    the letters of the entries that it is better than.
    """

    def better(other: str) -> bool | None:
        test = found.test(label, metric, other)
        if test is None or not test.significant:
            return None
        return (test.difference > 0) == found.maximise[metric]

    if found.all_pairs:
        beaten = [name for other, name in letters(found).items() if better(other)]
        return ("," if len(found.rankers) > 26 else "").join(beaten)
    return {None: "", True: "+", False: "-"}[better(found.baseline)]


def as_text(found: Comparison) -> str:
    """Return the table and the sentence under it, without intervals."""
    table = [[cell.partition("\n")[0] for cell in row] for row in rows(found)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    return "\n".join([*lines, *remarks(found), about(found)])


def remarks(found: Comparison) -> list[str]:
    """Return a line for each entry that failed, or whose scores need a word."""
    return [f"{label}: {why}" for label, why in {**found.notes, **found.failures}.items()]


def as_html(found: Comparison) -> str:
    """Return the table and the sentence under it, for a notebook."""
    head, *body = rows(found)
    html = ["<table><thead><tr>", *(f"<th>{escape(cell)}</th>" for cell in head)]
    html.append("</tr></thead><tbody>")
    for row in body:
        cells = [escape(cell).replace("\n", "<br><small>") for cell in row]
        closed = [cell + "</small>" * cell.count("<small>") for cell in cells]
        html.append(f"<tr><th>{closed[0]}</th>")
        html.extend(f"<td>{cell}</td>" for cell in closed[1:])
        html.append("</tr>")
    for label, why in {**found.notes, **found.failures}.items():
        html.append(
            f"<tr><th>{escape(label)}</th><td colspan={len(head) - 1}>{escape(why)}</td></tr>"
        )
    return "".join([*html, f"</tbody></table><p>{escape(about(found))}</p>"])


def _row(found: Comparison, label: str) -> list[str]:
    cells = [_cell(found, label, metric) for metric in found.metrics]
    test = found.test(label, found.metrics[0])
    counts = "baseline" if test is None else f"{test.wins}/{test.ties}/{test.losses}"
    name = f"{letters(found)[label]}  {label}" if found.all_pairs else label
    seconds = found.seconds[label]
    time = "–" if seconds is None else f"{seconds:.2f}"
    return [name, *cells, counts, time, _size(found.sizes[label])]


def _cell(found: Comparison, label: str, metric: str) -> str:
    """Return a mean, with a mark where it differs significantly, and its interval below."""
    interval, mark = found.intervals[label][metric], marks(found, label, metric)
    value = f"{interval.mean:.4f}"
    if found.all_pairs:
        value = f"{value} {mark}".rstrip()
    elif mark:
        value = f"{'▲' if mark == '+' else '▼'} {value}"
    return f"{value}\n{interval.low:.3f}–{interval.high:.3f}"


def _size(count: float | None) -> str:
    if count is None:
        return "–"
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"

"""A comparison as a table: rows of text, with intervals and marks; for a terminal or a notebook."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from rankwright.data.streams import atomic_text
from rankwright.errors import UsageError, counted
from rankwright.metrics.significance import LEVEL
from rankwright.registry import unknown

if TYPE_CHECKING:
    from rankwright.comparison.result import Comparison


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
        f"({test_description(found)}); wins, ties and losses are queries against {found.baseline} "
        f"by {found.metrics[0]}; seconds are those of a fit, the median over folds, without "
        f"compilation."
    )


def tested_queries(found: Comparison) -> str:
    """Return the number of queries and folds, how queries are combined, and the convention."""
    folds = f"{len(found.folds)} folds" if len(found.folds) > 1 else "one fold"
    parts = [f"{counted(len(found.qid), 'test query', 'test queries')} of {folds}"]
    fewer = [clause for metric in found.metrics if (clause := _fewer_queries(found, metric))]
    if fewer:
        parts[0] += f" ({', '.join(fewer)})"
    if found.repeated:
        parts.append("each averaged over the folds that test it")
    if found.query_weight is not None:
        parts.append("weighted by query_weight")
    return ", ".join([*parts, f"convention {found.convention}"])


def _fewer_queries(found: Comparison, metric: str) -> str | None:
    """Return how many queries have a value of ``metric``, None if all have."""
    counts = {found.n_queries(label, metric) for label in found.rankers}
    if min(counts) == len(found.qid):
        return None
    least, most = f"{min(counts):,}", f"{max(counts):,}"
    return f"{metric} over {least if least == most else f'{least} to {most}'}"


def test_description(found: Comparison) -> str:
    """Return the test, its level and the correction."""
    count = len({(test.ranker, test.baseline) for test in found.tests})
    if found.correction is None:
        corrected = "no correction"
    else:
        of = f"the {count} tests" if count != 1 else "the one test"
        corrected = f"{CORRECTIONS[found.correction]} over {of} of each metric"
    of_weighted = "" if found.query_weight is None else " of weighted differences"
    return f"{TESTS[found.test_name]}{of_weighted}, p at most {LEVEL:g}, {corrected}"


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
    return "\n".join([*lines, *differences(found), *remarks(found), about(found)])


def differences(found: Comparison) -> list[str]:
    """Return lines with the differences to the baseline; none if all pairs are tested."""
    others = [label for label in found.rankers if label != found.baseline]
    if found.all_pairs or not others:
        return []
    width = max(map(len, others))
    return [
        f"Differences to {found.baseline}, with 95 % intervals (not corrected for several tests):",
        *(
            f"  {label:<{width}}  "
            + ", ".join(f"{metric} {difference(found, label, metric)}" for metric in found.metrics)
            for label in others
        ),
    ]


def difference(found: Comparison, label: str, metric: str) -> str:
    """Return the difference of an entry to the baseline with its interval, as text."""
    test = found.test(label, metric)
    if test is None or not math.isfinite(test.difference):
        return "–"
    if math.isnan(test.low):
        return f"{test.difference:+.4f}"
    return f"{test.difference:+.4f} ({test.low:+.4f} to {test.high:+.4f})"


def remarks(found: Comparison) -> list[str]:
    """Return lines on entries that failed or need a remark."""
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
    shown = "<br>".join(map(escape, differences(found)))
    below = f"<p>{shown}</p>" if shown else ""
    return "".join([*html, f"</tbody></table>{below}<p>{escape(about(found))}</p>"])


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
    value = f"{interval.mean:.4f}" if math.isfinite(interval.mean) else "–"
    if found.all_pairs:
        value = f"{value} {mark}".rstrip()
    elif mark:
        value = f"{'▲' if mark == '+' else '▼'} {value}"
    if math.isnan(interval.low):
        return f"{value}\nno interval"
    return f"{value}\n{interval.low:.3f}–{interval.high:.3f}"


def _size(count: float | None) -> str:
    if count is None:
        return "–"
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


# --- for a paper: LaTeX, Markdown or columns -------------------------------------------------
# A comparison as a table for a paper: LaTeX, Markdown or columns, with marks and a caption.
#
# The best mean of a metric is bold and the second best underlined, as they are printed: means
# that round to the same digits are equally good. Marks are superscripts: a dagger and a double
# dagger where a value is significantly better and worse than the baseline, or, where all pairs
# were tested, the letters of the rankers that it is significantly better than.


SUFFIXES = (".html", ".tex", ".md", ".csv", ".json")
_UPPER = frozenset({"auc", "dcg", "err", "eru", "f1", "map", "mrr", "ndcg", "p", "rbp", "wta"})
_METRIC = re.compile(r"([a-z0-9_]+)(@\d+)?")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip


@dataclass(frozen=True)
class _Cell:
    """A mean as it is printed, its place among those of its metric, and its mark."""

    text: str
    best: bool
    second: bool
    mark: str
    interval: str


@dataclass(frozen=True)
class _Table:
    """What every form of the table shows."""

    head: list[str]
    rows: list[tuple[str, str, list[_Cell]]]  # letter, name, cells
    caption: list[str]  # sentences
    all_pairs: bool


def to_latex(
    found: Comparison,
    *,
    metrics: Sequence[str] | None,
    digits: int,
    intervals: bool,
    names: Mapping[str, str] | None,
    caption: str | None,
    label: str,
) -> str:
    """Return the table in LaTeX, for the package booktabs."""
    table = _table(found, metrics, digits, names)
    signs = {"+": r"\dagger", "-": r"\ddagger"}

    def cell(one: _Cell) -> str:
        text = rf"\textbf{{{one.text}}}" if one.best else one.text
        text = rf"\underline{{{text}}}" if one.second else text
        mark = rf"\mathrm{{{one.mark}}}" if table.all_pairs else signs.get(one.mark, "")
        text += rf"$^{{{mark}}}$" if one.mark else ""
        return text + (rf" {{\scriptsize [{one.interval}]}}" if intervals else "")

    made = _latex(" ".join(table.caption))
    made = made.replace("††", r"$\dagger$").replace("‡‡", r"$\ddagger$")
    skipped = [f"% {line}" for line in found.remarks()]
    rows = [
        (rf"$^{{\mathrm{{{letter}}}}}$ " if table.all_pairs else "")
        + " & ".join([_latex(name), *map(cell, cells)])
        for letter, name, cells in table.rows
    ]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            *skipped,
            r"\begin{table}[t]",
            r"  \centering",
            rf"  \caption{{{made if caption is None else caption}}}",
            rf"  \label{{{label}}}",
            rf"  \begin{{tabular}}{{{'l' * (1 + len(table.head))}}}",
            r"    \toprule",
            "    " + " & ".join(["Ranker", *(_latex(name) for name in table.head)]) + r" \\",
            r"    \midrule",
            *(rf"    {row} \\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    ).replace("↓", r"$\downarrow$")


def to_markdown(
    found: Comparison,
    *,
    metrics: Sequence[str] | None,
    digits: int,
    intervals: bool,
    names: Mapping[str, str] | None,
) -> str:
    """Return the table in Markdown, its caption below."""
    table = _table(found, metrics, digits, names)

    def cell(one: _Cell) -> str:
        text = f"**{one.text}**" if one.best else one.text
        text = f"<u>{text}</u>" if one.second else text
        sign = one.mark if table.all_pairs else {"+": "†", "-": "‡"}.get(one.mark, "")
        sign = f"<sup>{sign}</sup>" if table.all_pairs and sign else sign
        return text + sign + (f" [{one.interval}]" if intervals else "")

    lines = [["Ranker", *map(_markdown, table.head)], ["---", *("---:" for _ in table.head)]]
    for letter, name, cells in table.rows:
        shown = f"<sup>{letter}</sup> {_markdown(name)}" if table.all_pairs else _markdown(name)
        lines.append([shown, *map(cell, cells)])
    below = _markdown(" ".join(table.caption)).replace("††", "†").replace("‡‡", "‡")
    remarks = [f"\n{_markdown(line)}" for line in found.remarks()]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([body, "", below, *remarks, ""])


def columns(found: Comparison) -> dict[str, list[Any]]:
    """Return a row per ranker: of each metric the mean, difference, intervals, p-value and mark."""
    table = {"ranker": list(found.rankers)} | (
        {"letter": list(letters(found).values())} if found.all_pairs else {}
    )
    result: dict[str, list[Any]] = dict(table)
    for metric in found.metrics:
        at = [found.intervals[label][metric] for label in found.rankers]
        result[metric] = [one.mean for one in at]
        result[f"{metric} low"] = [one.low for one in at]
        result[f"{metric} high"] = [one.high for one in at]
        if not found.all_pairs:
            tests = [found.test(label, metric) for label in found.rankers]
            for end, field in (("", "difference"), (" low", "low"), (" high", "high")):
                result[f"{metric} difference{end}"] = [
                    None if test is None else getattr(test, field) for test in tests
                ]
            result[f"{metric} p"] = [None if test is None else test.adjusted for test in tests]
        result[f"{metric} mark"] = [marks(found, label, metric) for label in found.rankers]
    result["seconds"] = [found.seconds[label] for label in found.rankers]
    return result


def to_csv(found: Comparison) -> str:
    """Return `columns` as comma-separated text."""
    table = columns(found)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return stream.getvalue()


def check_suffix(path: str | Path) -> None:
    """Say before any work whether a comparison can be written to a file of this name."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"unknown file extension of '{Path(path).name}': a comparison is written to "
            f"{', '.join(SUFFIXES)}."
        )


def write(found: Comparison, path: str | Path) -> None:
    """Write a report, a table or the figures, as the suffix of ``path`` says."""
    check_suffix(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".html":
        from rankwright.comparison.report import write_report

        write_report(found, path)
        return
    makers: dict[str, Callable[[], str]] = {
        ".tex": found.to_latex,
        ".md": found.to_markdown,
        ".csv": lambda: to_csv(found),
        ".json": lambda: _json(found),
    }
    with atomic_text(path) as stream:
        stream.write(makers[suffix]())


def _json(found: Comparison) -> str:
    import json

    text = json.dumps(found.as_json(), indent=2, ensure_ascii=False, default=lambda x: x.tolist())
    return text + "\n"


# --- what every form shows -------------------------------------------------------------------


def _table(
    found: Comparison,
    metrics: Sequence[str] | None,
    digits: int,
    names: Mapping[str, str] | None,
) -> _Table:
    chosen = [metrics] if isinstance(metrics, str) else list(metrics or found.metrics)
    for metric in chosen:
        if metric not in found.metrics:
            raise UsageError(unknown("metric in this comparison called", metric, found.metrics))
    names = names or {}
    for name in names:
        if name not in (*found.rankers, *found.metrics, *found.failures):
            known = (*found.rankers, *found.metrics)
            raise UsageError(unknown("ranker or metric in this comparison called", name, known))
    by_metric = [_cells(found, metric, digits) for metric in chosen]
    letter = letters(found)
    rows = [
        (letter[label], names.get(label, label), [cells[label] for cells in by_metric])
        for label in found.rankers
    ]
    head = [names.get(m, _metric_name(m)) + ("" if found.maximise[m] else " ↓") for m in chosen]
    shown = {label: names.get(label, label) for label in found.rankers}
    lower = any(not found.maximise[metric] for metric in chosen)
    return _Table(head, rows, _caption(found, shown, lower), found.all_pairs)


def _cells(found: Comparison, metric: str, digits: int) -> dict[str, _Cell]:
    at = {label: found.intervals[label][metric] for label in found.rankers}
    place = _places(
        [one.mean for one in at.values()], 1.0 if found.maximise[metric] else -1.0, digits
    )
    return {
        label: _Cell(
            text=f"{one.mean:.{digits}f}" if math.isfinite(one.mean) else "–",
            best=place(one.mean) == 0,
            second=place(one.mean) == 1 and len(at) > 2,
            mark=marks(found, label, metric),
            interval="–" if math.isnan(one.low) else f"{one.low:.{digits}f}, {one.high:.{digits}f}",
        )
        for label, one in at.items()
    }


def _places(means: Sequence[float], sign: float, digits: int) -> Callable[[float], int]:
    """Return the function from a mean to its place among ``means``, as they are printed."""
    places = sorted(
        {sign * round(mean, digits) for mean in means if math.isfinite(mean)}, reverse=True
    )
    return lambda mean: (
        places.index(sign * round(mean, digits)) if math.isfinite(mean) else len(places)
    )


def _caption(found: Comparison, shown: Mapping[str, str], lower: bool) -> list[str]:
    """Return sentences: what is shown, and what marks mean. Doubled signs stand for the marks."""
    second = ", the second best underlined" if len(found.rankers) > 2 else ""
    named = "Mean" if found.name == "data" else f"{Path(found.name).name}: mean"
    sentences = [
        f"{named} over {tested_queries(found)}.",
        f"The best value of each metric is bold{second}{'; ↓: lower is better' if lower else ''}.",
    ]
    if not found.tests:
        return sentences
    if found.all_pairs:
        what = "A superscript after a value: significantly better than the ranker of that letter"
    else:
        what = f"†† and ‡‡: significantly better and worse than {shown[found.baseline]}"
    return [*sentences, f"{what} ({test_description(found)})."]


def _metric_name(metric: str) -> str:
    """Return a metric as papers print it: NDCG@10 for ndcg@10."""
    match = _METRIC.fullmatch(metric)
    if match is None or match[1] not in _UPPER:
        return metric
    return match[1].upper() + (match[2] or "")


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)

"""The page of all reproductions: the paper's figure, ours, its interval and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

Result = Mapping[str, Any]

_HEAD = """# Reproduction

Tables and figures of the papers, run again by `rankwright reproduce all --results DIR`. Everything
is chosen on the valid part of each fold, and test is looked at once. A cell has our figure, its
95 % bootstrap interval over test queries (of times: the least and the most) and, after "paper",
what the paper prints. *Within* is a printed figure inside our interval: with few test queries
intervals are wide, and the two may still differ. Outside it ours is *better* or *worse*. What a
paper claims of its rows is counted in our figures, column by column: a claim that holds in none may
still be within the intervals. An experiment's file in `reproducibility/tables/` says what stands in for data
that is not public. Figures that were run before 2026-11-16 are those of version 0.1, which selected
on validation data, and measured under the standard convention, with ties in the order of the file.
"""
_WIDEST = 6


def page(results: Mapping[str, Result], experiments: Mapping[str, Result]) -> str:
    """Return the page in Markdown: an overview, then a section for each result.

    Parameters
    ----------
    results
        By the name of their experiment, as `reproducibility.reproduction` keeps them.
    experiments
        What is said of all experiments, run or not, as
        `reproducibility.experiment.overview` gives it.
    """
    lines = [_HEAD, "| experiment | what it shows | run on | verdict |", "|---|---|---|---|"]
    for name, about in experiments.items():
        title = about["title"]
        if name in results:
            found = results[name]
            held = _held(about, found)
            said = f"{overall(found)}; {held}" if held else overall(found)
            lines.append(f"| [{name}](#{name}) | {title} | {found['ran']} | {said} |")
        else:
            lines.append(f"| {name} | {title} | not run | |")
    for name, about in experiments.items():
        if name in results:
            lines += ["", *_section(name, results[name], about)]
    return "\n".join(lines) + "\n"


def overall(found: Result) -> str:
    """Return the verdict of an experiment in a few words."""
    compared = [row for row in found["rows"] if row["verdict"]]
    if compared:
        counts = Counter(row["verdict"] for row in compared)
        each = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        higher = sum(row["ours"] > row["paper"] for row in compared)
        lower = sum(row["ours"] < row["paper"] for row in compared)
        said = (
            f"{len(compared)} printed figures: {each}; ours is higher in {higher}, lower in {lower}"
        )
    elif found["printed_on"]:
        said = "printed figures are of other data"
    else:
        said = "no printed figures"
    return said + (f"; {len(found['missed'])} expected figures missed" if found["missed"] else "")


def outcome(claim: Result, found: Result) -> tuple[bool, str]:
    """Return whether a paper's claim holds in all of our figures, and a sentence on where not.

    Columns without a figure of the row, such as those of a file that changed since, do not count.
    """
    row, missed, counted = claim["row"], [], 0
    for column in claim["columns"]:
        figures = _figures(found, column)
        if row not in figures:
            continue
        counted += 1
        others = figures.keys() - {row} if not claim.get("against") else claim["against"]
        above = {name: figures[name] for name in others if figures.get(name, -inf) >= figures[row]}
        if above:
            first = max(sorted(above), key=lambda name: above[name])
            more = f" and {len(above) - 1} more" if len(above) > 1 else ""
            values = f"{first} {_number(above[first])}{more} against {_number(figures[row])}"
            missed.append(f"{column} ({values})")
    said = f"The paper: {claim['says']}. Here that holds in {counted - len(missed)} of {counted}"
    where = f", and not in {', '.join(missed)}." if missed else "."
    return not missed and counted > 0, f"{said} columns{where}"


def _figures(found: Result, column: str) -> dict[str, float]:
    return {
        row["row"]: row["ours"]
        for row in found["rows"]
        if row["column"] == column and row["ours"] is not None
    }


def _held(about: Result, found: Result) -> str:
    """Return how many claims of the paper hold in all of their columns."""
    claims = about.get("claims") or ()
    whole = sum(outcome(claim, found)[0] for claim in claims)
    return f"{whole} of {len(claims)} of the paper's claims hold" if claims else ""


def _section(name: str, found: Result, about: Result) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield f"{found['title']} (`{found['paper']}`). Verdict: {overall(found)}."
    if found["printed_on"]:
        yield (
            f"The paper's figures are of {found['printed_on']}: they stand beside ours to compare "
            "rows with each other."
        )
    if about.get("digest") != found.get("digest"):
        yield ""
        yield "**These figures are of an earlier version of the experiment's file.**"
    if about.get("note"):
        yield ""
        yield about["note"].strip()
    if about.get("claims"):
        yield ""
        yield from (f"- {outcome(claim, found)[1]}" for claim in about["claims"])
    yield from _tables(found)
    if found["contrasts"]:
        yield ""
        yield from (f"- {sentence}" for sentence in found["contrasts"])
    if found["missed"]:
        yield ""
        yield from (f"- Missed: {sentence}." for sentence in found["missed"])
    yield ""
    yield (
        f"Run on {found['ran']} with rankwright {found['version']}, seed {found['seed']}, in "
        f"{_duration(found['seconds'])}: `rankwright reproduce {name} --data DIR`"
    )


def _tables(found: Result) -> Iterator[str]:
    by_place = {(row["row"], row["column"]): row for row in found["rows"]}
    row_names = list(dict.fromkeys(row["row"] for row in found["rows"]))
    for group in found["columns"]:
        for columns in _cut(group["names"]):
            shown = [r for r in row_names if any((r, column) in by_place for column in columns)]
            yield ""
            yield f"**{group['study']}**, {group['group']}:"
            yield ""
            yield "| | " + " | ".join(columns) + " |"
            yield "|---" * (len(columns) + 1) + "|"
            for row in shown:
                cells = [_cell(by_place.get((row, column))) for column in columns]
                yield f"| {row} | " + " | ".join(cells) + " |"


def _cut(columns: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(columns), _WIDEST):
        yield columns[start : start + _WIDEST]


def _cell(row: Result | None) -> str:
    if row is None:
        return ""
    parts = []
    if row["ours"] is not None:
        parts.append(f"**{_number(row['ours'])}**")
        if row["low"] is not None:
            parts.append(f"{_number(row['low'])}–{_number(row['high'])}")
    if row["paper"] is not None:
        verdict = f", {row['verdict']}" if row["verdict"] else ""
        parts.append(f"paper {row['paper']:g}{verdict}")
    return "<br>".join(parts)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.4g}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"

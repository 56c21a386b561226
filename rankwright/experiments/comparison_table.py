"""A comparison as a table: rows of text, with intervals and marks; for a terminal or a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwright.experiments.comparison import Comparison


def rows(found: Comparison) -> list[list[str]]:
    """Return the table as text, its heading first; an interval stands on a line below its mean."""
    head = ["", *found.metrics, "wins/ties/losses", "seconds", "size"]
    return [head, *(_row(found, label) for label in found.rankers)]


def about(found: Comparison) -> str:
    """Return the sentence under the table: how it was made and what its marks mean."""
    folds = f"{len(found.folds)} folds" if len(found.folds) > 1 else "one fold"
    return (
        f"{found.name}: mean and 95 % bootstrap interval over {len(found.qid)} test queries of "
        f"{folds}, convention {found.convention}; ▲ ▼: significantly better or worse than "
        f"{found.baseline} (paired randomisation test, 5 %, Holm's correction); wins, ties and "
        f"losses are queries against {found.baseline} by {found.metrics[0]}."
    )


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
    failed = [f"{label}: {why}" for label, why in found.failures.items()]
    return "\n".join([*lines, *failed, about(found)])


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
    for label, why in found.failures.items():
        html.append(
            f"<tr><th>{escape(label)}</th><td colspan={len(head) - 1}>{escape(why)}</td></tr>"
        )
    return "".join([*html, f"</tbody></table><p>{escape(about(found))}</p>"])


def _row(found: Comparison, label: str) -> list[str]:
    cells = [_cell(found, label, metric) for metric in found.metrics]
    test = found.test(label, found.metrics[0])
    counts = "baseline" if test is None else f"{test.wins}/{test.ties}/{test.losses}"
    return [label, *cells, counts, f"{found.seconds[label]:.2f}", _size(found.sizes[label])]


def _cell(found: Comparison, label: str, metric: str) -> str:
    """Return a mean, with a mark where it differs significantly, and its interval below."""
    interval, test = found.intervals[label][metric], found.test(label, metric)
    mark = ""
    if test is not None and test.significant:
        mark = "▲ " if (test.difference > 0) == found.maximise[metric] else "▼ "
    return f"{mark}{interval.mean:.4f}\n{interval.low:.3f}–{interval.high:.3f}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"

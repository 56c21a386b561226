"""The measured parts of docs/choose.md: winners by data set, the table, and tried defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import mean, median
from typing import Any

Cells = dict[tuple[str, str], dict[str, dict[str, Any]]]
_RATINGS = "jester"


def filled(text: str, measured: Mapping[str, Any]) -> str:
    """Return the page with its generated parts made from ``measured``."""
    cells: Cells = {}
    for row in measured["table"]:
        cells.setdefault((row["ranker"], row["model"]), {})[row["set"]] = row
    parts = {
        "winners": _winners(measured, cells),
        "measured": _table(measured, cells),
        "ratings": _ratings(cells),
        "defaults": _defaults(measured["defaults"]),
    }
    for name, lines in parts.items():
        start, end = f"<!-- generated: {name} -->", "<!-- end -->"
        head, _, rest = text.partition(start)
        text = f"{head}{start}\n" + "\n".join(lines) + f"\n{end}{rest.partition(end)[2]}"
    return text


def _winners(measured: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    """Yield the five best of each set, and the quickest of those whose interval holds the best."""
    yield "| data | best, NDCG@10 on valid | quickest within the best's interval |"
    yield "|---|---|---|"
    for name, about in measured["sets"].items():
        found = [
            (row["ndcg@10"][0], key, row)
            for key, of_key in cells.items()
            if (row := of_key.get(name)) and "ndcg@10" in row
        ]
        found.sort(key=lambda each: -each[0])
        if not found:
            continue
        best = ", ".join(f"{_name(key)} {value:.3f}" for value, key, _ in found[:5])
        low = found[0][2]["ndcg@10"][1]
        near = [each for each in found if each[0] >= low]
        value, key, _ = min(near, key=lambda each: each[2]["train_seconds"])
        yield f"| {about} | {best} | {_name(key)} {value:.3f} |"


def _table(measured: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    """Yield a row per ranker and model, best mean place first."""
    sets = [name for name in measured["sets"] if name != _RATINGS]
    places = _places(cells, sets)
    yield "| ranker | model | " + " | ".join(sets) + " | train | score | size |"
    yield "|---|---|" + "---:|" * (len(sets) + 3)
    for key in sorted(places, key=places.__getitem__):
        of_key = cells[key]
        shown = [_quality(of_key.get(name)) for name in sets]
        yield f"| `{key[0]}` | {key[1]} | " + " | ".join([*shown, *_costs(of_key)]) + " |"


def _ratings(cells: Cells) -> Iterator[str]:
    yield "| ranker | NDCG@10 | training seconds | score | size |"
    yield "|---|---:|---:|---:|---:|"
    for (ranker, _), of_key in cells.items():
        row = of_key.get(_RATINGS)
        if row and "ndcg@10" in row:
            _, score, size = _costs({_RATINGS: row})
            seconds = f"{row['train_seconds']:.2g}"
            yield f"| `{ranker}` | {_quality(row)} | {seconds} | {score} | {size} |"


def _defaults(tried: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a row per parameter: the mean of each value, and what stands in the code."""
    yield "| ranker | parameter | mean valid NDCG@10 of each value tried | kept | sets |"
    yield "|---|---|---|---:|---|"
    for row in tried:
        values = " · ".join(
            f"{each['value']:g}: {each['mean']:.4f}"
            + ("*" if abs(each["gain"]) > each["within"] else "")
            for each in row["values"]
        )
        name, kept, sets = f"`{row['ranker']}`", f"{row['kept']:g}", ", ".join(row["sets"])
        yield f"| {name} ({row['model']}) | `{row['parameter']}` | {values} | {kept} | {sets} |"


# --- cells -----------------------------------------------------------------------------------


def _places(cells: Cells, sets: list[str]) -> dict[tuple[str, str], tuple[bool, float]]:
    """Return whether less than half of the sets were measured, and the mean share that is better.

    A fit that was not possible is behind all others; one that was not tried does not count.
    """
    shares: dict[tuple[str, str], list[float]] = {
        key: [] for key, of_key in cells.items() if any(name in of_key for name in sets)
    }
    for name in sets:
        values = {
            key: cells[key][name].get("ndcg@10", [-1.0])[0] for key in shares if name in cells[key]
        }
        for key, value in values.items():
            shares[key].append(sum(other > value for other in values.values()) / len(values))
    return {key: (2 * len(of_key) < len(sets), mean(of_key)) for key, of_key in shares.items()}


def _quality(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    if "too_slow" in row:
        return f"over {row['too_slow']} s"
    if "refused" in row:
        return "no"
    value, low, high = row["ndcg@10"]
    return f"{value:.3f} ±{(high - low) / 2:.3f}"


def _costs(of_key: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return training time as a ratio, scoring time and size: medians over the sets."""
    rows = [row for row in of_key.values() if "ndcg@10" in row]
    if not rows:
        return ["", "", ""]
    ratios = [row["train_ratio"] for row in rows if "train_ratio" in row]
    ratio = f"{median(ratios):.3g}x" if ratios else ""
    score = median(row["score_ms_per_1000"] for row in rows)
    size = median(row["bytes"] for row in rows)
    return [ratio, f"{score:.2g} ms", f"{size / 1000:.3g} kB"]


def _name(key: tuple[str, str]) -> str:
    return f"`{key[0]}` ({key[1]})"

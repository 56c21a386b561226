"""What a cluster takes for 10^9 documents, reckoned from the rates that ``make bench`` measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RATES = ROOT / "docs" / "benchmarks" / "rates.json"
DOCUMENTS, FEATURES, VALUE_BYTES = 1e9, 136, 4
WORKERS, PARTS_EACH = (10, 100, 1000), 3
LOOKS = {"MEMR": ("memr", 30), "RankNet": ("ranknet", 60)}
N_TREES, LEAVES, BINS, HISTOGRAM_BYTES = 300, 31, 255, 16
BYTES_PER_SECOND, LATENCY = 1.25e9, 1e-4  # of a network of 10 Gbit/s


def scale_tables() -> str:
    """Return the measured rates, the sums of both kinds of training, and their limits."""
    if not RATES.exists():
        return "No rates are kept yet: `make bench AREA=rates` measures them."
    found = json.loads(RATES.read_text(encoding="utf-8"))
    rates = found["figures"]
    cpu = found["machine"]["cpu"]
    return "\n\n".join(
        [
            f"Measured on {found['date']} on one core of {cpu}:",
            _measured(rates),
            "### Linear models",
            _linear(rates),
            "### Trees",
            _trees(rates),
        ]
    )


def _measured(rates: Mapping[str, float]) -> str:
    rows = [
        ("a pass over the data, MEMR", f"{rates['memr_look_values_per_second']:.2g} values / s"),
        (
            "a pass over the data, RankNet",
            f"{rates['ranknet_look_values_per_second']:.2g} values / s",
        ),
        ("LambdaRank's gradients", f"{rates['lambdarank_documents_per_second']:.2g} documents / s"),
        (
            f"a tree of {LEAVES} leaves, {BINS} bins",
            f"{rates['tree_values_per_second']:.2g} values / s",
        ),
        ("a round of Dask messages", f"{1e3 * rates['dask_seconds_per_round']:.0f} ms"),
        ("... and for each part", f"{1e3 * rates['dask_seconds_per_part_of_a_round']:.2f} ms"),
        (
            f"a message with {FEATURES} numbers",
            f"{rates['bytes_to_a_part']:.0f} bytes there, {rates['bytes_from_a_part']:.0f} back",
        ),
    ]
    return _table(("what", "rate"), rows)


def _linear(rates: Mapping[str, float]) -> str:
    values = DOCUMENTS * FEATURES
    fixed, each = rates["dask_seconds_per_round"], rates["dask_seconds_per_part_of_a_round"]
    rows = []
    for name, (key, looks) in LOOKS.items():
        core = values / rates[f"{key}_look_values_per_second"]
        for n in WORKERS:
            parts = PARTS_EACH * n
            work, talk = core / n, fixed + each * parts
            total = looks * (work + talk)
            rows.append(
                (
                    name, f"{n:,}", _bytes(values * VALUE_BYTES / n),
                    f"{core:.0f} / {n:,} = {_time(work)}",
                    f"{1e3 * fixed:.0f} ms + {parts:,} x {1e3 * each:.2f} ms = {_time(talk)}",
                    f"{looks} x {_time(work + talk)} = **{_time(total)}**",
                )
            )  # fmt: skip
    heads = ("ranker", "workers", "features each", "work of a look", "messages of a look", "fit")
    return _table(heads, rows)


def _trees(rates: Mapping[str, float]) -> str:
    values = DOCUMENTS * FEATURES
    gradients = DOCUMENTS / rates["lambdarank_documents_per_second"]
    splits = values / rates["tree_values_per_second"]
    rows = []
    for n in WORKERS:
        work = (gradients + splits) / n
        sent = LEAVES * FEATURES * BINS * HISTOGRAM_BYTES * (n - 1) / n
        talk = sent / BYTES_PER_SECOND + LEAVES * 2 * (n - 1) ** 0.5 * LATENCY
        rows.append(
            (
                f"{n:,}", _bytes(values / n),
                f"({gradients:.0f} + {splits:.0f}) / {n:,} = {_time(work)}",
                f"{sent / 1e6:.1f} MB, {_time(talk)}",
                f"{N_TREES} x {_time(work + talk)} = **{_time(N_TREES * (work + talk))}**",
            )
        )  # fmt: skip
    heads = ("workers", "bins each", "work of a tree", "messages of a tree", f"{N_TREES} trees")
    return _table(heads, rows)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _time(seconds: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= 2.0 * unit or (name == "s" and seconds >= 1.0):
            return f"{seconds / unit:.1f} {name}"
    return f"{1e3 * seconds:.0f} ms"


def _bytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"

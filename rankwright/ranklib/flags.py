"""RankLib's flags, all of them with its defaults, and two that it lacks: ``-seed``, ``--strict``.

Flags are read in any case of letters, save ``-metric2t`` (training) and ``-metric2T`` (test). A
flag that is None was not given; the ranker then has its own default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from rankwright.errors import UsageError
from rankwright.registry import unknown


def _text(text: str) -> str:
    return text


def _whole(text: str) -> int:
    number = _number(text)
    if number != int(number):
        raise ValueError
    return int(number)


def _number(text: str) -> float:
    number = float(text if "_" not in text else "")
    if not math.isfinite(number):
        raise ValueError
    return number


_KINDS: dict[Callable[[str], Any], str] = {
    _text: "TEXT",
    _whole: "N",
    _number: "X",
}


def _flag(spelling: str, kind: Callable[[str], Any], help_text: str, default: Any = None) -> Any:
    about = {"spelling": spelling, "kind": kind, "help": help_text}
    return field(default=default, metadata=about)


def _switch(spelling: str, help_text: str) -> Any:
    return field(default=False, metadata={"spelling": spelling, "kind": None, "help": help_text})


def _many(spelling: str, help_text: str) -> Any:
    about = {"spelling": spelling, "kind": _text, "help": help_text, "many": True}
    return field(default=(), metadata=about)


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What was asked for; the metadata of each field has its spelling and what it means."""

    train: str | None = _flag("-train", _text, "training data")
    ranker: int = _flag("-ranker", _whole, "which ranker, 0 to 9, as listed below", 4)
    feature: str | None = _flag("-feature", _text, "file of the features to use, a number per line")
    metric2t: str = _flag("-metric2t", _text, "metric to train for", "ERR@10")
    metric2test: str | None = _flag("-metric2T", _text, "metric to test by; as -metric2t")
    gmax: float = _flag("-gmax", _number, "highest grade, for ERR", 4.0)
    qrel: str | None = _flag("-qrel", _text, "TREC judgments, for MAP and NDCG")
    silent: bool = _switch("-silent", "print results alone")
    missing_zero: bool = _switch("-missingZero", "a feature beyond the last of a line is 0")
    validate: str | None = _flag("-validate", _text, "data that chooses the model")
    tvs: float = _flag("-tvs", _number, "share of the queries to train on, the rest validates", 0.0)
    save: str | None = _flag("-save", _text, "where the model goes")
    test: tuple[str, ...] = _many("-test", "test data; several need as many -load")
    tts: float = _flag("-tts", _number, "share of the queries to train on, the rest tests", 0.0)
    norm: str | None = _flag("-norm", _text, "normalise within queries: sum, zscore or linear")
    sparse: bool = _switch("-sparse", "hold features sparsely")
    kcv: int = _flag("-kcv", _whole, "number of cross-validation folds", -1)
    kcvmd: str | None = _flag("-kcvmd", _text, "folder for the models of the folds")
    kcvmn: str | None = _flag("-kcvmn", _text, "name of the models of the folds")
    epoch: int | None = _flag("-epoch", _whole, "RankNet, LambdaRank 100; ListNet 1500")
    layer: int = _flag("-layer", _whole, "RankNet, LambdaRank: hidden layers", 1)
    node: int = _flag("-node", _whole, "RankNet, LambdaRank: neurons of a layer", 10)
    lr: float | None = _flag("-lr", _number, "RankNet, LambdaRank 0.00005; ListNet 0.00001")
    round: int | None = _flag("-round", _whole, "RankBoost 300, AdaRank 500: rounds")
    tc: int | None = _flag("-tc", _whole, "thresholds: RankBoost 10, trees 256; -1 is all")
    noeq: bool = _switch("-noeq", "AdaRank: without taking features out of turn")
    tolerance: float | None = _flag("-tolerance", _number, "AdaRank 0.002, Coordinate Ascent 0.001")
    max: int = _flag("-max", _whole, "AdaRank: how often a feature is taken in a row", 5)
    restarts: int = _flag("-r", _whole, "Coordinate Ascent: restarts", 5)
    iterations: int = _flag("-i", _whole, "Coordinate Ascent: steps along a feature", 25)
    reg: float | None = _flag("-reg", _number, "Coordinate Ascent: slack of the penalty")
    tree: int | None = _flag("-tree", _whole, "MART, LambdaMART 1000, a bag 1: trees")
    leaf: int | None = _flag("-leaf", _whole, "MART, LambdaMART 10, a bag 100: leaves")
    shrinkage: float = _flag("-shrinkage", _number, "trees: learning rate", 0.1)
    mls: int = _flag("-mls", _whole, "trees: least documents of a leaf", 1)
    estop: int = _flag("-estop", _whole, "trees: rounds without improvement before stopping", 100)
    gcc: int = _flag("-gcc", _whole, "accepted; there is no Java to clean up after", 100)
    bag: int = _flag("-bag", _whole, "Random Forests: bags", 300)
    srate: float = _flag("-srate", _number, "Random Forests: share of queries of a bag", 1.0)
    frate: float = _flag("-frate", _number, "Random Forests: share of features of a bag", 0.3)
    rtype: int = _flag("-rtype", _whole, "Random Forests: 0 MART, 6 LambdaMART", 0)
    l2: float = _flag("-L2", _number, "Linear Regression: penalty", 1e-10)
    load: tuple[str, ...] = _many("-load", "a saved model; several are those of folds")
    rank: str | None = _flag("-rank", _text, "data to rank, with -score or -indri")
    score: str | None = _flag("-score", _text, "with -rank: scores go here; with -test: read here")
    indri: str | None = _flag("-indri", _text, "with -rank: the ranking goes here")
    idv: str | None = _flag("-idv", _text, "with -test: values by query go here")
    thread: int = _flag("-thread", _whole, "threads; -1 is all cores", -1)
    hr: bool = _switch("-hr", "leave out lists without a relevant document")
    nf: str | None = _flag("-nf", _text, "accepted without effect, as in RankLib")
    keep: bool = _switch("-keep", "accepted without effect, as in RankLib")
    t: int = _flag("-t", _whole, "accepted without effect, as in RankLib", 2000)
    seed: int = _flag("-seed", _whole, "seed of everything random (RankLib has none)", 0)
    strict: bool = _switch("--strict", "do as RankLib 2.18 does where it is wrong")


NAMES = {about.metadata["spelling"]: about for about in fields(Flags)}
_CASELESS = {name.lower(): name for name in NAMES if not name.startswith("-metric2")}

RANKERS = (
    "MART",
    "RankNet",
    "RankBoost",
    "AdaRank",
    "Coordinate Ascent",
    "LambdaRank",
    "LambdaMART",
    "ListNet",
    "Random Forests",
    "Linear Regression",
)


def parse_flags(args: Sequence[str]) -> Flags:
    """Return the flags that ``args`` set."""
    given: dict[str, Any] = {}
    waiting = list(reversed(args))
    while waiting:
        arg = waiting.pop()
        spelling = arg if arg in NAMES else _CASELESS.get(arg.lower(), "")
        if spelling not in NAMES:
            raise UsageError(unknown("flag of RankLib", arg, NAMES))
        about = NAMES[spelling]
        if about.metadata["kind"] is None:
            given[about.name] = True
            continue
        if not waiting:
            raise UsageError(f"{spelling} needs a value after it: {about.metadata['help']}.")
        value = _value(spelling, about.metadata["kind"], waiting.pop())
        if about.metadata.get("many"):
            given[about.name] = (*given.get(about.name, ()), value)
        else:
            given[about.name] = value
    flags = Flags(**given)
    _check(flags)
    return flags


def _value(spelling: str, kind: Callable[[str], Any], text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is _whole else "a number"
        raise UsageError(f"{spelling} takes {what}, not '{text}'.") from None


def _check(flags: Flags) -> None:
    if not 0 <= flags.ranker < len(RANKERS):
        raise UsageError(f"-ranker is 0 to {len(RANKERS) - 1}, not {flags.ranker}.")
    if flags.norm is not None and flags.norm not in ("sum", "zscore", "linear"):
        raise UsageError(f"-norm is sum, zscore or linear, not '{flags.norm}'.")
    if flags.rtype not in (0, 6):
        raise UsageError(f"-rtype is 0 (MART) or 6 (LambdaMART), not {flags.rtype}.")
    sizes = ("tree", "leaf", "round", "bag")
    for name, value in ((name, getattr(flags, name)) for name in sizes):
        if value is not None and value < 1:
            raise UsageError(f"-{name} must be 1 or more, not {value}.")
    for name, share in (("-tvs", flags.tvs), ("-tts", flags.tts)):
        if not 0.0 <= share < 1.0:
            raise UsageError(f"{name} is a share from 0 to below 1, not {share:g}.")


def flags_help() -> str:
    """Return what ``rankwright ranklib`` prints without flags."""
    lines = [
        "rankwright ranklib FLAGS: RankLib's command line; a file that ends in .gz is unpacked.",
        "rankwright ranklib analyze|features|combine FLAGS: Analyzer, FeatureManager, Combiner.",
        "",
    ]
    for spelling, about in NAMES.items():
        kind = about.metadata["kind"]
        arg = spelling if kind is None else f"{spelling} {_KINDS[kind]}"
        default = about.default
        shown = "" if default in (None, False, ()) or default == -1 else f" (default {default})"
        lines.append(f"  {arg:<16} {about.metadata['help']}{shown}")
    lines += ["", "Rankers:"]
    lines += [f"  {number} {name}" for number, name in enumerate(RANKERS)]
    lines += [
        "",
        "Metrics: MAP, NDCG@k, DCG@k, P@k, RR@k, ERR@k, BEST@k; without @k, k is 10, and MAP "
        "and RR look at the whole list.",
    ]
    return "\n".join(lines)

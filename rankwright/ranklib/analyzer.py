"""RankLib's Analyzer: systems against a baseline, from the files that ``-idv`` writes.

p is the share of random swaps of sides after which the means differ by as much. In that test
RankLib takes the line ``all`` for one more query; so does ``--strict``. The bins are of absolute
differences, though RankLib heads them with per cent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rankwright.core.types import F64
from rankwright.data.streams import error_at, number_at, text_lines
from rankwright.errors import DataError, UsageError
from rankwright.metrics.significance import randomisation
from rankwright.ranklib.java_numbers import rounded
from rankwright.ranklib.options import Options

_BINS = (
    "[ < -100%)",
    "[-100%, -75%)",
    "[-75%, -50%)",
    "[-50%, -25%)",
    "[-25%, 0%)",
    "(0%, +25%]",
    "(+25%, +50%]",
    "(+50%, +75%]",
    "(+75%, +100%]",
    "( > +100%]",
)
_LINE = "-" * 72
_USAGE = "analyze -all FOLDER -base FILE [-np N] [-seed N] [--strict]"

Print = Callable[[str], None]


def analyze(words: Sequence[str], say: Print) -> list[str]:
    """Compare the files of a folder as ``words`` ask; return notices."""
    defaults = {"-all": "", "-base": "", "-np": "10000", "-seed": "0"}
    options = Options(words, defaults, ["--strict"], _USAGE)
    folder, base = Path(options.text("-all")), options.text("-base")
    rounds, seed = options.whole("-np", 1), options.whole("-seed")
    strict = options.has("--strict")
    if not options.has("-all") or not folder.is_dir():
        raise UsageError(f"-all names a folder of files that -idv wrote: {_USAGE}.")
    if not base or not (folder / base).is_file():
        raise UsageError(f"-base names a file in {folder}: {_USAGE}.")
    names = [base, *sorted(p.name for p in folder.iterdir() if p.is_file() and p.name != base)]
    systems = {}
    for name in names:
        systems[name] = read_values(folder / name)
        lists = len(systems[name])
        say(f"Reading {folder / name}... {lists} ranked lists [Done]")
    values = _paired(systems, base)
    say("\n\nOverall comparison")
    say(_LINE)
    say("System\tPerformance\tImprovement\tWin\tLoss\tp-value")
    say(f"{base} [baseline]\t{rounded(systems[base]['all'])}")
    for name in names[1:]:
        a, b = values[name], values[base]
        if strict:
            a, b = np.append(a, systems[name]["all"]), np.append(b, systems[base]["all"])
        p = randomisation(a, b, rounds=rounds, seed=seed).p_value
        say(f"{_comparison(name, systems, base, values)}\t{rounded(p)}")
    say("\n\nDetailed break down")
    say(_LINE)
    say("\t" + "\t".join(_BINS))
    for name in names[1:]:
        counts = bins(values[name] - values[base])
        say(f"{name}\t" + "\t".join(str(count) for count in counts))
    notice = "the line 'all' is not a query and is left out of the p-value "
    return [] if strict else [notice + "(RankLib counts it as one; --strict does so)."]


def read_values(path: str | Path) -> dict[str, float]:
    """Return the value of each query in a file of ``-idv``, and of ``all``, in file order."""
    found: dict[str, float] = {}
    for line, text in text_lines(path):
        cells = text.split()
        if len(cells) != 3:
            error_at(path, line, f"'measure query value' is expected, not {len(cells)} words")
        if cells[1] in found:
            error_at(path, line, f"query {cells[1]} has a value already")
        found[cells[1]] = number_at(cells[2], path, line, "the value")
    if "all" not in found:
        raise DataError(f"{path} has no line 'all', the last that -idv writes; is it truncated?")
    return found


def bins(difference: F64) -> list[int]:
    """Count absolute differences in quarters: those below 0 by their lower end, others by upper."""
    counts = [0] * len(_BINS)
    half = len(_BINS) // 2
    for value in difference[difference != 0.0].tolist():
        quarter = min(int(np.ceil(abs(value) * 4.0)), half)
        counts[half - quarter if value < 0 else half - 1 + quarter] += 1
    return counts


def _paired(systems: dict[str, dict[str, float]], base: str) -> dict[str, F64]:
    queries = [query for query in systems[base] if query != "all"]
    values = {}
    for name, found in systems.items():
        missing = [query for query in queries if query not in found]
        if missing:
            raise DataError(f"{name} has no value for query {missing[0]}, which {base} has.")
        values[name] = np.array([found[query] for query in queries])
    return values


def _comparison(
    name: str, systems: dict[str, dict[str, float]], base: str, values: dict[str, F64]
) -> str:
    a, b = values[name], values[base]
    mean, of_base = systems[name]["all"], systems[base]["all"]
    gain = mean - of_base
    share = gain / of_base if of_base else 0.0
    sign, shared = ("+" if value > 0 else "" for value in (gain, share))
    improvement = f"{sign}{rounded(gain)} ({shared}{rounded(share * 100.0, 2)}%)"
    wins, losses = int((a > b).sum()), int((a < b).sum())
    return f"{name}\t{rounded(mean)}\t{improvement}\t{wins}\t{losses}"

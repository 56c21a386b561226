"""RankLib's other programs: Analyzer, FeatureManager and Combiner.

Their flags are ``-name value`` pairs and switches, in any case of letters.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.letor import Letor
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import atomic_text, error_at, make_folder, number_at, text_lines
from rankwright.errors import DataError, UsageError
from rankwright.metrics.significance import randomisation
from rankwright.ranklib.java_numbers import java_float, rounded
from rankwright.ranklib.lists import fold_numbers, lists_in_share
from rankwright.ranklib.model_text import (
    Ensembles,
    ModelText,
    Steps,
    Terms,
    Tree,
    read_model_text,
    write_model_text,
)

Print = Callable[[str], None]


class Options:
    """What was asked of a program; a flag may come more than once."""

    def __init__(
        self, args: Sequence[str], values: Mapping[str, str], switches: Sequence[str], usage: str
    ) -> None:
        self.usage = usage
        self._defaults = dict(values)
        self._given: dict[str, list[str]] = {}
        self._switches: set[str] = set()
        waiting = list(reversed(args))
        while waiting:
            arg = waiting.pop().lower()
            if arg in switches:
                self._switches.add(arg)
            elif arg in values and waiting:
                self._given.setdefault(arg, []).append(waiting.pop())
            else:
                raise UsageError(f"'{arg}' is not understood: {usage}.")

    def has(self, name: str) -> bool:
        """Whether a flag or a switch was given."""
        return name in self._given or name in self._switches

    def all_of(self, name: str) -> list[str]:
        """Return every value of a flag."""
        return self._given.get(name, [])

    def text(self, name: str) -> str:
        """Return the last value of a flag, or its default."""
        return self._given.get(name, [self._defaults[name]])[-1]

    def whole(self, name: str, least: int = 0) -> int:
        """Return a whole number from ``least`` on."""
        text = self.text(name)
        if not text.isdecimal() or int(text) < least:
            raise UsageError(f"{name} takes a whole number from {least} on: {self.usage}.")
        return int(text)

    def share(self, name: str) -> float:
        """Return a number from 0 to below 1."""
        try:
            share = float(self.text(name))
        except ValueError:
            share = -1.0
        if not 0.0 <= share < 1.0:
            raise UsageError(f"{name} takes a share from 0 to below 1: {self.usage}.")
        return share


# --- Analyzer ----------------------------------------------------------------------------------
# Systems against a baseline, from the files that ``-idv`` writes.
#
# p is the share of random swaps of sides after which the means differ by as much. In that test
# RankLib takes the line ``all`` for one more query; so does ``--strict``. The bins are of absolute
# differences, though RankLib heads them with per cent.


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
_ANALYZE_USAGE = "analyze -all FOLDER -base FILE [-np N] [-seed N] [--strict]"


def analyze(args: Sequence[str], say: Print) -> list[str]:
    """Compare the files of a folder as ``args`` ask; return notices."""
    defaults = {"-all": "", "-base": "", "-np": "10000", "-seed": "0"}
    options = Options(args, defaults, ["--strict"], _ANALYZE_USAGE)
    folder, base = Path(options.text("-all")), options.text("-base")
    rounds, seed = options.whole("-np", 1), options.whole("-seed")
    strict = options.has("--strict")
    if not options.has("-all") or not folder.is_dir():
        raise UsageError(f"-all names a folder of files that -idv wrote: {_ANALYZE_USAGE}.")
    if not base or not (folder / base).is_file():
        raise UsageError(f"-base names a file in {folder}: {_ANALYZE_USAGE}.")
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
            error_at(path, line, f"'metric query value' is expected, not {len(cells)} words")
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


# --- FeatureManager ----------------------------------------------------------------------------
# Shuffle and split data files by whole lists; count a model's features.
#
# Files are written as RankLib writes them: whole grades, features in float32 and rising order,
# without those that a line does not name.


_FEATURES_USAGE = (
    "features -input FILE ... -output FOLDER [-shuffle] [-k FOLDS [-tvs SHARE] | -tts SHARE] "
    "[-seed N], or features -feature_stats MODEL"
)
_DEFAULTS = {
    "-input": "",
    "-output": "",
    "-k": "0",
    "-tvs": "0",
    "-tts": "0",
    "-feature_stats": "",
    "-seed": "0",
}
_COUNTED = ("AdaRank", "RankBoost", "MART", "LambdaMART", "Random Forests")


def manage_features(args: Sequence[str], say: Print) -> None:
    """Do what ``args`` ask for."""
    options = Options(args, _DEFAULTS, ["-shuffle"], _FEATURES_USAGE)
    if options.has("-feature_stats"):
        print_feature_stats(options.text("-feature_stats"), say)
        return
    inputs, folds = options.all_of("-input"), options.whole("-k")
    share, held = options.share("-tts"), options.share("-tvs")
    if not inputs or not options.has("-output"):
        raise UsageError(f"-input and -output are needed: {_FEATURES_USAGE}.")
    if folds and share:
        raise UsageError(f"-k and -tts cannot be combined: {_FEATURES_USAGE}.")
    if not (folds or share or options.has("-shuffle")):
        raise UsageError(f"there is nothing to do without -shuffle, -k or -tts: {_FEATURES_USAGE}.")
    files = _Lists(inputs, say)
    folder, name = Path(options.text("-output")), Path(inputs[0]).name
    make_folder(folder)
    order = np.arange(len(files))
    if options.has("-shuffle"):
        order = stream(options.whole("-seed"), "ranklib", "shuffle").permutation(order)
        name += ".shuffled"
        files.write(order, folder / name)
        say(f"Saved: {folder / name}")
    if folds:
        for number, (train, valid, test) in enumerate(fold_numbers(len(order), folds, held), 1):
            files.write(order[train], folder / f"f{number}.train.{name}")
            files.write(order[test], folder / f"f{number}.test.{name}")
            if held:
                files.write(order[valid], folder / f"f{number}.validation.{name}")
            say(f"Saving fold {number}/{folds}... [Done]")
    elif share:
        cut = lists_in_share(len(order), share)
        files.write(order[:cut], folder / f"train.{name}")
        files.write(order[cut:], folder / f"test.{name}")
        say(f"Saved: {folder / f'train.{name}'}, {folder / f'test.{name}'}")


class _Lists:
    """The lists of several files, one file after the other, ready to be written."""

    def __init__(self, paths: Sequence[str], say: Print) -> None:
        self._lists: list[str] = []
        for path in paths:
            data = Letor.read(
                path, dtype="float32", zero_based=False, absent="missing", lists="adjacent"
            )
            say(f"Reading feature file [{path}]... [Done.]")
            say(f"({data.n_queries} ranked lists, {data.n_documents} entries read)")
            self._lists += list_texts(data)

    def __len__(self) -> int:
        return len(self._lists)

    def write(self, order: I64, path: Path) -> None:
        with atomic_text(path) as target:
            target.writelines(self._lists[number] for number in order.tolist())


def list_texts(data: RankingData) -> list[str]:
    """Return the lines of each list, as RankLib writes them; a missing value is left out."""
    dense = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    bits, code = np.unique(dense.view(np.uint32), return_inverse=True)  # -0.0 is not 0.0 in text
    spelled = np.array([java_float(value) for value in bits.view(np.float32)], object)
    text = spelled[code.reshape(dense.shape)]
    known = ~np.isnan(dense)
    grades = data.y.astype(np.int64).tolist()
    names = [""] * data.n_documents if data.doc_id is None else data.doc_id.tolist()
    texts = []
    for q, query in enumerate(data.qid.tolist()):
        lines = []
        for row in range(data.indptr[q], data.indptr[q + 1]):
            there = np.flatnonzero(known[row])
            pairs = zip((there + 1).tolist(), text[row, there].tolist(), strict=True)
            features = " ".join(f"{feature}:{value}" for feature, value in pairs)
            about = f" # {names[row]}" if names[row] else ""
            lines.append(f"{grades[row]} qid:{query} {features}{about}\n")
        texts.append("".join(lines))
    return texts


def print_feature_stats(path: str, say: Print) -> None:
    """Print how often a model uses each feature."""
    model = read_model_text(path)
    if model.name not in _COUNTED:
        raise UsageError(
            f"{path} is a model of {model.name}; features are counted in those of "
            f"{', '.join(_COUNTED)}."
        )
    body = model.body
    if isinstance(body, Ensembles):
        counts = body.split_counts()
    else:
        assert isinstance(body, Terms | Steps)
        counts = dict(sorted(Counter(body.features.tolist()).items()))
    say(f"\nModel File: {path}\nAlgorithm : {model.name}\n\nFeature frequencies : ")
    for feature, count in counts.items():
        say(f"\tFeature[{feature}] : {count:>7}")
    every = list(counts.values())
    if not every:
        raise UsageError(f"{path} uses no feature: there is nothing to count.")
    variance = statistics.variance(every) if len(every) > 1 else 0.0
    say(f" \nTotal Features Used: {len(every)}\n")
    for what, value in (
        ("Min frequency", min(every)),
        ("Max frequency", max(every)),
        ("Median frequency", statistics.median(every)),
        ("Avg frequency", statistics.fmean(every)),
        ("Variance", variance),
        ("STD", variance**0.5),
    ):
        shown = Decimal(repr(float(value))).quantize(Decimal("0.01"), ROUND_HALF_UP)  # as Java
        say(f"{what:<16} : {shown:>10}")


# --- Combiner ----------------------------------------------------------------------------------
# The models of a folder, of Random Forests each, joined to one forest.


_COMBINE_USAGE = "combine FOLDER OUTPUT [--strict]"


def combine(args: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Join the models of a folder, in the order of their names; return notices.

    RankLib takes the first ensemble of each file, which is all that a file holds when it comes from
    ``-bag 1``; ``--strict`` does so. By default all ensembles are taken.
    """
    strict = "--strict" in args
    places = [arg for arg in args if arg != "--strict"]
    if len(places) != 2 or not Path(places[0]).is_dir():
        raise UsageError(f"a folder of models and a file to write are needed: {_COMBINE_USAGE}.")
    folder, target = Path(places[0]), Path(places[1])
    files = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and ".progress" not in path.name and path.resolve() != target.resolve()
    ]
    ensembles: list[tuple[Tree, ...]] = []
    cut_off = 0
    for path in files:
        body = read_model_text(path).body
        if not (isinstance(body, Ensembles) and body.forest):
            raise UsageError(f"{path} is no model of Random Forests, which alone are joined.")
        ensembles += body.ensembles[: 1 if strict else None]
        cut_off += len(body.ensembles) > 1
    if not ensembles:
        raise UsageError(f"{folder} holds no models to join.")
    write_model_text(
        ModelText("Random Forests", (), Ensembles(tuple(ensembles), forest=True)), target
    )
    say(f"{len(ensembles)} ensembles of {len(files)} files saved to: {target}")
    if strict or not cut_off:
        return []
    return [
        f"all ensembles of each file are taken; RankLib takes the first, which would leave out "
        f"some of {cut_off} files (--strict does so)."
    ]

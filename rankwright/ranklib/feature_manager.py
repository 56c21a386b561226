"""RankLib's FeatureManager: shuffle and split data files by whole lists; count a model's features.

Files are written as RankLib writes them: whole grades, features in float32 and rising order,
without those that a line does not name.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import I64
from rankwright.data.letor import Letor
from rankwright.data.ranking_data import RankingData
from rankwright.data.streams import atomic_text, make_folder
from rankwright.errors import UsageError
from rankwright.ranklib.java_numbers import java_float
from rankwright.ranklib.lists import fold_numbers, lists_in_share
from rankwright.ranklib.model_text import read_model_text
from rankwright.ranklib.model_trees import Ensembles
from rankwright.ranklib.model_weights import Steps, Terms
from rankwright.ranklib.options import Options

_USAGE = (
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

Print = Callable[[str], None]


def manage_features(words: Sequence[str], say: Print) -> None:
    """Do what ``words`` ask for."""
    options = Options(words, _DEFAULTS, ["-shuffle"], _USAGE)
    if options.has("-feature_stats"):
        print_feature_stats(options.text("-feature_stats"), say)
        return
    inputs, folds = options.all_of("-input"), options.whole("-k")
    share, held = options.share("-tts"), options.share("-tvs")
    if not inputs or not options.has("-output"):
        raise UsageError(f"-input and -output are needed: {_USAGE}.")
    if folds and share:
        raise UsageError(f"-k and -tts cannot be combined: {_USAGE}.")
    if not (folds or share or options.has("-shuffle")):
        raise UsageError(f"there is nothing to do without -shuffle, -k or -tts: {_USAGE}.")
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
    words = np.array([java_float(value) for value in bits.view(np.float32)], object)
    text = words[code.reshape(dense.shape)]
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

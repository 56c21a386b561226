"""The lines of RankLib's log, as scripts look for them."""

from __future__ import annotations

from collections.abc import Sequence

from rankwright.ranklib.flags import RANKERS, Flags
from rankwright.ranklib.java_numbers import java_double, rounded
from rankwright.ranklib.lists import fold_numbers
from rankwright.ranklib.measures import mean

RULE = "---------------------------------"


def training_lines(
    flags: Flags, train_label: str, test_label: str, parameters: Sequence[str]
) -> list[str]:
    """Return what is said before training: files, measures and parameters."""
    name = RANKERS[flags.ranker]
    listed = flags.feature or "Unspecified. All features will be used."
    by_err = train_label.startswith("ERR") or test_label.startswith("ERR")
    lines: list[tuple[bool, str]] = [
        (True, ""),
        (True, "Discard orig. features"),
        (True, f"Training data:\t{flags.train}"),
        (bool(flags.test) and flags.kcv < 1, f"Test data:\t{flags.test[0] if flags.test else ''}"),
        (flags.kcv > 0, f"Cross validation: {flags.kcv} folds."),
        (flags.validate is not None, f"Validation data:\t{flags.validate}"),
        (
            flags.validate is None and flags.tvs > 0.0,
            f"Train-Validation split: {java_double(flags.tvs)}",
        ),
        (flags.tts > 0.0, f"Train-Test split: {java_double(flags.tts)}"),
        (True, f"Feature vector representation: {'Sparse' if flags.sparse else 'Dense'}."),
        (True, f"Ranking method:\t{name}"),
        (True, f"Feature description file:\t{listed}"),
        (True, f"Train metric:\t{train_label}"),
        (True, f"Test metric:\t{test_label}"),
        (by_err, f"Highest relevance label (to compute ERR): {int(flags.gmax)}"),
        (True, f"Feature normalization: {flags.norm or 'No'}"),
        (flags.kcvmd is not None, f"Models directory: {flags.kcvmd}"),
        (flags.kcvmn is not None, f"Models' name: {flags.kcvmn}"),
        (flags.save is not None, f"Model file: {flags.save}"),
        (True, ""),
        (True, f"[+] {name}'s Parameters:"),
    ]
    return [*(line for said, line in lines if said), *parameters, ""]


def round_lines(label: str, train: Sequence[float], valid: Sequence[float]) -> list[str]:
    """Return the table of the measure after each round, where a validation set watched it."""
    if not valid:
        return []
    wide = [f"{label}-{part}".ljust(9) for part in "TV"]
    lines = [f"#iter   | {wide[0]} | {wide[1]} | ", RULE]
    for number, pair in enumerate(zip(train, valid, strict=True), 1):
        cells = (rounded(value).ljust(len(wide[0])) for value in pair)
        lines.append(f"{number:<7} | {' | '.join(cells)} | ")
    return [*lines, RULE]


def fold_lines(queries: Sequence[object], k: int, share: float) -> list[str]:
    """Return which lists are in which part of each fold."""
    found = list(fold_numbers(len(queries), k, share))
    lines = [f"Creating data for {k} folds... [Done]            "]
    for part, what in enumerate(("Train", "Validate", "Test")):
        for number, fold in enumerate(found):
            if len(fold[part]):
                names = " ".join(f'"{queries[q]}"' for q in fold[part].tolist())
                lines.append(f"{what}[{number}]= {names}")
    return lines


def summary_lines(label: str, folds: Sequence[tuple[float, float]], total: float) -> list[str]:
    """Return the table at the end of a cross-validation, from (train, test) of each fold."""
    rule = "-" * 34
    lines = ["Summary:", f"{label}\t|   Train\t| Test", rule]
    for number, (on_train, on_test) in enumerate(folds, 1):
        lines.append(f"Fold {number}\t|   {rounded(on_train)}\t|  {rounded(on_test)}\t")
    train, test = zip(*folds, strict=True)
    on_train = mean([float(rounded(value)) for value in train])  # RankLib keeps four digits
    lines += [rule, f"Avg.\t|   {rounded(on_train)}\t|  {rounded(mean(test))}\t", rule]
    return [*lines, f"Total\t|   \t\t|  {rounded(total)}\t"]

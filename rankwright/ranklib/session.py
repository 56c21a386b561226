"""A run of RankLib's command line: what it reads, trains, tests, ranks and prints.

The log is RankLib's, line by line where scripts look for it; notices, such as where RankLib does
otherwise, go to standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import is_zipfile

import numpy as np

from rankwright.core.order import shown
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import read_scores
from rankwright.data.streams import atomic_text, make_folder
from rankwright.errors import DataError, UsageError
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import Ranker
from rankwright.rankers.fitting import keeping_best
from rankwright.ranklib import lists
from rankwright.ranklib.conversion import missing_notice, ranker_of, text_of
from rankwright.ranklib.flags import RANKERS, Flags
from rankwright.ranklib.java_numbers import java_double, rounded
from rankwright.ranklib.lists import fold_numbers
from rankwright.ranklib.metrics import RankLibMetric, mean, read_judgments
from rankwright.ranklib.model_text import ModelText, read_model_text, write_model_text
from rankwright.ranklib.training import as_ranklib_solves, make_ranker, with_constant

Print = Callable[[str], None]


class Session:
    """One command line; ``say`` prints the log, ``notice`` what the user should know."""

    def __init__(self, flags: Flags, say: Print, notice: Print) -> None:
        self.flags, self.say = flags, say
        self._notice, self._noticed = notice, set[str]()
        judgments = None if flags.qrel is None else read_judgments(flags.qrel)
        test = flags.metric2test or flags.metric2t
        if flags.train is None and flags.metric2test is None:
            test = "ERR@10"
        self.train_metric, self.test_metric = (
            RankLibMetric.of(text, gmax=flags.gmax, judgments=judgments, strict=flags.strict)
            for text in (flags.metric2t, test)
        )
        self._interrupted = False
        self._features = None if flags.feature is None else lists.read_features(flags.feature)

    def run(self) -> None:
        """Do what the flags ask for."""
        flags = self.flags
        if flags.train is not None:
            _, recipe = make_ranker(flags, self.train_metric)
            labels = (self.train_metric.label, self.test_metric.label)
            self._say_all(training_lines(flags, *labels, recipe.log))
            if flags.kcv > 0:
                self._cross_validate(flags.train)
            else:
                self._train_and_test(flags.train)
        elif flags.rank is not None:
            self._rank(flags.rank)
        elif flags.test:
            self._test()
        elif flags.load and flags.save:
            self._convert()
        else:
            raise UsageError(
                "there is nothing to do: give -train, -test, -rank, or -load and -save."
            )

    # --- reading -----------------------------------------------------------------------------

    def _read(self, path: str) -> RankingData:
        flags = self.flags
        data = lists.read_lists(
            path,
            sparse=flags.sparse,
            with_relevant=flags.hr,
            n_jobs=None if flags.thread < 1 else flags.thread,
        )
        self.say(f"Reading feature file [{path}]... [Done.]            ")
        self.say(f"({data.n_queries} ranked lists, {data.n_documents} entries read)")
        scaled = lists.normalized(data, flags.norm, strict=flags.strict)
        if flags.norm == "linear" and not flags.strict:
            theirs = lists.normalized(data, flags.norm, strict=True)
            if lists.differ(scaled, theirs):
                self.notice(
                    "-norm linear scales features that are negative throughout a list to 0..1 too; "
                    "RankLib takes 0 for their maximum (--strict does so)."
                )
        return scaled

    def _model(self, path: str) -> ModelText:
        if is_zipfile(path):
            return self._text_of(load_model(path))
        return read_model_text(path)

    def _text_of(self, ranker: Ranker) -> ModelText:
        """Return our ranker as a model of RankLib, and report what is lost."""
        if (lost := missing_notice(ranker)) is not None:
            self.notice(lost)
        return text_of(ranker)

    def _scores(self, model: ModelText, data: RankingData) -> F64:
        flags = self.flags
        if model.n_features > data.n_features and not flags.missing_zero:
            what = (
                f"the model uses feature {model.n_features} and the data ends with "
                f"feature {data.n_features}"
            )
            if flags.strict:
                raise DataError(f"{what}; -missingZero reads the others as 0.")
            self.notice(f"{what}; the others are read as 0 (RankLib needs -missingZero for it).")
        return model.scores(data.X)

    def notice(self, sentence: str) -> None:
        """Print a notice, once."""
        if sentence not in self._noticed:
            self._noticed.add(sentence)
            self._notice(sentence)

    # --- training ----------------------------------------------------------------------------

    def _train_and_test(self, path: str) -> None:
        flags = self.flags
        train = self._read(path)
        valid = None if flags.validate is None else self._read(flags.validate)
        test = None
        if flags.tts > 0.0:
            train, test = lists.first_share(train, flags.tts)
        elif flags.tvs > 0.0:
            train, valid = lists.first_share(train, flags.tvs)
        if flags.test and test is None:
            test = self._read(flags.test[0])
        model = self._fit(train, valid)
        if test is not None:
            values = self.test_metric.per_query(test, self._scores(model, test))
            self._result(self.test_metric, "test", mean(values))
            self._save_values(test.qid.tolist(), values)
        if flags.save is not None:
            write_model_text(model, flags.save)
            self.say(f"\nModel saved to: {flags.save}")
        if self._interrupted:
            self.notice("interrupted: this is the best model so far.")
            raise SystemExit(130)

    def _fit(self, train: RankingData, valid: RankingData | None) -> ModelText:
        """Train, print how it went, and return the model."""
        features = self._features or list(range(1, train.n_features + 1))
        ranker, recipe = make_ranker(self.flags, self.train_metric, train.n_queries)
        for notice in (*recipe.notices, *self.train_metric.notices, *self.test_metric.notices):
            self.notice(notice)
        self._detail("Initializing... [Done]")
        self._detail(f"{RULE}\nTraining starts...\n{RULE}")
        chosen = lists.with_features(train, features)
        chooses = None if valid is None else lists.with_features(valid, features)
        model = self._fitted(ranker, chosen, chooses).with_features(features)
        self._detail("Finished sucessfully.")
        found = self.train_metric.per_query(train, model.scores(train.X))
        self._on_train = mean(found)
        self._result(self.train_metric, "training", self._on_train)
        if valid is not None:
            on_valid = mean(self.train_metric.per_query(valid, model.scores(valid.X)))
            self._result(self.train_metric, "validation", on_valid)
        self.say(RULE)
        return model

    def _fitted(self, ranker: Ranker, train: RankingData, valid: RankingData | None) -> ModelText:
        l2, regression = self.flags.l2, ranker.name == "linear_regression"
        if regression and self.flags.strict:
            return as_ranklib_solves(train, l2)
        if ranker.name == "random_forest":  # all bags are kept, whatever the validation data says
            valid = None
        sets = None if valid is None else {"train": train, "valid": valid}
        if self.flags.kcv > 0:
            ranker.fit(train, eval_set=sets)
        else:
            with keeping_best(ranker):
                ranker.fit(train, eval_set=sets)
            self._interrupted = ranker.interrupted_
        if not self.flags.silent:
            name, label = self.train_metric.selects, self.train_metric.label
            curves = [ranker.curve_.get(f"{part} {name}", []) for part in ("train", "valid")]
            self._say_all(round_lines(label, *curves))
        model = self._text_of(ranker)
        return with_constant(model, train, l2) if regression else model

    def _cross_validate(self, path: str) -> None:
        flags, data = self.flags, self._read(path)
        folder, name = flags.kcvmd, flags.kcvmn
        keeps = folder is not None or name is not None
        self._say_all(fold_lines(data.qid.tolist(), flags.kcv, flags.tvs))
        rows, weighted, n_lists = [], 0.0, 0
        for number, fold in enumerate(lists.folds(data, flags.kcv, flags.tvs), 1):
            model = self._fit(fold.train, fold.valid)
            values = self.test_metric.per_query(fold.test, self._scores(model, fold.test))
            rows.append((self._on_train, mean(values)))
            weighted, n_lists = weighted + float(values.sum()), n_lists + len(values)
            if keeps:
                target = Path(folder or "kcvmodels")
                make_folder(target)
                write_model_text(model, target / f"f{number}.{name or 'kcv'}")
                self.say(f"Fold-{number} model saved to: {name or 'kcv'}")
        self._say_all(summary_lines(self.test_metric.label, rows, weighted / n_lists))

    # --- using models ------------------------------------------------------------------------

    def _test(self) -> None:
        flags = self.flags
        if len(flags.test) > 1 and len(flags.test) != len(flags.load):
            raise UsageError(
                f"there are {len(flags.load)} models and {len(flags.test)} test files; give one "
                "test file, or as many as models."
            )
        models = self._models()
        for notice in self.test_metric.notices:
            self.notice(notice)
        data = [self._read(path) for path in flags.test]
        if len(data) > 1:
            scores = [self._scores(*pair) for pair in zip(models, data, strict=True)]
        else:
            scores = [self._scores_of_folds(models, data[0])]
        pairs = zip(data, scores, strict=True)
        values = np.concatenate([self.test_metric.per_query(*pair) for pair in pairs])
        self._result(self.test_metric, "test", mean(values))
        self._save_values([query for part in data for query in part.qid.tolist()], values)

    def _scores_of_folds(self, models: list[ModelText], data: RankingData) -> F64:
        """Return scores by the model, or by each model on its part; or the given ones."""
        if not models:
            if self.flags.score is not None:
                return read_scores(self.flags.score, data)
            return -np.arange(data.n_documents, dtype=np.float64)  # the order of the file
        if len(models) == 1:
            return self._scores(models[0], data)
        scores = np.empty(data.n_documents)
        for model, part in zip(models, lists.parts(data.n_queries, len(models)), strict=True):
            scores[data.rows_of(part)] = self._scores(model, data.select(part))
        return scores

    def _rank(self, path: str) -> None:
        flags = self.flags
        if not flags.load:
            raise UsageError("-rank needs a model: -load FILE.")
        if flags.score is None and flags.indri is None:
            raise UsageError("-rank writes scores or a ranking: give -score FILE or -indri FILE.")
        models = self._models()
        data = self._read(path)
        scores = self._scores_of_folds(models, data)
        if flags.score is not None:
            write_scores(data, scores, flags.score)
        if flags.indri is not None:
            write_ranking(data, scores, flags.indri)

    def _convert(self) -> None:
        flags = self.flags
        assert flags.save is not None
        if len(flags.load) != 1:
            raise UsageError("-load and -save alone turn one model into another form.")
        source = Path(flags.load[0])
        if is_zipfile(source):
            write_model_text(self._model(str(source)), flags.save)
        else:
            ranker_of(read_model_text(source)).save(flags.save)
        self.say(f"Model saved to: {flags.save}")

    # --- the log -----------------------------------------------------------------------------

    def _models(self) -> list[ModelText]:
        """Return the models to be used, said before."""
        flags = self.flags
        self.say("\nDiscard orig. features")
        for path in flags.load:
            self.say(f"Model file:\t{path}")
        self.say(f"Feature normalization: {flags.norm or 'No'}")
        if flags.rank is None:
            self.say(f"Test metric:\t{self.test_metric.label}")
        models = [self._model(path) for path in flags.load]
        for model in models:
            self.say(f"Model:\t\t{model.name}")
        return models

    def _say_all(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.say(line)

    def _detail(self, text: str) -> None:
        if not self.flags.silent:
            self.say(text)

    def _result(self, metric: RankLibMetric, what: str, value: float) -> None:
        self.say(f"{metric.label} on {what} data: {rounded(value)}")

    def _save_values(self, names: Sequence[object], values: F64) -> None:
        if self.flags.idv is not None:
            write_values(self.test_metric.label, names, values, self.flags.idv)
            self.say(f"Per-ranked list performance saved to: {self.flags.idv}")


# --- lines of the log --------------------------------------------------------------------------
# As scripts look for them.


RULE = "---------------------------------"


def training_lines(
    flags: Flags, train_label: str, test_label: str, parameters: Sequence[str]
) -> list[str]:
    """Return what is said before training: files, metrics and parameters."""
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
    """Return the table of the metric after each round, where a validation set watched it."""
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


# --- output files ------------------------------------------------------------------------------
# ``-score``, ``-indri`` and ``-idv``; a file appears whole or not at all.


def write_scores(data: RankingData, scores: F64, path: str) -> None:
    """Write ``query number score`` lines, documents numbered from 0 in each list."""
    values = scores.tolist()
    with atomic_text(path) as target:
        for q, query in enumerate(data.qid.tolist()):
            start, end = data.indptr[q : q + 2].tolist()
            for row in range(start, end):
                target.write(f"{query}\t{row - start}\t{java_double(values[row])}\n")


def write_ranking(data: RankingData, scores: F64, path: str) -> None:
    """Write each list, best first, as ``query Q0 name rank score indri``; equal scores as read."""
    order, indptr = shown(scores, data.indptr)
    names = [""] * data.n_documents if data.doc_id is None else data.doc_id.tolist()
    with atomic_text(path) as target:
        for q, query in enumerate(data.qid.tolist()):
            rows = order[indptr[q] : indptr[q + 1]].tolist()
            for rank, row in enumerate(rows, 1):
                score = rounded(float(scores[row]), 5)
                target.write(f"{query} Q0 {names[row]} {rank} {score} indri\n")


def write_values(label: str, names: Sequence[object], values: F64, path: str) -> None:
    """Write ``metric   query   value`` lines, and the mean as that of ``all``."""
    with atomic_text(path) as target:
        for name, value in zip(names, values.tolist(), strict=True):
            target.write(f"{label}   {name}   {java_double(value)}\n")
        target.write(f"{label}   all   {java_double(mean(values))}\n")

"""``rankwright inspect``: problems in ranking data, or what a model file holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwright.cli import console
from rankwright.cli.options import (
    FormatOption,
    ReadOption,
    read_options,
)
from rankwright.core.checks import HIGHEST_EXP2_GRADE
from rankwright.errors import UsageError, counted
from rankwright.ranklib.model_files import is_model, load_model

if TYPE_CHECKING:
    from rankwright.data.inspect import DataProfile, Profile
    from rankwright.data.ranking_data import RankingData
    from rankwright.rankers.base import Ranker


_LISTED = 10
_IMPORTANCES_LISTED = 20


def inspect(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Files, LETOR Fold folders, or names of data sets; several are compared. Or one "
            "model file."
        ),
    ],
    format: FormatOption = None,  # noqa: A002
    read: ReadOption = None,
    joint_convexity: Annotated[
        bool,
        typer.Option(
            "--joint-convexity",
            help="Of a memr or mr model: whether its objective is convex in targets and weights, "
            "and the l2 that makes sure of it, on the data of --train.",
        ),
    ] = False,
    train: Annotated[
        str | None, typer.Option("--train", help="The training data, for --joint-convexity.")
    ] = None,
    json: console.JsonOption = False,
) -> None:
    """Summarise data sets, and report problems that bias training or evaluation.

    Of a model file: its parameters, and its weights or most used features.
    """
    options = read_options(read, format=format)
    if joint_convexity != (train is not None):
        raise UsageError(
            "--joint-convexity is tested on the training data: give both, as in rankwright inspect "
            "model.rw --joint-convexity --train train.txt."
        )
    if len(data) == 1 and is_model(data[0]):
        inspect_model(data[0], json, train=train, read=options)
        return
    if joint_convexity:
        raise UsageError("--joint-convexity is a property of a model; give one model file.")
    from rankwright.data.inspect import inspect as look

    profile = look(_loaded(data, options))
    sentences = findings(profile)
    if json:
        console.print_json({**profile.to_dict(), "findings": sentences})
        return
    for one in profile.data:
        _print_shape(one)
    console.show("findings", "bold")
    for sentence in sentences or ["no problems found."]:
        console.show(f"- {sentence}")


def findings(profile: Profile) -> list[str]:
    """Return what is worth knowing, as sentences, the most harmful first."""
    several = len(profile.data) > 1
    ranked: list[tuple[int, str]] = []
    for pair in profile.overlaps:
        if pair.queries:
            ranked.append(
                (
                    0,
                    f"{pair.first} and {pair.second} share {counted(pair.queries, 'query')} "
                    f"({_some(pair.examples, pair.queries)}): this leaks training "
                    "data into the evaluation.",
                )
            )
        if pair.documents:
            ranked.append(
                (
                    1,
                    f"{counted(pair.documents, 'document')} of {pair.second} "
                    f"{_verb(pair.documents, 'has', 'have')} the features of one of {pair.first}.",
                )
            )
    for one in profile.data:
        prefix = f"{one.name}: " if several else ""
        remarks = [*_about_lists(one), *_about_documents(one), *_about_features(one)]
        ranked += [(rank, prefix + sentence) for rank, sentence in remarks]
    return [sentence for _, sentence in sorted(ranked, key=lambda item: item[0])]


def _about_lists(one: DataProfile) -> Iterator[tuple[int, str]]:
    if one.queries == 1 and one.documents > 1:
        yield (
            2,
            "all documents are of one query, so a ranker learns from one list alone; is this the "
            "column (or qid:) that identifies queries?",
        )
    elif one.list_lengths.longest == 1 and one.documents > 1:
        yield (
            2,
            "every query has one document, so there is no order to learn; is the query id perhaps "
            "the id of the document?",
        )
    if one.scattered_queries:
        yield (
            3,
            f"the rows of {counted(one.scattered_queries, 'query')} are not contiguous "
            f"({_some(one.scattered_examples, one.scattered_queries)}); they were joined here, "
            "where RankLib takes each run of rows for a list of its own.",
        )
    if one.empty_queries:
        yield (
            5,
            f"{one.empty_queries:,} of {counted(one.queries, 'query')} "
            f"{_verb(one.empty_queries, 'has', 'have')} no relevant document; conventions differ "
            "in whether these count as 0, count as 1 or are left out.",
        )
    if one.one_grade_queries:
        yield (
            6,
            f"{one.one_grade_queries:,} of {counted(one.queries, 'query')} "
            f"{_verb(one.one_grade_queries, 'has', 'have')} a single grade above 0: every order of "
            f"{_verb(one.one_grade_queries, 'it', 'them')} is as good.",
        )


def _about_documents(one: DataProfile) -> Iterator[tuple[int, str]]:
    order, copies = one.order, one.duplicate_documents
    table = one.grades.counts or {}
    if len(table) > 1 and table.get(max(table), 0) > one.documents / 2:
        yield (
            7,
            f"more than half of the documents have the highest grade, {max(table)}; a higher grade "
            "is better here, so turn grades around in which 0 is the best.",
        )
    if one.grades.highest > HIGHEST_EXP2_GRADE:
        yield (
            1,
            f"the highest grade is {one.grades.highest:g}: with gains of 2^grade - 1, which NDCG "
            "and several losses have by default, a few documents outweigh all others. If grades "
            "are counts, map them to a few grades, or use linear gains, as in "
            "--metric 'ndcg(gain=linear)@10'.",
        )
    if order.sorted:
        best = order.sorted == "best first"
        yield (
            2,
            f"in {order.best_first if best else order.worst_first:,} of {order.lists:,} lists with "
            f"several grades the rows stand {order.sorted} (by chance {order.by_chance:,g}): where "
            f"scores tie and file order decides, rankings look {'better' if best else 'worse'} "
            "than they are. Shuffle the rows, or evaluate with --ties.",
        )
    if copies.documents:
        conflict = (
            f"; {counted(copies.conflicting, 'set')} of equal documents "
            f"{_verb(copies.conflicting, 'has', 'have')} different grades, which no ranker can get "
            "right"
        )
        yield (
            4 if copies.conflicting else 8,
            f"{counted(copies.documents, 'document')} in {counted(copies.queries, 'query')} "
            f"{_verb(copies.documents, 'equals', 'equal')} another of the same query in every "
            f"feature{conflict if copies.conflicting else ''}.",
        )


def _about_features(one: DataProfile) -> Iterator[tuple[int, str]]:
    if one.outcome_features:
        why = [f"{name} {reason}" for name, reason in one.outcome_features.items()]
        yield (
            1,
            f"{counted(len(why), 'feature')} {_verb(len(why), 'looks', 'look')} like outcomes, "
            f"which are not known when documents are ranked: {_list(why)}. Leave "
            f"{_verb(len(why), 'it', 'them')} out with --read "
            f"drop={','.join(map(str, one.outcome_features))}, unless known beforehand.",
        )
    if one.missing_values:
        share = one.missing_values / (one.documents * one.features)
        most = sorted(one.missing_by_feature, key=lambda f: -one.missing_by_feature[f])
        yield (
            7,
            f"{one.missing_values:,} values ({share:.2%}) are missing, in {len(most):,} of "
            f"{counted(one.features, 'feature')}, most in {_list(most)}.",
        )
    for rank, chosen, what in (
        (9, one.constant_features, "constant"),
        (10, one.query_constant_features, "the same for all documents of a query"),
    ):
        if chosen:
            yield (
                rank,
                f"{len(chosen):,} of {counted(one.features, 'feature')} "
                f"{_verb(len(chosen), 'is', 'are')} {what}: {_list(chosen)}.",
            )
    negative = [name for name in one.negative_features if isinstance(name, str)]
    if negative:
        yield (
            12,
            f"{len(negative):,} of {counted(one.features, 'feature')} "
            f"{_verb(len(negative), 'has', 'have')} values below 0, which a query of Elasticsearch "
            f"or OpenSearch cannot return as its score: {_list(negative)}.",
        )
    if one.duplicate_features:
        spare = sum(len(group) - 1 for group in one.duplicate_features)
        groups = [" = ".join(map(str, group)) for group in one.duplicate_features]
        yield (
            11,
            f"{spare:,} of {counted(one.features, 'feature')} {_verb(spare, 'is', 'are')} "
            f"{_verb(spare, 'a copy', 'copies')} of another: {_list(groups)}.",
        )


def _loaded(data: list[str], options: dict[str, Any]) -> Iterator[tuple[str, RankingData]]:
    """Yield name and data, one at a time, so that only one is in memory."""
    from rankwright.data.files import load

    for name in (path for given in data for path in _files(given)):
        with console.err.status(f"reading {name}"):
            loaded = load(name, **options)
        yield name, loaded


def _files(given: str) -> list[str]:
    """Return the files of a LETOR Fold folder, or what was given."""
    from rankwright.data.split import fold_files

    return list(map(str, fold_files(given).values())) or [given]


def _print_shape(one: DataProfile) -> None:
    lengths, grades = one.list_lengths, one.grades
    console.show(one.name, "bold")
    kind = "sparse" if one.sparse else "dense"
    size = ", ".join(
        counted(number, what)
        for number, what in (
            (one.documents, "document"),
            (one.queries, "query"),
            (one.features, "feature"),
        )
    )
    console.show(f"  {size}, {kind}")
    span = f"{lengths.shortest:,} to " if lengths.shortest < lengths.longest else ""
    console.show(
        f"  lists of {span}{counted(lengths.longest, 'document')}, median {lengths.median:,g}"
    )
    if grades.counts is None:
        text = f"{grades.distinct:,} grades from {grades.lowest:g} to {grades.highest:g}"
    else:
        shares = (
            f"{grade:g}: {count:,} ({count / one.documents:.1%})"
            for grade, count in grades.counts.items()
        )
        text = f"grades {', '.join(shares)}"
    console.show(f"  {text}")


def _verb(number: int, singular: str, plural: str) -> str:
    return singular if number == 1 else plural


def _some(examples: Iterable[Any], number: int) -> str:
    shown = list(map(str, examples))
    return ", ".join(shown) + (", ..." if number > len(shown) else "")


def _list(items: Iterable[Any]) -> str:
    shown = list(map(str, items))
    rest = len(shown) - _LISTED
    return ", ".join(shown[:_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


# --- model files -----------------------------------------------------------------------------


def inspect_model(
    path: str, json: bool, *, train: str | None = None, read: dict[str, Any] | None = None
) -> None:
    """Print the ranker of a model file: its parameters, what chose it, and its feature importance.

    With the data ``train``, also whether its objective is jointly convex.
    """
    ranker = load_model(path)
    found = _about(ranker)
    if train is not None:
        found["joint_convexity"] = _joint_convexity(ranker, train, read or {})
    if json:
        console.print_json(found)
        return
    console.show(path, "bold")
    parameters = ", ".join(f"{name}={value!r}" for name, value in found["parameters"].items())
    console.show(f"  {found['ranker']}, model {found['model']}")
    console.show(f"  {parameters or 'default parameters'}")
    chosen = "".join(f"; {name} {value:.4f}" for name, value in found["chosen"].items())
    console.show(
        f"  {found['features']:,} features, round {found['best_iteration']}{chosen} "
        f"({found['convention']})"
    )
    if train is not None:
        console.show(f"  {found['joint_convexity']['verdict']}")
    by = found["goes_by"]
    console.show(by["what"], "bold")
    for name, value in list(by["values"].items())[:_IMPORTANCES_LISTED]:
        console.show(f"  {value:>12.6g}  {name}")
    for line in by.get("lines", [])[:_IMPORTANCES_LISTED]:
        console.show(f"  {line}")
    rest = len(by["values"]) + len(by.get("lines", [])) - _IMPORTANCES_LISTED
    if rest > 0:
        console.show(f"  and {rest:,} more; --json shows all")


def _about(ranker: Ranker) -> dict[str, Any]:
    at = ranker.best_iteration_ - 1
    chosen = {
        name: values[at]
        for name, values in ranker.curve_.items()
        if name != "loss" and 0 <= at < len(values)
    }
    return {
        "ranker": ranker.name,
        "model": ranker.model_name,
        "parameters": dict(_given(ranker)),
        "features": ranker.n_features_in_,
        "best_iteration": ranker.best_iteration_,
        "convention": ranker.convention,
        "chosen": chosen,
        "goes_by": _goes_by(ranker),
    }


def _given(ranker: Ranker) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that differ from the defaults; those of parts as ``model.max_bins``."""
    from rankwright.core.parameters import PARTS, default_params, params_of, part_name, same
    from rankwright.persist.model_file import Absent
    from rankwright.rankers.search_space import given_parameters

    for name, value in given_parameters(ranker).items():
        is_part = name in PARTS and not isinstance(value, str | Absent)
        params = params_of(value) if is_part else {}
        if name != "model":
            yield name, part_name(PARTS[name], value) if params else _plain(value)
        usual = default_params(value) if params else {}
        for key, one in params.items():
            if key not in usual or not same(one, usual[key]):
                yield f"{name}.{key}", _plain(one)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON holds it, a metric or function by what it shows as."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    known = value is None or isinstance(value, str | int | float)
    return value if known else repr(value)


def _joint_convexity(ranker: Ranker, train: str, read: dict[str, Any]) -> dict[str, Any]:
    from rankwright.data.files import load
    from rankwright.rankers.joint_convexity import joint_convexity

    found = joint_convexity(ranker, load(train, **read).with_n_features(ranker.n_features_in_))
    return {
        "l2": found.l2,
        "needed": found.needed if isfinite(found.needed) else None,
        "holds": found.holds,
        "verdict": str(found),
    }


def _goes_by(ranker: Ranker) -> dict[str, Any]:
    """Return the weights of a linear model, or the features of a tree model by gain.

    A model that can be read as text has ``describe(names)``: a heading, then a line for each part.
    """
    model: Any = ranker.model_
    is_rules = getattr(model, "is_rules", False)
    if is_rules or hasattr(model, "describe"):
        numbers = range(1, model.n_features + 1)  # as in LETOR files
        names = [str(name) for name in getattr(ranker, "feature_names_in_", numbers)]
        if is_rules:
            from rankwright.models.additive import describe_rules

            what, *lines = describe_rules(model, names)
        else:
            what, *lines = model.describe(names)
        return {"what": what, "values": {}, "lines": lines}
    if hasattr(model, "coef"):
        weights = ranker.weights_
        kept = {name: weight for name, weight in weights.items() if weight != 0.0}
        zeros = len(weights) - len(kept)
        return {"what": f"weights, the largest first; {zeros:,} are zero", "values": kept}
    if hasattr(model, "importance"):
        from rankwright.explanation.importance import importance

        gains = importance(ranker, "gain")
        used = {name: gain for name, gain in gains.items() if gain > 0.0}
        return {
            "what": f"{model.n_trees:,} trees; features by the gain of their splits",
            "values": used,
        }
    return {"what": "a model without weights by feature", "values": {}}

"""The rankers of a comparison as the user names them.

``lambdamart`` is a ranker as it stands, ``lambdamart:num_leaves=7:model.max_bins=63`` one with
parameters of its own and of its model, and ``small=lambdamart:num_leaves=7`` gives it a name of its
own. ``bm25=column:BM25`` is a feature of the data as scores, ``other=run:RUN.txt`` a TREC run and
``mine=model:model.rw`` a fitted model. In Python an entry may also be a ranker object, whose parts
may be objects too, an estimator or fitted model of another library, or an array of scores; and a
mapping gives names to entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rankwright import registry
from rankwright.comparison.result import Entry
from rankwright.comparison.scorers import KINDS_OF_TEXT, RunScorer, scorer_of, text_scorer
from rankwright.core.parts import PARTS
from rankwright.errors import UsageError
from rankwright.key_values import parse_settings
from rankwright.metrics.names import metric
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.search_space import given_parameters

_COMMA = re.compile(r",(?![^\[({]*[\])}])")  # not within brackets
_COLON = re.compile(r":(?![^\[({]*[\])}])")
_TEXT = re.compile(rf"(?:([^:=]+)=)?\s*({'|'.join(KINDS_OF_TEXT)}):(.*)")
_OF_THE_COMPARISON = ("n_jobs", "verbose", "convention")


def entries_of(rankers: Any) -> tuple[Entry, ...]:
    """Return an entry for each ranker; each is made once, so that a wrong name is reported at once.

    Parameters
    ----------
    rankers : str, ranker, estimator, fitted model, an iterable of them, or a mapping
        A mapping goes from names to them, and may hold arrays of scores too.
    """
    found: list[Entry] = []
    if isinstance(rankers, Mapping):
        for label, given in rankers.items():
            made = _entry(given)
            found.append(replace(made, label=str(label)))
    else:
        single = isinstance(rankers, str) or hasattr(rankers, "predict")  # a Pipeline has a length
        listed = [rankers] if single else rankers
        if not isinstance(listed, Iterable):
            raise UsageError(f"rankers must be names or rankers, not {type(rankers).__name__}.")
        for given in listed:
            texts = _COMMA.split(given) if isinstance(given, str) else [given]
            found.extend(_entry(text) for text in texts)
    _check(found)
    return tuple(found)


def parse_entry(text: str) -> Entry:
    """Return the entry that ``[label=]ranker[:key=value]...`` or ``[label=]run:FILE`` names."""
    scored = _TEXT.fullmatch(text.strip())
    if scored is not None:
        label, kind, value = scored.groups()
        scorer = text_scorer(kind, value.strip())
        if isinstance(scorer, RunScorer):
            scorer.check()
        return Entry((label or text).strip(), scorer.kind, {}, scorer)
    head, *settings = (part.strip() for part in _COLON.split(text.strip()))
    label, equals, name = head.rpartition("=")
    parameters = parse_settings(settings, f"'{text}'")
    return Entry(label if equals else text.strip(), name.strip(), parameters)


def _entry(given: Any) -> Entry:
    if isinstance(given, str):
        return parse_entry(given)
    scored = scorer_of(given)
    if scored is not None:
        label, scorer = scored
        return Entry(label, scorer.kind, dict(getattr(scorer, "parameters", {})), scorer)
    if isinstance(given, Ranker):
        parameters = given_parameters(given)
        shown = "".join(f":{name}={_shown(name, value)}" for name, value in parameters.items())
        name = registry.name_of("rankers", type(given))
        if name is None:
            raise UsageError(_unnamed("rankers", type(given).__name__))
        return Entry(name + shown, name, parameters)
    raise UsageError(
        "an entry must be a name, a ranker, an estimator or fitted model with predict, or an array "
        f"of scores, not {type(given).__name__}."
    )


def _check(entries: list[Entry]) -> None:
    if not entries:
        raise UsageError("there is no ranker to compare; `rankwright list rankers` shows them.")
    labels = [entry.label for entry in entries]
    for entry in entries:
        if labels.count(entry.label) > 1:
            other = f"other={entry.label}" if entry.scorer is None else "{'other': ...}"
            raise UsageError(f"'{entry.label}' is listed twice; give one another name: {other}.")
        if entry.scorer is not None:
            continue
        usual = registry.resolve("rankers", entry.ranker)().get_params(deep=False)
        for name in _OF_THE_COMPARISON:
            if entry.parameters.get(name, usual[name]) != usual[name]:
                raise UsageError(
                    f"{entry.label}: {name} is set for the whole comparison, not for one ranker."
                )
        made = ranker(entry.ranker, **entry.parameters)
        model = made.make_model()
        if registry.name_of("models", type(model)) is None:
            raise UsageError(f"{entry.label}: {_unnamed('models', type(model).__name__)}")
        if made.has_loss:
            made.make_loss()


def selection(name: str, select: Any) -> dict[str, Any]:
    """Return the parameter by which the ranker called ``name`` selects on the validation set.

    That is ``select_metric`` where the loss has a metric of its own, else ``metric``.
    """
    known = registry.resolve("rankers", name)().get_params(deep=False)
    return {"select_metric" if "select_metric" in known else "metric": select}


def _shown(name: str, value: Any) -> str:
    """Return a parameter as a label has it: what differs from the defaults of a part."""
    if name in PARTS and not isinstance(value, str):
        return repr(value)
    if callable(value) and "metric" in name:
        return repr(metric(value))
    return str(value)


def _unnamed(kind: str, name: str) -> str:
    return (
        f"{name} has no registered name, by which the fitted model could be kept; announce it as "
        f"an entry point of the group rankwright.{kind}."
    )

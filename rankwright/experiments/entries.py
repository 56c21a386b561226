"""The rankers of a comparison as the user names them.

``lambdamart`` is a ranker as it stands, ``lambdamart:num_leaves=7:model.max_bins=63`` one with
parameters of its own and of its model, and ``small=lambdamart:num_leaves=7`` gives it a name of its
own. In Python an entry may also be a ranker object, whose parts may be objects too, and a mapping
gives names to entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rankwright import registry
from rankwright.core.parts import PARTS
from rankwright.errors import UsageError
from rankwright.experiments.comparison import Entry
from rankwright.key_values import parse_settings
from rankwright.metrics.names import metric
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.search_space import given_parameters

_COMMA = re.compile(r",(?![^\[({]*[\])}])")  # not within brackets
_COLON = re.compile(r":(?![^\[({]*[\])}])")
_OF_THE_COMPARISON = ("n_jobs", "verbose", "convention")


def entries_of(rankers: Any) -> tuple[Entry, ...]:
    """Return an entry for each ranker; each is made once, so that a wrong name is told at once.

    Parameters
    ----------
    rankers : str, Ranker, an iterable of them, or a mapping from names to them
    """
    found: list[Entry] = []
    if isinstance(rankers, Mapping):
        for label, given in rankers.items():
            made = _entry(given)
            found.append(Entry(str(label), made.ranker, made.parameters))
    else:
        listed = [rankers] if isinstance(rankers, str | Ranker) else rankers
        if not isinstance(listed, Iterable):
            raise UsageError(f"rankers must be names or rankers, not {type(rankers).__name__}.")
        for given in listed:
            texts = _COMMA.split(given) if isinstance(given, str) else [given]
            found.extend(_entry(text) for text in texts)
    _check(found)
    return tuple(found)


def parse_entry(text: str) -> Entry:
    """Return the entry that ``[label=]ranker[:key=value]...`` names."""
    head, *settings = (part.strip() for part in _COLON.split(text.strip()))
    label, equals, name = head.rpartition("=")
    parameters = parse_settings(settings, f"'{text}'")
    return Entry(label if equals else text.strip(), name.strip(), parameters)


def _entry(given: Any) -> Entry:
    if isinstance(given, str):
        return parse_entry(given)
    if isinstance(given, Ranker):
        parameters = given_parameters(given)
        shown = "".join(f":{name}={_shown(name, value)}" for name, value in parameters.items())
        name = registry.name_of("rankers", type(given))
        if name is None:
            raise UsageError(_unnamed("rankers", type(given).__name__))
        return Entry(name + shown, name, parameters)
    raise UsageError(f"an entry must be a name or a ranker, not {type(given).__name__}.")


def _check(entries: list[Entry]) -> None:
    if not entries:
        raise UsageError("there is no ranker to compare; `rankwright list rankers` shows them.")
    labels = [entry.label for entry in entries]
    for entry in entries:
        if labels.count(entry.label) > 1:
            raise UsageError(
                f"'{entry.label}' is listed twice; give one another name: other={entry.label}."
            )
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

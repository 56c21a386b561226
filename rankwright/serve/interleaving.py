"""An experiment: lists interleaved from all models, a log of what was shown, and clicks on it."""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from rankwright.serve.handlers import Scored, refuse_long, refuse_many, score_list
from rankwright.serve.impressions import ImpressionLog
from rankwright.serve.model_store import ModelStore
from rankwright.serve.monitoring import ServerMetrics
from rankwright.serve.schemas import AskedList, ClickRequest, RequestError
from rankwright.serve.settings import Settings

_MOST_SESSIONS = 100_000  # that clicks may still come for
_MOST_CHARACTERS = 100_000_000  # of the ids of their documents


@dataclass(slots=True)
class _Shown:
    """The documents of a session, best first, and the positions that were clicked."""

    documents: list[str]
    clicked: set[int]

    @property
    def characters(self) -> int:
        """Of the ids of the documents."""
        return sum(map(len, self.documents))


class Experiment:
    """Interleaves the models of a store; the method and the log are those of the settings."""

    def __init__(self, store: ModelStore, settings: Settings, metrics: ServerMetrics) -> None:
        from rankwright.clicks.interleaving import interleave_scores, interleaving_method

        assert settings.interleave is not None
        assert settings.impressions is not None
        self._store, self._settings, self._metrics = store, settings, metrics
        self._interleave = interleave_scores
        self._method = interleaving_method(settings.interleave, k=settings.interleave_k)
        self._method.check(len(store.models))
        several = len(store.names) < len(store.models)
        self.rankers = [
            loaded.version.pinned if several else loaded.version.name for loaded in store.models
        ]
        self._sessions: OrderedDict[str, _Shown] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()
        self._interleave([[1.0, 0.0]] * len(store.models), self._method)  # readies its kernels
        self.log = ImpressionLog(
            settings.impressions, settings.max_impressions, metrics.count_lost_lines
        )

    def rank(self, asked: AskedList) -> tuple[dict[str, Any], list[Scored]]:
        """Return the interleaved list as an answer, and the scores of each model behind it."""
        refuse_long(asked, self._settings)
        names = self._document_names(asked)
        scored = self._scored(asked)
        session = uuid.uuid4().hex
        shown = self._interleave([one.scores for one in scored], self._method, session=session)
        order = shown.order.tolist()
        held = [names[row] for row in order]
        if order:
            self._remember(session, _Shown(held, set()))
            line = shown.to_json(str(asked.query), names, self.rankers)
            self.log.append({"session": session, "time": _now(), **line, "clicked": []})
            self._metrics.impressions.inc()
        ranking = [
            {"rank": rank, "index": row, "id": asked.ids[row], "team": team}  # type: ignore[index]
            for rank, (row, team) in enumerate(zip(order, shown.team.tolist(), strict=True), 1)
        ]
        return {"session": session, "query": asked.query, "ranking": ranking}, scored

    def click(self, asked: ClickRequest) -> dict[str, Any]:
        """Note a click; a second one on the same document changes nothing."""
        with self._lock:
            shown = self._sessions.get(asked.session)
            if shown is None:
                raise RequestError(
                    404, "the session is not known: it is of another server, or too long ago."
                )
            position = _position(asked, shown.documents)
            again = position in shown.clicked
            shown.clicked.add(position)
        if not again:
            self.log.append({"session": asked.session, "time": _now(), "clicked": [position]})
            self._metrics.clicks.inc()
        return {"session": asked.session, "position": position, "recorded": not again}

    def close(self) -> None:
        """Write what waits to be written."""
        self.log.close()

    def _remember(self, session: str, shown: _Shown) -> None:
        """Keep a session for its clicks; forget the oldest where there are too many."""
        with self._lock:
            self._sessions[session] = shown
            self._characters += shown.characters
            while len(self._sessions) > _MOST_SESSIONS or self._characters > _MOST_CHARACTERS:
                self._characters -= self._sessions.popitem(last=False)[1].characters

    def _document_names(self, asked: AskedList) -> list[str]:
        if asked.query is None:
            raise RequestError(422, "query is missing; the log of an experiment needs it.")
        names: dict[str, int] = {}
        for row, name in enumerate(asked.ids or [None] * asked.size):
            if name is None:
                raise RequestError(422, f"documents[{row}] has no id; the log needs it.")
            if names.setdefault(str(name), row) != row:
                raise RequestError(422, f"documents[{row}] has the id of another document.")
        return list(names)

    def _scored(self, asked: AskedList) -> list[Scored]:
        """Return the scores of each model; one that has other features ignores what it lacks."""
        found: list[Scored] = []
        models = [(loaded, loaded.model) for loaded in self._store.models]
        refuse_many(asked.size * sum(model.n_features for _, model in models), self._settings)
        alike = all(
            model.columns == models[0][1].columns and model.coded == models[0][1].coded
            for _, model in models
        )
        settings = self._settings if alike else replace(self._settings, unknown="ignore")
        for loaded, model in models:
            X = found[0].X if alike and found else None
            found.append(score_list(asked, loaded, model, settings, X))
        return found


def _position(asked: ClickRequest, documents: list[str]) -> int:
    """Return the position of the document that was clicked, from 1."""
    if (asked.document is None) == (asked.position is None):
        raise RequestError(422, "give the document that was clicked, or its position.")
    if asked.position is not None:
        if asked.position > len(documents):
            raise RequestError(
                422, f"position must be at most {len(documents)}, the length of the list."
            )
        return asked.position
    try:
        return documents.index(str(asked.document)) + 1
    except ValueError:
        raise RequestError(422, "the document is not in the list of the session.") from None


def _now() -> float:
    return round(time.time(), 3)

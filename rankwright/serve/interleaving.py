"""An experiment: interleaved lists of all models, their log, and the clicks on them."""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from rankwright.serve.handlers import Scored, check_length, check_work, score_list
from rankwright.serve.impressions import ImpressionLog
from rankwright.serve.model_store import ModelStore
from rankwright.serve.monitoring import ServerMetrics
from rankwright.serve.schemas import AskedList, ClickRequest, RequestError
from rankwright.serve.settings import Settings

_MAX_SESSIONS = 100_000  # that accept clicks
_MAX_CHARACTERS = 100_000_000  # in the ids of their documents


@dataclass(slots=True)
class _Session:
    """The documents of an interleaved list, best first, and the positions that were clicked."""

    documents: list[str]
    clicked: set[int]

    @property
    def n_characters(self) -> int:
        """Length of the ids of the documents."""
        return sum(map(len, self.documents))


class Experiment:
    """Interleaves the models of a store, and records clicks."""

    def __init__(self, store: ModelStore, settings: Settings, metrics: ServerMetrics) -> None:
        from rankwright.clicks.interleaving import interleave_scores, interleaving_method

        assert settings.interleave is not None
        assert settings.impressions is not None
        self._store, self._settings, self._metrics = store, settings, metrics
        self._interleave = interleave_scores
        self._method = interleaving_method(settings.interleave, k=settings.interleave_k)
        self._method.check(len(store.models))
        has_versions = len(store.names) < len(store.models)
        self.rankers = [
            loaded.version.pinned if has_versions else loaded.version.name
            for loaded in store.models
        ]
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._n_characters = 0
        self._lock = threading.Lock()
        self._interleave([[1.0, 0.0]] * len(store.models), self._method)  # compiles its kernels
        self.log = ImpressionLog(
            settings.impressions, settings.max_impressions, metrics.count_lost_lines
        )

    def rank(self, asked: AskedList) -> tuple[dict[str, Any], list[Scored]]:
        """Return the interleaved list as an answer, and the scores of each model."""
        check_length(asked, self._settings)
        names = self._document_names(asked)
        scored = self._scored(asked)
        session = uuid.uuid4().hex
        interleaved = self._interleave(
            [one.scores for one in scored], self._method, session=session
        )
        order = interleaved.order.tolist()
        if order:
            self._remember(session, _Session([names[row] for row in order], set()))
            line = interleaved.to_json(str(asked.query), names, self.rankers)
            self.log.append({"session": session, "time": _now(), **line, "clicked": []})
            self._metrics.impressions.inc()
        ids: Any = asked.ids
        ranking = [
            {"rank": rank, "index": row, "id": ids[row], "team": team}
            for rank, (row, team) in enumerate(
                zip(order, interleaved.team.tolist(), strict=True), 1
            )
        ]
        return {"session": session, "query": asked.query, "ranking": ranking}, scored

    def click(self, asked: ClickRequest) -> dict[str, Any]:
        """Record a click; a second click on the same document changes nothing."""
        with self._lock:
            session = self._sessions.get(asked.session)
            if session is None:
                raise RequestError(
                    404, "the session is not known: it is of another server, or too long ago."
                )
            position = _position(asked, session.documents)
            is_new = position not in session.clicked
            session.clicked.add(position)
        if is_new:
            self.log.append({"session": asked.session, "time": _now(), "clicked": [position]})
            self._metrics.clicks.inc()
        return {"session": asked.session, "position": position, "recorded": is_new}

    def close(self) -> None:
        """Write the waiting lines and close the log."""
        self.log.close()

    def _remember(self, name: str, session: _Session) -> None:
        """Store a session for its clicks; forget the oldest sessions if there are too many."""
        with self._lock:
            self._sessions[name] = session
            self._n_characters += session.n_characters
            while len(self._sessions) > _MAX_SESSIONS or self._n_characters > _MAX_CHARACTERS:
                self._n_characters -= self._sessions.popitem(last=False)[1].n_characters

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
        """Return the scores of each model; models with different features ignore unknown ones."""
        models = [(loaded, loaded.model) for loaded in self._store.models]
        check_work([], asked.size * sum(model.n_features for _, model in models), self._settings)
        first = models[0][1]
        is_alike = all(
            model.columns == first.columns and model.coded == first.coded for _, model in models
        )
        settings = self._settings if is_alike else replace(self._settings, unknown="ignore")
        scored: list[Scored] = []
        for loaded, model in models:
            X = scored[0].X if is_alike and scored else None
            scored.append(score_list(asked, loaded, model, settings, X))
        return scored


def _position(asked: ClickRequest, documents: list[str]) -> int:
    """Return the position of the clicked document, from 1."""
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

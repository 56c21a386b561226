"""A request that is refused: its status and a sentence."""

from __future__ import annotations

from rankwright.errors import RankwrightError


class RequestError(RankwrightError):
    """Why a request is refused, with the HTTP status that says so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

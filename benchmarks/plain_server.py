"""The server that one writes first: FastAPI, pydantic, and LightGBM's own predict.

``python benchmarks/plain_server.py MODEL.txt`` prints its port, and answers ``POST /rank``.
"""

from __future__ import annotations

import socket
import sys

import lightgbm
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Document(BaseModel):
    """A document and its features."""

    id: str
    features: list[float]


class RankRequest(BaseModel):
    """The documents of one query."""

    query: int
    documents: list[Document]
    top: int = 10


class Ranked(BaseModel):
    """A document in its place."""

    rank: int
    id: str
    score: float


def application(model: str) -> FastAPI:
    app = FastAPI()
    booster = lightgbm.Booster(model_file=model)

    @app.post("/rank")
    def rank(request: RankRequest) -> list[Ranked]:
        scores = booster.predict(np.array([document.features for document in request.documents]))
        order = np.argsort(-scores, kind="stable")[: request.top]
        return [
            Ranked(rank=place, id=request.documents[row].id, score=scores[row])
            for place, row in enumerate(order, 1)
        ]

    return app


class Server(uvicorn.Server):
    """uvicorn's server, which prints its port."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and print the port."""
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    app = application(sys.argv[1])
    Server(uvicorn.Config(app, port=0, access_log=False, log_level="warning")).run()

"""A plain server for comparison: FastAPI, pydantic and LightGBM's predict.

``python benchmarks/plain_server.py MODEL.txt`` prints its port and answers ``POST /rank``.
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
    """A document with its rank."""

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


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as uvicorn's own sockets
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(application(sys.argv[1]), access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])

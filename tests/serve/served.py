"""Small models, and applications over them, for tests of serving."""

import io
import json

import numpy as np
from small_data import small_data
from starlette.testclient import TestClient

import rankwright
from rankwright.serve.app import Service
from rankwright.serve.model_store import ModelStore
from rankwright.serve.settings import Settings, parse_models

NAMES = tuple("abcdef")
BODY = {"content-type": "application/json"}
NPY = {"content-type": "application/x-npy"}


def save_model(path, name="listnet", seed=0, **parameters):
    """Fit a ranker to small data and save it; return it."""
    data = small_data(seed=seed, feature_names=NAMES)
    fitted = rankwright.ranker(name, **parameters).fit(data)
    fitted.save(path)
    return fitted


def service(*models, **settings):
    """Return the application over model files; files are looked at only when a test says so."""
    settings = {"reload_seconds": 0, "threads": 2, "seconds": 60.0, **settings}
    return Service(ModelStore(parse_models([str(model) for model in models])), Settings(**settings))


def client(*models, headers=None, **settings):
    """Return a client of an application over model files."""
    made = service(*models, **settings)
    found = TestClient(made.middleware, raise_server_exceptions=False, headers=headers)
    found.service = made
    return found


def documents(n, seed=0):
    """Return documents with features in order, and the same as an array."""
    X = np.random.default_rng(seed).normal(size=(n, len(NAMES)))
    return [{"id": f"d{row}", "features": X[row].tolist()} for row in range(n)], X


def sentence(answer, status):
    """Return why a request was refused; its status must be ``status``."""
    assert answer.status_code == status, answer.text
    payload = json.loads(answer.content)
    assert set(payload) == {"error", "request_id"}
    assert payload["request_id"] == answer.headers["x-request-id"]
    return payload["error"]


def npy(X, version=(1, 0)):
    """Return a matrix as NumPy saves it."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, X, version)
    return stream.getvalue()

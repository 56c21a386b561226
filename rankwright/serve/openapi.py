"""The OpenAPI document of the server, generated from its structs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rankwright import __version__
from rankwright.serve.bodies import COUNTS
from rankwright.serve.schemas import RankRequest, Refusal

JSON, NPY = "application/json", "application/x-npy"
_REFUSALS = {
    400: "The body is not JSON or npy, as its content type says.",
    401: "The API key is wrong or missing.",
    404: "There is no such model.",
    408: "The request took too long to arrive.",
    413: "The request, or a list in it, is too long.",
    415: "The body is of a content type that is not accepted.",
    422: "The request does not match the model.",
    503: "Too many requests, or one that takes too long.",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path and its answer; ``asked`` and ``answered`` are the structs of the bodies."""

    method: str
    path: str
    summary: str
    respond: Callable[[Request], Awaitable[Response]]
    asked: type[Any] | None = None
    answered: type[Any] | None = None
    takes_npy: bool = False


def openapi(endpoints: Sequence[Endpoint], models: Sequence[str]) -> dict[str, Any]:
    """Return the OpenAPI document of the endpoints; ``models`` are the names that can be asked."""
    kinds = [kind for one in endpoints for kind in (one.asked, one.answered) if kind is not None]
    references, schemas = msgspec.json.schema_components(
        [*kinds, Refusal], ref_template="#/components/schemas/{name}"
    )
    schema = dict(zip([*kinds, Refusal], references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        about: dict[str, Any] = {"summary": one.summary.rstrip("."), "parameters": []}
        answer = {} if one.answered is None else _json(schema[one.answered])
        about["responses"] = {"200": {"description": "The answer.", **answer}}
        if "{name}" in one.path:
            names = {"type": "string", "enum": list(models)}
            about["parameters"].append(_parameter("name", "path", names))
        if one.asked is not None:
            body = _json(schema[one.asked])
            if one.takes_npy:
                body["content"][NPY] = {"schema": {"type": "string", "format": "binary"}}
                about["parameters"] += _address_parameters(one.asked, schemas["RankRequest"])
            about["requestBody"] = {"required": True, **body}
            for status, text in _REFUSALS.items():
                about["responses"][str(status)] = {"description": text, **_json(schema[Refusal])}
        paths.setdefault(one.path, {})[one.method.lower()] = about
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Rankwright",
            "version": __version__,
            "description": "Rank and score documents with trained models.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {JSON: {"schema": schema}}}


def _address_parameters(asked: type[Any], rank: dict[str, Any]) -> list[dict[str, Any]]:
    names = ("query", *COUNTS) if asked is RankRequest else ("query",)
    return [_parameter(name, "query", rank["properties"][name]) for name in names]


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    parameter = {"name": name, "in": place, "required": place == "path", "schema": schema}
    if place == "query":
        parameter["description"] = "For npy bodies; JSON has it in the body."
    return parameter

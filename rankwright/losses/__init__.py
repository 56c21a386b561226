"""Losses on scores: one file each, named as in the registry."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rankwright.core.types import Loss
from rankwright.errors import UsageError
from rankwright.registry import resolve, unknown


def loss(name: str, **params: Any) -> Loss:
    """Return the loss called ``name``, such as ``listmle``, with the given parameters.

    Examples
    --------
    >>> loss("lambdarank", metric="ndcg@10").truncation
    30
    """
    kind = resolve("losses", name)
    known = [field.name for field in fields(kind)]
    for param in params:
        if param not in known:
            raise UsageError(unknown(f"parameter of loss '{name}'", param, known))
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
    made: Loss = kind(**given)
    return made

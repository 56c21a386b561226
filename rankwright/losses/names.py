"""Losses by their names."""

from __future__ import annotations

from typing import Any

from rankwright.core.parts import params_of, unknown_parameter
from rankwright.core.types import Loss
from rankwright.registry import resolve


def loss(name: str, **params: Any) -> Loss:
    """Return the loss called ``name``, such as ``listmle``, with the given parameters.

    Examples
    --------
    >>> loss("lambdarank", metric="ndcg@10").truncation
    30
    """
    kind = resolve("losses", name)
    known = params_of(kind())
    for param in params:
        if param not in known:
            raise unknown_parameter(f"loss '{name}'", param, known)
    made: Loss = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
    return made

"""Rank from a model file in a small process: ``rankwright.runtime.load(path).rank(X)``."""

from __future__ import annotations

from rankwright.persist.container import ModelFileError as ModelFileError
from rankwright.persist.runtime import RuntimeModel as RuntimeModel
from rankwright.persist.runtime import load as load

__all__ = ["ModelFileError", "RuntimeModel", "load"]

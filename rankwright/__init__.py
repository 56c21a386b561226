"""Rankwright: learning to rank. Names are imported on first use."""

from rankwright.core.namespaces import attach_names

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

"""Models for other systems: one file per target, each export with a proof that scores agree."""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

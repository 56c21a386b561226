"""Compare rankers, cross-validate and tune them; the cache of fits; the demo."""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

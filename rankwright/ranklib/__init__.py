"""RankLib's command line, files and model texts, read and written by Rankwright."""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

"""Losses on scores: every class under its usual name, ``loss`` by registry name, ``from_function``.

For a loss of your own (docs/write-your-own.md): `Part`, `Traits`, `KernelLoss`, ``kernel``,
``document_weight`` and ``order_weight``. Names load on first use.
"""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

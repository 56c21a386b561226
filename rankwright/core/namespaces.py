"""Packages whose public names are imported on first use, as listed in their ``.pyi`` files.

The ``.pyi`` file next to an ``__init__.py`` has one line per public name, which type checkers read
too. `lazy_loader` imports the module of a name when the name is used. This module adds the nearest
name to the error for a name that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable

import lazy_loader


def attach_names(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package, file
        ``__name__`` and ``__file__`` of the package.
    """
    load, list_names, names = lazy_loader.attach_stub(package, file)

    def get_attribute(name: str) -> object:
        if name in names:
            return load(name)
        hint = "" if name.startswith("_") else _did_you_mean(name, names)
        raise AttributeError(f"module '{package}' has no attribute '{name}'{hint}")

    return get_attribute, list_names, names


def _did_you_mean(name: str, names: list[str]) -> str:
    """Return a question with the nearest of the names, regardless of case, or nothing."""
    from difflib import get_close_matches  # only needed for wrong names

    by_lower_case = {public.lower(): public for public in names}
    matches = get_close_matches(name.lower(), by_lower_case, n=1)
    return f"; did you mean {by_lower_case[matches[0]]}?" if matches else ""

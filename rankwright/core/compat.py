"""Does this solver fit this loss? Asked once, before any work, and answered with a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from rankwright.core.types import Traits
from rankwright.errors import IncompatibleError

NEEDS = {
    "hess_vec": "a Hessian-vector product",
    "curvature": "a diagonal of the Hessian",
    "smooth": "a smooth loss",
    "convex": "a convex loss",
    "integrable": "a loss whose gradient integrates to a value",
}


def check_fit(
    solver: str,
    loss: str,
    traits: Traits,
    needs_of: Mapping[str, frozenset[str]],
) -> None:
    """Raise `IncompatibleError` unless ``traits`` has all that ``solver`` needs.

    Parameters
    ----------
    solver, loss
        Names, as the user wrote them.
    traits
        What the loss can do.
    needs_of
        The needs of every solver that could be used instead, ``solver`` included.
    """
    missing = _missing(needs_of[solver], traits)
    if not missing:
        return
    wanted = " and ".join(NEEDS[need] for need in missing)
    others = [name for name, needs in needs_of.items() if not _missing(needs, traits)]
    advice = f"Use {_either(others)}." if others else "No solver here minimises it."
    has = "has none" if len(missing) == 1 and missing[0] in _NOUNS else "is not one"
    raise IncompatibleError(f"{solver} needs {wanted}; loss '{loss}' {has}. {advice}")


_NOUNS = frozenset({"hess_vec", "curvature"})


def _missing(needs: frozenset[str], traits: Traits) -> list[str]:
    return [need for need in NEEDS if need in needs and not getattr(traits, need)]


def _either(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} or {names[-1]}"

"""Does this solver fit this loss? Asked once, before any work, and answered with a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from rankwright.core.parameters import either
from rankwright.core.types import Loss, Solver, Traits
from rankwright.errors import IncompatibleError

NEEDS = {
    "hess_vec": "a Hessian-vector product",
    "curvature": "a diagonal of the Hessian",
    "smooth": "a smooth loss",
    "convex": "a convex loss",
    "convex_parts": "a convex loss, or a difference of convex ones",
    "integrable": "a loss whose gradient integrates to a value",
    "targets": "a loss that is a minimum over targets",
    "columns": "steps along single features",
}


def check_fit(solver: str, loss: Loss, solvers: Mapping[str, type[Solver]]) -> None:
    """Raise `IncompatibleError` unless ``loss`` has all that ``solver`` needs.

    Parameters
    ----------
    solver
        Name of the solver, as in ``solvers``.
    loss
        The loss; it goes by the name of its file.
    solvers
        Every solver that could be used, by name.
    """
    missing = _missing(solvers[solver].needs, loss.traits)
    if not missing:
        return
    wanted = " and ".join(NEEDS[need] for need in missing)
    others = [name for name, other in solvers.items() if not _missing(other.needs, loss.traits)]
    advice = f"Use {either(others)}." if others else "No solver here minimises it."
    has = "has none" if missing[0] in _NOUNS else "is not one"
    if len(missing) > 1:
        has = "offers neither" if len(missing) == 2 else "offers none of them"
    name = type(loss).__module__.rpartition(".")[2]
    raise IncompatibleError(f"{solver} needs {wanted}; loss '{name}' {has}. {advice}")


_NOUNS = frozenset({"hess_vec", "curvature", "columns"})


def _missing(needs: frozenset[str], traits: Traits) -> list[str]:
    return [need for need in NEEDS if need in needs and not getattr(traits, need)]

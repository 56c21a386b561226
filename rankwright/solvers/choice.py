"""Choose the solver of a loss, and check that it supports the loss.

This happens once, at the start of a fit. A solver that does not support the loss raises an error
that recommends another one.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

from rankwright import registry
from rankwright.core.parameters import (
    both,
    check_parameters,
    either,
    params_of,
    part_name,
    resolve_part,
    with_params,
)
from rankwright.core.types import Loss, Traits, offers
from rankwright.errors import IncompatibleError, PluginError, UsageError

NEEDS = {
    "hess_vec": "a Hessian-vector product",
    "grad_curv": "a diagonal of the Hessian",
    "grad_queries": "gradients of single queries",
    "smooth": "a smooth loss",
    "convex": "a convex loss",
    "shift_invariant": "a loss that is unchanged by shifts of a query's scores",
    "convex_parts": "a convex loss, or a difference of convex ones",
    "integrable": "a loss whose gradient integrates to a value",
    "targets": "a loss that is a minimum over targets",
    "by_column": "steps along single features",
    "fixed_targets": "a squared distance to fixed targets",
}
_NOUNS = frozenset({"hess_vec", "grad_curv", "by_column", "grad_queries"})
_TRAITS = frozenset(field.name for field in fields(Traits))


def default_solver(traits: Traits) -> str:
    """Return the name of the solver that suits a loss: the rule behind ``solver=None``."""
    if traits.smooth and traits.integrable and not traits.stochastic:
        return "lbfgs"
    return "online" if traits.integrable and not traits.stochastic else "sgd"


def choose_solver(
    given: Any,
    loss: Loss,
    *,
    max_iter: int | str = "auto",
    tol: float | str = "auto",
    random_state: int = 0,
) -> Any:
    """Return the solver of a linear model.

    Parameters
    ----------
    given : solver, str or None
        A solver object, the name of a solver with default parameters, or None for `default_solver`.
    max_iter, tol
        Parameters of a solver given by name; "auto" keeps its defaults.
    random_state : int
        Seed of a solver given by name, if it has one.
    """
    named = given is None or isinstance(given, str)
    traits = loss.traits
    solver = resolve_part("solvers", default_solver(traits) if given is None else given)
    if not hasattr(solver, "solve"):
        name = part_name("solvers", solver)
        raise UsageError(
            f"{name} does not solve for the weights of a linear model; give a solver, such as "
            "'lbfgs', or None."
        )
    limits = {"max_iter": max_iter, "tol": tol}
    changes = {field: value for field, value in limits.items() if value != "auto"}
    if changes and not named:
        values = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        raise UsageError(
            f"{either(list(changes))} applies only to solvers by name; pass it to the solver "
            f"object: {type(solver).__name__}({values})."
        )
    if named and "random_state" in params_of(solver):
        changes["random_state"] = random_state
    if changes:
        solver = with_params(solver, changes)
    check_parameters(solver)
    check_fit(solver, loss)
    if traits.stochastic:
        warn_of_unused_iterations(solver, loss)
    return solver


def warn_of_unused_iterations(solver: Any, loss: Loss) -> None:
    """Warn if a loss changes with the iteration but the solver has only one objective."""
    if not hasattr(solver, "random_state"):  # solvers without one make no passes
        warnings.warn(
            f"{part_name('solvers', solver)} minimises one fixed objective and never calls "
            f"set_iteration, so loss '{part_name('losses', loss)}' stays as it is in iteration 0, "
            "its sample or schedule included; use solver='sgd' for a new one in each pass.",
            stacklevel=3,
        )


def solver_needs(solver: Any) -> frozenset[str]:
    """Return the traits, and the methods of the bound loss, that a solver needs."""
    needs: frozenset[str] = getattr(solver, "needs", frozenset())
    return needs


def steps_by_column(solver: Any) -> bool:
    """Return whether a solver steps along single features and supports an l1 penalty."""
    return bool(getattr(solver, "by_column", False))


def methods_needed(solver: Any) -> list[str]:
    """Return the methods of the bound loss, besides value and grad, that a solver needs."""
    return sorted(solver_needs(solver) - _TRAITS - {"convex_parts", "fixed_targets"})


def check_fit(solver: Any, loss: Loss) -> None:
    """Raise `IncompatibleError` unless ``loss`` has the traits and methods of ``solver.needs``."""
    missing = missing_needs(solver_needs(solver), loss)
    if missing:
        other = _suitable_solver(loss)
        advice = "No solver here minimises it." if other is None else f"Use {other}."
        raise IncompatibleError(lacking(part_name("solvers", solver), missing, loss, advice))


def _suitable_solver(loss: Loss) -> str | None:
    """Return the solver to recommend for a loss, without importing further solvers."""
    traits = loss.traits
    has_planes = traits.convex and not traits.smooth and traits.shift_invariant
    exact = ("bundle",) if has_planes else ()
    names: tuple[str, ...] = (*exact, default_solver(traits), *registry.names("solvers"))
    for name in dict.fromkeys(names):
        try:
            solver = registry.resolve("solvers", name)
        except PluginError:
            continue
        if not missing_needs(solver_needs(solver), loss):
            return name
    return None


def missing_needs(needs: frozenset[str], loss: Loss) -> list[str]:
    """Return those of the ``needs`` that the loss does not meet."""
    described = [need for need in NEEDS if need in needs]
    undescribed = sorted(needs - NEEDS.keys())
    return [need for need in (*described, *undescribed) if not _meets(loss, need)]


def _meets(loss: Loss, need: str) -> bool:
    if need == "convex_parts":
        return loss.traits.convex or offers(loss, "concave_part")
    if need == "fixed_targets":
        return hasattr(loss, need)
    if need in _TRAITS:
        return bool(getattr(loss.traits, need))
    return offers(loss, need)


def lacking(who: str, missing: list[str], loss: Loss, advice: str) -> str:
    """Return the error message for a loss that lacks something that ``who`` needs."""
    wanted = both([NEEDS.get(need, need) for need in missing])
    has = "has none" if missing[0] in _NOUNS else "is not one"
    if len(missing) > 1:
        has = "offers neither" if len(missing) == 2 else "offers none of them"
    return f"{who} needs {wanted}; loss '{part_name('losses', loss)}' {has}. {advice}"

"""Methods of `reproducibility.topics` by the names that experiment files have for them.

    domination   domination loss by coordinate descent, over a path of l1 penalties
    pamir        passive-aggressive steps on sampled pairs
    linear       any smooth loss with an l2 penalty, and so no weight at 0

Beside its own parameters and those of its loss, a setting may say ``within`` and ``min_zero``: how
`reproducibility.topics.fit_topics` chooses among what the method offers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from rankwright import registry
from rankwright.core.blas import one_blas_thread
from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from reproducibility.topic_choice import Candidate
from reproducibility.topics import SampledPairs, SparseDomination, TopicMethod
from rankwright.losses import loss
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.domination import Domination
from rankwright.models.linear_problem import LinearProblem
from rankwright.registry import unknown
from rankwright.solvers.choice import choose_solver


@dataclass(frozen=True)
class DenseLinear:
    """A loss with a ridge; the candidates are its strengths.

    Parameters
    ----------
    loss : Loss
    l2 : tuple of floats
        Falling; each is solved from the weights of the one before.
    solver, tol, max_iter
        A solver of linear models, such as tron or lbfgs, and when it stops.
    """

    loss: Loss
    l2: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    solver: str = "tron"
    tol: float = 1e-3
    max_iter: int = 100

    def share(self, X: Any, n_jobs: int | None) -> Any:  # noqa: ARG002
        """Return X by rows; a CSR matrix is taken as it is."""
        return X if X.format == "csr" else sparse.csr_array(X)

    def candidates(
        self,
        shared: Any,
        data: RankingData,
        number: int,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """Yield the solution for each strength."""
        bound: Any = self.loss.bind(data, n_jobs=1)
        solver = registry.resolve("solvers", self.solver)(self.tol, self.max_iter)
        w = np.zeros(shared.shape[1])
        for l2 in self.l2:
            problem = LinearProblem(
                shared,
                data.indptr,
                bound,
                float(order_weight(data).sum()),
                l2=l2,
                deviation=np.ones(len(w)),
                document_weight=document_weight(data),
                traits=self.loss.traits,
                n_jobs=1,
            )
            with one_blas_thread():
                result = solver.solve(problem, w)
            w = result.w
            yield Candidate(w, {"l2": l2}, result.optimality)


METHODS: dict[str, type[Any]] = {
    "domination": SparseDomination,
    "pamir": SampledPairs,
    "linear": DenseLinear,
}


CHOICE = ("within", "min_zero")


def topic_method(
    name: str, *, seed: int = 0, **setting: Any
) -> tuple[TopicMethod, dict[str, float]]:
    """Return the method called ``name``, and what its setting says on the choice.

    Parameters
    ----------
    **setting
        Such as ``loss="pair_hinge", pairs="query", l2=[0.1, 0.01]``. ``loss`` is for ``linear``
        alone, domination by default.
    """
    if name not in METHODS:
        raise UsageError(unknown("method for topics", name, METHODS))
    kind = METHODS[name]
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in setting.items()}
    choice = {key: float(given.pop(key)) for key in CHOICE if key in given}
    own = {field.name for field in fields(kind)} - {"loss", "seed"}
    mine = {key: given.pop(key) for key in own & given.keys()}
    if name == "pamir":
        for stray in given:
            raise UsageError(unknown("parameter of method 'pamir'", stray, (*own, *CHOICE)))
        return SampledPairs(**mine, seed=seed), choice
    made = kind(loss=loss(given.pop("loss", "domination"), **given), **mine)
    if name == "linear":
        choose_solver(made.solver, made.loss)
    elif not isinstance(made.loss, Domination):
        raise UsageError("method 'domination' has its own loss; another goes with 'linear'.")
    return made, choice

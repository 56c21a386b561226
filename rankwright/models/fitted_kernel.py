"""What a kernel model has learnt: landmarks, their weights, and likeness to them.

    s(x) = sum_j a_j k(x, z_j)

with landmarks z_j among the training documents; `rankwright.models.kernel` finds the a_j.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.blas import one_blas_thread
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix, SolveResult
from rankwright.errors import DataError, UsageError
from rankwright.models.kernel_matrix import dense, divided, named_kernel
from rankwright.models.missing import filled

_ROWS = 1024  # of a block: the same whatever the number of threads, and so are the bytes

KernelFunction = Callable[[Any, Any], AnyArray]


@dataclass(frozen=True, repr=False)
class FittedKernel:
    """Landmarks and their weights a; with a precomputed kernel, the landmarks' columns.

    ``solution`` tells how the solver ended, where the model was just fitted.
    """

    kernel: str | KernelFunction
    gamma: float
    degree: int
    coef0: float
    points: FloatMatrix
    columns: I64
    weights: F64
    deviation: F64
    fill: F64 | None
    n_features: int
    n_documents: int
    solution: SolveResult | None = field(default=None, compare=False)

    @property
    def exact(self) -> bool:
        """Whether every training document is a landmark."""
        return len(self.weights) == self.n_documents

    def __repr__(self) -> str:
        name = (
            getattr(self.kernel, "__name__", "function") if callable(self.kernel) else self.kernel
        )
        if self.exact:
            return f"{name} kernel, exact: all {self.n_documents} documents"
        return f"{name} kernel, Nystroem: {len(self.weights)} of {self.n_documents} documents"

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        one = self.weights[:, None]
        return self.features(filled(X, self.fill, "kernel"), one, n_jobs=n_jobs).ravel()

    def features(self, X: FloatMatrix, P: F64, *, n_jobs: int | None = None) -> F64:
        """Return the likeness of each row to the landmarks, times P; X has no gaps."""
        out = np.empty((X.shape[0], P.shape[1]))

        def block(lo: int, hi: int) -> None:
            out[lo:hi] = self.likeness(X[lo:hi]) @ P

        with one_blas_thread():
            map_ranges(block, row_ranges(X.shape[0], _ROWS), n_jobs=n_jobs)
        return out

    def likeness(self, X: FloatMatrix) -> F64:
        """Return k of each row of X and each landmark."""
        if self.kernel == "precomputed":
            return np.asarray(dense(X)[:, self.columns], np.float64)
        A = divided(X, self.deviation)
        if callable(self.kernel):
            k = np.asarray(self.kernel(A, self.points), np.float64)
            if k.shape != (A.shape[0], self.points.shape[0]):
                raise DataError(
                    f"the kernel function returned shape {k.shape} for {A.shape[0]} and "
                    f"{self.points.shape[0]} rows."
                )
            return k
        name, gamma, degree, coef0 = self.kernel, self.gamma, self.degree, self.coef0
        return named_kernel(str(name), A, self.points, gamma=gamma, degree=degree, coef0=coef0)

    def contributions(self, X: FloatMatrix) -> F64:  # noqa: ARG002
        """Refuse: a kernel's score is no sum over features."""
        raise UsageError(
            "a kernel model's score is not a sum over features; use permutation importance."
        )

    def arrays(self) -> dict[str, AnyArray]:
        """Return landmarks, weights, and how features are scaled."""
        if callable(self.kernel):
            raise UsageError(
                "a model with a kernel function of your own cannot be saved: model files hold no "
                "code. Use a kernel by name, or kernel='precomputed'."
            )
        numbers = np.array([self.gamma, self.degree, self.coef0, self.n_documents])
        arrays = {"weights": self.weights, "deviation": self.deviation, "numbers": numbers}
        arrays["columns"] = self.columns
        if self.fill is not None:
            arrays["fill"] = self.fill
        points = self.points
        if isinstance(points, np.ndarray):
            return {**arrays, "points": points}
        begin, columns = points.indptr.astype(np.int64), points.indices.astype(np.int64)
        places = {"points_begin": begin, "points_columns": columns}
        return {**arrays, **places, "points_values": points.data}

    def texts(self) -> dict[str, str]:
        """Return the name of the kernel."""
        return {"kernel": str(self.kernel)}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedKernel:
        """Build the fitted model from its own arrays and texts."""
        points: Any = arrays.get("points")
        if points is None:
            parts = arrays["points_values"], arrays["points_columns"], arrays["points_begin"]
            points = sparse.csr_array(parts, shape=(len(parts[2]) - 1, n_features))
        gamma, degree, coef0, n_documents = arrays["numbers"].tolist()
        return cls(
            kernel=texts["kernel"],
            gamma=gamma,
            degree=int(degree),
            coef0=coef0,
            points=points,
            columns=arrays["columns"],
            weights=arrays["weights"],
            deviation=arrays["deviation"],
            fill=arrays.get("fill"),
            n_features=n_features,
            n_documents=int(n_documents),
        )

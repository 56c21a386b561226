"""Kernel scores s(x) = sum_j a_j k(x, z_j) + b under any loss: non-linear rankings from few data.

The scores are a function f in the space of the kernel and an intercept b that minimise

    J(f, b) = sum_q weight_q loss_q(f(x_i) + b, i in q) / W + l2/2 |f|^2                       (1)

and the minimiser is a sum over the training documents (representer theorem). With landmarks z_j,
K_nm = k(x_i, z_j) and K_mm = k(z_i, z_j) = Q L Q',

    Phi = K_nm P,    P = Q L^-1/2,    s = Phi w + b,    a = P w,    |f|^2 = |w|^2              (2)

makes (1) the problem of a linear model on Phi (`rankwright.models.linear`), for any loss and any
solver; b is 0 if the loss is shift-invariant.

Up to ``exact_below`` documents, all documents are landmarks and (2) is equivalent to (1). Beyond, f
is limited to the span of ``n_landmarks`` sampled documents (Nystroem: `williams2001nystroem`). They
are sampled from an order that depends only on the content of the data. The ``repr`` of the fitted
model tells whether it is exact.

Kernels are computed here and not by `sklearn.metrics.pairwise`, so that ranking from a model file
does not import scikit-learn (`rankwright.persist.runtime`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from rankwright.core.checks import ArraySpec
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.parameters import (
    Auto,
    Count,
    Missing,
    NonNegative,
    Positive,
)
from rankwright.core.products import one_blas_thread
from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray, FloatMatrix, Loss, Round, SolveResult
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.base import document_weight
from rankwright.models.linear import FittedLinear, Linear, deviations
from rankwright.models.missing import fill_values, filled
from rankwright.models.schema import FILL, ModelPart, Schema

KernelFunction = Callable[[Any, Any], AnyArray]
_FEW_COLUMNS = 1000
_ROWS = 1024  # of a block; fixed, so that results do not depend on the number of threads

# --- kernel matrices -------------------------------------------------------------------------


def named_kernel(kernel: str, A: Any, B: Any, *, gamma: float, degree: float, coef0: float) -> F64:
    """Return the kernel of each row of ``A`` with each row of ``B``, dense or sparse."""
    if A.shape[1] <= _FEW_COLUMNS:  # the same bits for sparse and dense data
        A, B = dense(A), dense(B)
    products = dense(A @ B.T)
    if kernel == "linear":
        return products
    if kernel == "polynomial":
        return np.asarray((gamma * products + coef0) ** degree, np.float64)
    distance = _squares(A)[:, None] + _squares(B)[None, :] - 2.0 * products
    return np.asarray(np.exp(-gamma * np.maximum(distance, 0.0)), np.float64)


def inverse_root(K: F64) -> F64:
    """Return P with K P P' K = K, for a symmetric positive semidefinite K.

    If K = Q L Q', it is Q L^-1/2 without the directions whose eigenvalue is 0 up to rounding.
    """
    if not np.isfinite(K).all():
        raise DataError("the kernel gives values that are not finite.")
    size = float(np.abs(K).max(initial=0.0))
    if float(np.abs(K - K.T).max(initial=0.0)) > 1e-8 * size:
        raise DataError(
            "the kernel matrix of the training documents is not symmetric; with 'precomputed', "
            "column j must belong to the same document as row j."
        )
    eigenvalues, Q = eigh(0.5 * (K + K.T), check_finite=False)
    top = float(eigenvalues[-1])
    if eigenvalues[0] < -1e-6 * max(top, size):
        raise DataError(
            f"the kernel is not positive: its matrix has the eigenvalue {eigenvalues[0]:.3g}, and "
            f"the largest is {top:.3g}."
        )
    columns = eigenvalues > max(top, 0.0) * len(K) * np.finfo(np.float64).eps
    if not columns.any():
        return np.zeros((len(K), 1))  # all documents are equal: every score is 0
    return np.ascontiguousarray(Q[:, columns] / np.sqrt(eigenvalues[columns]))


def divided(X: FloatMatrix, deviation: F64) -> Any:
    """Return X with each column divided by its deviation, in float64."""
    if isinstance(X, np.ndarray):
        return X / deviation
    scaled = X.astype(np.float64)
    scaled.data /= deviation[scaled.indices]
    return scaled


def dense(X: Any) -> F64:
    """Return a dense or sparse matrix as an array of float64."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)


def _squares(X: Any) -> F64:
    """Return the squared length of each row."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X), np.float64)
    return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()


# --- the fitted model ------------------------------------------------------------------------

_COMMON = (
    ArraySpec("weights", "float64", ("landmarks",)),
    ArraySpec("intercept", "float64", (1,)),
    ArraySpec("deviation", "float64", ("features",), low=np.finfo(np.float64).tiny),
    ArraySpec("numbers", "float64", (4,), high=2**53),
    FILL,
)
_FLOATS = "float32 float64"
_LANDMARKS = {
    "precomputed": (ArraySpec("columns", "int64", ("landmarks",), below="features"),),
    "dense": (ArraySpec("points", _FLOATS, ("landmarks", "features")),),
    "sparse": (
        ArraySpec("points_begin", "int64", ("landmarks+1",), offsets="values"),
        ArraySpec("points_columns", "int64", ("values",), below="features"),
        ArraySpec("points_values", _FLOATS, ("values",)),
    ),
}


@dataclass(frozen=True, repr=False)
class FittedKernel:
    """Landmarks and their weights.

    ``params`` are gamma, degree and coef0 of the kernel. ``landmarks`` are rows of scaled features,
    or columns of a precomputed kernel. ``solution`` is the result of the solver, for a model that
    was just fitted.
    """

    kernel: str | KernelFunction
    params: dict[str, float]
    landmarks: Any
    weights: F64
    deviation: F64
    fill: F64 | None
    n_features: int
    n_documents: int
    intercept: float = 0.0
    solution: SolveResult | None = field(default=None, compare=False)

    @property
    def exact(self) -> bool:
        """Whether every training document is a landmark."""
        return len(self.weights) == self.n_documents

    def __repr__(self) -> str:
        name = self.kernel
        if callable(name):
            name = getattr(name, "__name__", "function")
        if self.exact:
            return f"{name} kernel, exact: all {self.n_documents} documents"
        return f"{name} kernel, Nystroem: {len(self.weights)} of {self.n_documents} documents"

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row."""
        X = filled(X, self.fill, "kernel")
        return self.features(X, self.weights[:, None], n_jobs=n_jobs).ravel() + self.intercept

    def features(self, X: FloatMatrix, P: F64, *, n_jobs: int | None = None) -> F64:
        """Return the kernel of each row and each landmark, times P; X has no missing values."""
        out = np.empty((X.shape[0], P.shape[1]))

        def block(lo: int, hi: int) -> None:
            out[lo:hi] = self.kernel_matrix(X[lo:hi]) @ P

        with one_blas_thread():
            map_ranges(block, row_ranges(X.shape[0], _ROWS), n_jobs=n_jobs)
        return out

    def kernel_matrix(self, X: FloatMatrix) -> F64:
        """Return the kernel of each row of X and each landmark."""
        if self.kernel == "precomputed":
            return dense(X)[:, self.landmarks]
        A, B = divided(X, self.deviation), self.landmarks
        if not callable(self.kernel):
            return named_kernel(self.kernel, A, B, **self.params)
        K = np.asarray(self.kernel(A, B), np.float64)
        if K.shape != (A.shape[0], B.shape[0]):
            raise DataError(
                f"the kernel function returned shape {K.shape} for {A.shape[0]} and {B.shape[0]} "
                "rows."
            )
        return K

    def contributions(self, X: FloatMatrix) -> F64:  # noqa: ARG002
        """Refuse: the score of a kernel model is not a sum over features."""
        raise UsageError(
            "a kernel model's score is not a sum over features; use permutation importance."
        )

    def arrays(self) -> dict[str, AnyArray]:
        """Return weights, landmarks, and the scaling of features."""
        if callable(self.kernel):
            raise UsageError(
                "a model whose kernel is a function cannot be saved: model files hold no code. Use "
                "a kernel by name, or kernel='precomputed'."
            )
        arrays = {
            "weights": self.weights,
            "intercept": np.array([self.intercept]),
            "deviation": self.deviation,
            "numbers": np.array([*self.params.values(), self.n_documents]),
        }
        if self.fill is not None:
            arrays["fill"] = self.fill
        points = self.landmarks
        if isinstance(points, np.ndarray):
            arrays["columns" if self.kernel == "precomputed" else "points"] = points
        else:
            arrays["points_begin"] = points.indptr.astype(np.int64)
            arrays["points_columns"] = points.indices.astype(np.int64)
            arrays["points_values"] = points.data
        return arrays

    def texts(self) -> dict[str, str]:
        """Return the name of the kernel."""
        return {"kernel": str(self.kernel)}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedKernel:
        """Check the arrays and texts of a model and build it."""
        form = "sparse" if "points_begin" in arrays else "dense"
        names: tuple[str, ...] = ("rbf", "linear", "polynomial")
        if texts.get("kernel") == "precomputed":
            form, names = "precomputed", ("precomputed",)
        schema = Schema((*_COMMON, *_LANDMARKS[form]), {"kernel": names})
        schema.check(arrays, texts, features=n_features)
        if form == "sparse":
            parts = arrays["points_values"], arrays["points_columns"], arrays["points_begin"]
            landmarks: Any = sparse.csr_array(parts, shape=(len(parts[2]) - 1, n_features))
        else:
            landmarks = arrays["columns" if form == "precomputed" else "points"]
        *params, n_documents = arrays["numbers"].tolist()
        return cls(
            texts["kernel"],
            dict(zip(("gamma", "degree", "coef0"), params, strict=True)),
            landmarks,
            arrays["weights"],
            arrays["deviation"],
            arrays.get("fill"),
            n_features,
            int(n_documents),
            float(arrays["intercept"][0]),
        )


# --- the model -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Kernel(ModelPart):
    """A weighted sum of kernel values with training documents; exact for few documents.

    Parameters
    ----------
    kernel : "rbf", "linear", "polynomial", "precomputed" or a function
        exp(-gamma |x - z|^2), x'z, (gamma x'z + coef0)^degree; X itself, with a row per document
        and a column per training document; or f(A, B), which returns a matrix of the rows of A x
        the rows of B.
    gamma : float or "auto"
        "auto" is 0.1 over the number of features. On LETOR's validation sets it ranks better than
        the usual 1 over it (RankSVM: OHSUMED .454 against .432, MQ2008 .496 against .488, mean
        NDCG@10 of five folds).
    degree, coef0
        Degree and constant of the polynomial kernel.
    l2 : float or "auto"
        Penalty on the squared norm; "auto" tries the penalties of linear models and selects the
        best on the validation set. The default suits losses that are a mean over a query's pairs
        or ranks; a sum over pairs needs about 1,000 times as much.
    scale : bool
        Divide features by their standard deviations first.
    missing : None, "mean" or "zero"
        Replacement of missing values; None refuses them.
    max_iter, tol
        Limit and tolerance of the solver; "auto" is the solver's default.
    exact_below : int
        Up to this number of documents, all are landmarks.
    n_landmarks : int
        Number of landmarks that are sampled from more documents.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="pair_hinge", model=rw.models.Kernel(gamma=0.5))
    Ranker(loss='pair_hinge', model=Kernel(gamma=0.5))
    """

    takes_solver: ClassVar[bool] = True
    fitted_class: ClassVar[Any] = FittedKernel

    kernel: Literal["rbf", "linear", "polynomial", "precomputed"] | KernelFunction = "rbf"
    gamma: Positive | Auto = "auto"
    degree: Count = 3
    coef0: NonNegative = 1.0
    l2: NonNegative | Auto = 1e-3
    scale: bool = True
    missing: Missing = None
    max_iter: Count | Auto = "auto"
    tol: NonNegative | Auto = "auto"
    exact_below: int = 2000
    n_landmarks: Count = 500

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        solver: Any = None,
        start: FittedKernel | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each penalty; the first starts from ``start``, with equal landmarks."""
        rows, ordered = in_content_order(data, n_jobs=n_jobs)
        n = data.n_documents
        sample = np.arange(n)
        if n > self.exact_below:
            rng = stream(random_state, "kernel", "landmarks")
            sample = np.sort(rng.choice(n, min(n, self.n_landmarks), replace=False))
        if self.kernel == "precomputed":
            if data.n_features != n:
                raise DataError(
                    "kernel='precomputed' needs a column for each training document: X has "
                    f"{n} rows and {data.n_features} columns."
                )
            fill, deviation = None, np.ones(n)
            X = filled(ordered.X, fill, "kernel")
            # Columns follow the rows of the caller, which ``data`` may have sorted by query.
            landmarks = (rows if data.row is None else data.row[rows])[sample]
        else:
            fill = fill_values(ordered.X, self.missing)
            X = filled(ordered.X, fill, "kernel")
            deviation = deviations(X, document_weight(ordered), scale=self.scale)
            landmarks = divided(X[sample], deviation)
        gamma = 0.1 / data.n_features if self.gamma == "auto" else self.gamma
        params = {"gamma": float(gamma), "degree": self.degree, "coef0": self.coef0}
        zeros = np.zeros(len(sample))
        fitted = FittedKernel(
            self.kernel, params, landmarks, zeros, deviation, fill, data.n_features, n
        )
        with one_blas_thread():
            P = inverse_root(fitted.kernel_matrix(X[sample]))
        Phi = fitted.features(X, P, n_jobs=n_jobs)
        if valid is not None:
            valid_Phi = fitted.features(filled(valid.X, fill, "kernel"), P, n_jobs=n_jobs)
            valid = valid._replace(X=valid_Phi, feature_names=None)
        linear = Linear(l2=self.l2, scale=False, max_iter=self.max_iter, tol=self.tol)
        for round_ in linear.rounds(
            loss,
            ordered._replace(X=Phi, feature_names=None),
            valid,
            solver=solver,
            start=None if start is None else _linear_start(start, fitted, P),
            random_state=random_state,
            n_jobs=n_jobs,
        ):
            yield replace(round_, model=partial(_with_weights, fitted, P, round_.model))


def _with_weights(fitted: FittedKernel, P: F64, build: Callable[[], Any]) -> FittedKernel:
    """Return the model with the weights a of (2)."""
    linear = build()
    return replace(
        fitted, weights=P @ linear.coef, intercept=linear.intercept, solution=linear.solution
    )


def _linear_start(start: FittedKernel, fitted: FittedKernel, P: F64) -> FittedLinear:
    """Return the weights w of (2) that give the scores of ``start``."""
    same = start.landmarks.shape == fitted.landmarks.shape
    if not (same and (dense(start.landmarks) == dense(fitted.landmarks)).all()):
        raise UsageError("init_model must be a kernel model fitted to the same documents.")
    length = np.linalg.norm(P, axis=0) ** 2  # 1 / L, because the columns of Q have length 1
    w = (P.T @ start.weights) / np.where(length > 0.0, length, 1.0)
    return FittedLinear(w, intercept=start.intercept)

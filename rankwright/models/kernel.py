"""Kernel scores s(x) = sum_j a_j k(x, z_j) under any loss: curved rankings from few data.

The scores minimise, over functions f of the kernel's space,

    J(f) = sum_q weight_q loss_q(f(x_i), i in q) / W + l2/2 |f|^2                             (1)

whose minimiser is a sum over the training documents (the representer theorem). With z_j the
**landmarks**, K_nm = k(x_i, z_j), K_mm = k(z_i, z_j) = Q L Q' and

    Phi = K_nm P,    P = Q L^-1/2,    s = Phi w,    a = P w,    |f|^2 = |w|^2                  (2)

(1) is a linear problem in w, and any loss and solver of `rankwright.models.linear` serves it
unchanged. Up to ``exact_below`` documents each is a landmark and (2) is (1) itself; beyond, it is
(1) over the functions that ``n_landmarks`` documents span, sampled by the seed among all in an
order fixed by what they hold (Nystroem: `williams2001nystroem`). ``repr`` of the fitted model and
the progress say which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from rankwright.core.checks import ArraySpec
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.parameters import Part, check_above_zero
from rankwright.core.products import one_blas_thread
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Callback, FloatMatrix, Loss, SolveResult
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.base import document_weight
from rankwright.models.linear import FittedLinear, Linear, deviations, fill_values, filled
from rankwright.models.schema import FILL, Schema
from rankwright.registry import unknown

# --- kernel matrices by name, and their inverse roots ----------------------------------------
# Kernel (Gram) matrices between documents: kernels by name, and their inverse roots.


KERNELS = ("rbf", "linear", "polynomial", "precomputed")
_FEW_COLUMNS = 1000


def named_kernel(kernel: str, A: Any, B: Any, *, gamma: float, degree: int, coef0: float) -> F64:
    """Return k of each row of ``A`` and each row of ``B``, dense or sparse."""
    if A.shape[1] <= _FEW_COLUMNS:  # the same bits from sparse data as from dense
        A, B = dense(A), dense(B)
    products = dense(A @ B.T)
    if kernel == "linear":
        return products
    if kernel == "polynomial":
        return np.asarray((gamma * products + coef0) ** degree, np.float64)
    distance = _squares(A)[:, None] + _squares(B)[None, :] - 2.0 * products
    return np.asarray(np.exp(-gamma * np.maximum(distance, 0.0)), np.float64)


def inverse_root(K: F64) -> F64:
    """Return P with K P P' K = K, for a symmetric K without negative directions.

    With K = Q L Q' it is Q L^-1/2, without the directions that have no extent but for rounding.
    """
    if not np.isfinite(K).all():
        raise DataError("the kernel gives values that are not finite.")
    size = float(np.abs(K).max(initial=0.0))
    if float(np.abs(K - K.T).max(initial=0.0)) > 1e-8 * size:
        raise DataError(
            "the kernel matrix of the training documents is not symmetric; with 'precomputed', "
            "column j must belong to the same document as row j."
        )
    extent, Q = eigh(0.5 * (K + K.T), check_finite=False)
    top = float(extent[-1])
    if extent[0] < -1e-6 * max(top, size):
        raise DataError(
            f"the kernel is not positive: its matrix has the eigenvalue {extent[0]:.3g} beside "
            f"{top:.3g}."
        )
    kept = extent > max(top, 0.0) * len(K) * np.finfo(np.float64).eps
    if not kept.any():
        return np.zeros((len(K), 1))  # all documents alike: every score is 0
    return np.ascontiguousarray(Q[:, kept] / np.sqrt(extent[kept]))


def divided(X: FloatMatrix, deviation: F64) -> Any:
    """Return X with each column divided by its deviation, in float64."""
    if isinstance(X, np.ndarray):
        return X / deviation
    scaled = X.astype(np.float64)
    scaled.data /= deviation[scaled.indices]
    return scaled


def dense(X: Any) -> F64:
    """Return X as an array, whatever it is."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)


def _squares(X: Any) -> F64:
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X), np.float64)
    return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()


# --- the fitted model ------------------------------------------------------------------------
# What a kernel model has learnt: landmarks, their weights, and kernel values with them.
#
#     s(x) = sum_j a_j k(x, z_j)
#
# with landmarks z_j among the training documents; `rankwright.models.kernel` finds the a_j.


_ROWS = 1024  # of a block: the same whatever the number of threads, and so are the bytes
_COMMON = (
    ArraySpec("weights", "float64", ("landmarks",)),
    ArraySpec("deviation", "float64", ("features",), low=np.finfo(np.float64).tiny),
    ArraySpec("numbers", "float64", (4,), high=2**53),
    ArraySpec("intercept", "float64", (1,), optional=True),
    FILL,
)
_NO_COLUMNS = ArraySpec("columns", "int64", (0,))
_FLOATS = "float32 float64"
_NAMED = {"kernel": tuple(name for name in KERNELS if name != "precomputed")}
_SCHEMAS = {
    "dense": Schema(
        (*_COMMON, _NO_COLUMNS, ArraySpec("points", _FLOATS, ("landmarks", "features"))), _NAMED
    ),
    "sparse": Schema(
        (
            *_COMMON,
            _NO_COLUMNS,
            ArraySpec("points_begin", "int64", ("landmarks+1",), offsets="values"),
            ArraySpec("points_columns", "int64", ("values",), below="features"),
            ArraySpec("points_values", _FLOATS, ("values",)),
        ),
        _NAMED,
    ),
    "precomputed": Schema(
        (
            *_COMMON,
            ArraySpec("columns", "int64", ("landmarks",), below="features"),
            ArraySpec("points", _FLOATS, (0, 0)),
        ),
        {"kernel": ("precomputed",)},
    ),
}

KernelFunction = Callable[[Any, Any], AnyArray]


@dataclass(frozen=True, repr=False)
class FittedKernel:
    """Landmarks and their weights a; with a precomputed kernel, the landmarks' columns.

    ``solution`` says how the solver ended, where the model was just fitted.
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
    intercept: float = 0.0

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
        s = self.features(filled(X, self.fill, "kernel"), one, n_jobs=n_jobs).ravel()
        return s + self.intercept

    def features(self, X: FloatMatrix, P: F64, *, n_jobs: int | None = None) -> F64:
        """Return the kernel values of each row with the landmarks, times P; X has no gaps."""
        out = np.empty((X.shape[0], P.shape[1]))

        def block(lo: int, hi: int) -> None:
            out[lo:hi] = self.kernel_matrix(X[lo:hi]) @ P

        with one_blas_thread():
            map_ranges(block, row_ranges(X.shape[0], _ROWS), n_jobs=n_jobs)
        return out

    def kernel_matrix(self, X: FloatMatrix) -> F64:
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
        if self.intercept:
            arrays["intercept"] = np.array([self.intercept])
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
        """Build the fitted model from its own arrays and texts, checked."""
        held = "precomputed" if texts.get("kernel") == "precomputed" else "dense"
        _SCHEMAS["sparse" if "points_begin" in arrays else held].check(
            arrays, texts, features=n_features
        )
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
            intercept=float(arrays["intercept"][0]) if "intercept" in arrays else 0.0,
        )


# --- the model -------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, repr=False)
class Kernel(Part):
    """A weighted sum of kernel values with training documents; exact for few documents.

    Parameters
    ----------
    kernel : "rbf", "linear", "polynomial", "precomputed" or a function
        exp(-gamma |x - z|^2), x'z, (gamma x'z + coef0)^degree; X itself, a row per document and a
        column per training document; or f(A, B), which returns a matrix of rows of A x rows of B.
    gamma : float or "auto"
        "auto": 0.1 over the number of features, which serves better on LETOR's validation parts
        than the usual 1 over it, under every loss tried (RankSVM: OHSUMED .454 against .432, MQ2008
        .496 against .488, mean NDCG@10 of five folds).
    degree, coef0
        Of the polynomial.
    l2 : float or "auto"
        Penalty on the squared norm; "auto" chooses on the validation set, as for linear models. The
        default is for losses that are a mean over a query's pairs or ranks; one that is a sum over
        its pairs needs some 1,000 times as much.
    scale : bool
        Divide features by their standard deviations first.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    max_iter, tol
        When the solver stops; "auto": at its own default.
    exact_below : int
        With this many documents or fewer, all are landmarks.
    n_landmarks : int
        How many are sampled where there are more.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="pair_hinge", model=rw.models.Kernel(gamma=0.5))
    Ranker(loss='pair_hinge', model=Kernel(gamma=0.5))
    """

    takes_solver: ClassVar[bool] = True

    kernel: str | KernelFunction = "rbf"
    gamma: float | str = "auto"
    degree: int = 3
    coef0: float = 1.0
    l2: float | str = 1e-3
    scale: bool = True
    missing: str | None = None
    max_iter: int | str = "auto"
    tol: float | str = "auto"
    exact_below: int = 2000
    n_landmarks: int = 500

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        solver: Any = None,
        start: FittedKernel | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedKernel:
        """Minimise the loss, from the weights of ``start`` where that has the same landmarks."""
        self._check()
        rows, ordered = in_content_order(data, n_jobs=n_jobs)
        fill = None if self.kernel == "precomputed" else fill_values(ordered.X, self.missing)
        X = filled(ordered.X, fill, "kernel")
        chosen = self._landmarks(data.n_documents, random_state)
        fitted = self._with_landmarks(data, rows[chosen], X, chosen, document_weight(ordered), fill)
        with one_blas_thread():
            P = inverse_root(fitted.kernel_matrix(X[chosen]))
        _say(callback, repr(fitted))
        linear = Linear(l2=self.l2, scale=False, max_iter=self.max_iter, tol=self.tol)
        models = []
        for round_ in linear.rounds(
            loss,
            replace(ordered, X=fitted.features(X, P, n_jobs=n_jobs), feature_names=None),
            _mapped(callback.valid, fitted, P, n_jobs),
            solver=solver,
            start=None if start is None else _start(start, fitted, P),
            random_state=random_state,
            n_jobs=n_jobs,
        ):
            models.append(round_.model)
            if callback.on_iteration(round_.number, round_.loss, None, round_.valid_scores):
                break
        found: Any = models[callback.best() - 1]()
        return replace(
            fitted,
            weights=P @ found.coef,
            solution=found.solution,
            intercept=found.intercept,
        )

    def _with_landmarks(
        self,
        data: RankingData,
        rows: I64,
        X: FloatMatrix,
        chosen: I64,
        weight: F64,
        fill: F64 | None,
    ) -> FittedKernel:
        """Return a model with landmarks and no weights yet; ``rows`` are theirs in ``data``."""
        if self.kernel == "precomputed":
            points: Any = np.empty((0, 0))
            columns, deviation = _columns_of_documents(data)[rows], np.ones(data.n_features)
        else:
            deviation = deviations(X, weight, scale=self.scale)
            columns, points = np.empty(0, np.int64), divided(X[chosen], deviation)
        return FittedKernel(
            kernel=self.kernel,
            gamma=0.1 / data.n_features if self.gamma == "auto" else float(self.gamma),
            degree=self.degree,
            coef0=float(self.coef0),
            points=points,
            columns=columns,
            weights=np.zeros(len(chosen)),
            deviation=deviation,
            fill=fill,
            n_features=data.n_features,
            n_documents=data.n_documents,
        )

    def _landmarks(self, n: int, seed: int) -> I64:
        if n <= self.exact_below:
            return np.arange(n)
        draws = stream(seed, "kernel", "landmarks")
        return np.sort(draws.choice(n, min(n, self.n_landmarks), replace=False)).astype(np.int64)

    def _check(self) -> None:
        if not callable(self.kernel) and self.kernel not in KERNELS:
            raise UsageError(unknown("kernel", str(self.kernel), KERNELS))
        if self.gamma != "auto":
            check_above_zero("gamma", self.gamma)
        if self.degree < 1 or self.coef0 < 0.0:
            raise UsageError("degree must be 1 or more, and coef0 0 or more.")
        if self.n_landmarks < 1:
            raise UsageError(f"n_landmarks must be 1 or more, not {self.n_landmarks}.")

    restore = staticmethod(FittedKernel.restore)


def _mapped(
    data: RankingData | None, fitted: FittedKernel, P: F64, n_jobs: int | None
) -> RankingData | None:
    """Return the data with the features Phi."""
    if data is None:
        return None
    Phi = fitted.features(filled(data.X, fitted.fill, "kernel"), P, n_jobs=n_jobs)
    return replace(data, X=Phi, feature_names=None)


def _start(start: FittedKernel, fitted: FittedKernel, P: F64) -> FittedLinear:
    """Return the weights w of (2) that give the scores of ``start``."""
    same = start.points.shape == fitted.points.shape and len(start.weights) == len(fitted.weights)
    if not (same and (start.columns == fitted.columns).all() and _equal(start, fitted)):
        raise UsageError("start must be a kernel model fitted to the same documents.")
    length = np.linalg.norm(P, axis=0) ** 2  # 1 / L, for the columns of Q have length 1
    weights = (P.T @ start.weights) / np.where(length > 0.0, length, 1.0)
    return FittedLinear(weights, None, P.shape[1], intercept=start.intercept)


def _equal(one: FittedKernel, other: FittedKernel) -> bool:
    return bool((dense(one.points) == dense(other.points)).all())


def _columns_of_documents(data: RankingData) -> I64:
    """Return the column of each row's document in a precomputed kernel: its row, as given."""
    if data.n_features != data.n_documents:
        raise DataError(
            f"kernel='precomputed' needs a column for each training document: X has "
            f"{data.n_documents} rows and {data.n_features} columns."
        )
    return np.arange(data.n_documents) if data.row is None else data.row


def _say(callback: Callback, text: str) -> None:
    """Report to the progress callback which way the kernel is taken."""
    progress = getattr(callback, "progress", None)
    if progress is not None:
        progress(0, text)

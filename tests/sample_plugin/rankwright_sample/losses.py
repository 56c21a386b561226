"""Huber's loss to the grade, with a compiled kernel."""

from dataclasses import dataclass

from rankwright.losses import KernelLoss, Part, Traits, document_weight, kernel


@kernel
def _queries(lo, hi, indptr, s, y, w, delta, weight, value, grad, curv):
    for q in range(lo, hi):
        value[q] = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            miss, own = s[i] - y[i], weight[q] * w[i]
            near = abs(miss) <= delta
            value[q] += own * (0.5 * miss * miss if near else delta * (abs(miss) - 0.5 * delta))
            if len(grad):
                grad[i] = own * min(max(miss, -delta), delta)
            if len(curv):
                curv[i] = own


@dataclass(frozen=True, slots=True, repr=False)
class Huber(Part):
    """Huber's loss to the grade: quadratic near it, linear from ``delta`` on."""

    delta: float = 1.0

    @property
    def traits(self):
        """What this loss can do."""
        return Traits(
            family="pointwise", convex=True, shift_invariant=False, curvature=True, queries=True
        )

    def bind(self, data, *, n_jobs=None):
        """Prepare the loss for one data set."""
        weight, delta = document_weight(data), float(self.delta)
        return KernelLoss(_queries, data, data.y, weight, delta, curvature=True, n_jobs=n_jobs)

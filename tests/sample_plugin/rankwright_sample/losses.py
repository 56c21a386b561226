"""Huber's loss to the grade, with a compiled kernel."""

from dataclasses import dataclass

from rankwright.losses import KernelLoss, Traits, document_weight, kernel


@kernel
def _huber(queries, indptr, s, y, w, delta, value, grad, curv):
    for q in queries:
        for i in range(indptr[q], indptr[q + 1]):
            error = s[i] - y[i]
            if abs(error) <= delta:
                value[q] += w[i] * 0.5 * error * error
            else:
                value[q] += w[i] * delta * (abs(error) - 0.5 * delta)
            grad[i] = w[i] * min(max(error, -delta), delta)
            curv[i] = w[i]


@dataclass(frozen=True, slots=True, repr=False)
class Huber(KernelLoss):
    """Huber's loss to the grade: quadratic near it, linear from ``delta`` on."""

    delta: float = 1.0

    traits = Traits(convex=True, shift_invariant=False)
    run = staticmethod(_huber)

    def terms(self, data):
        """Return grades, weights and the threshold."""
        return data.y, document_weight(data), float(self.delta)

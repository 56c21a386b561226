"""Write a loss and use it with trees, a linear model and a network.

The loss is the logistic loss of pairs, weighted by the difference of their grades. It is written
twice: as a function of the scores and grades of one query, and as a compiled kernel.
"""

import math
from dataclasses import dataclass

import numpy as np

import rankwright as rw
from rankwright.losses import KernelLoss, Traits, kernel


def weighted_pairs(scores, grades):
    """Return the loss of one query, its gradient, and a bound of the second derivatives."""
    gap = np.maximum(np.subtract.outer(grades, grades), 0.0)  # above 0 if i is better than j
    p = 1.0 / (1.0 + np.exp(np.subtract.outer(scores, scores)))  # probability of a wrong order
    value = (gap * -np.log(1.0 - p)).sum()
    pull, bend = gap * p, gap * p * (1.0 - p)
    return value, pull.sum(axis=0) - pull.sum(axis=1), bend.sum(axis=0) + bend.sum(axis=1)


@kernel  # compiled; it can call only functions that are kernels themselves
def _weighted_pairs(queries, indptr, s, y, value, grad, curv):
    for q in queries:
        for i in range(indptr[q], indptr[q + 1]):
            for j in range(indptr[q], indptr[q + 1]):
                gap = y[i] - y[j]
                if gap > 0.0:
                    p = 1.0 / (1.0 + math.exp(s[i] - s[j]))
                    value[q] -= gap * math.log(1.0 - p)
                    grad[i] -= gap * p
                    grad[j] += gap * p
                    curv[i] += gap * p * (1.0 - p)
                    curv[j] += gap * p * (1.0 - p)


@dataclass(frozen=True, repr=False)
class WeightedPairs(KernelLoss):
    """Logistic loss of pairs, weighted by the difference of their grades."""

    traits = Traits(convex=True)
    run = staticmethod(_weighted_pairs)

    def terms(self, data):
        """Return the grades, which the kernel needs."""
        return (data.y,)


def main() -> None:
    """Compare the two forms, and train three models."""
    function = rw.losses.from_function(weighted_pairs, convex=True, shift_invariant=True)
    scores, grades = [0.3, 1.0, -0.5, 0.1], [0, 2, 1, 0]
    print("value of the function and of the kernel:", function(scores, grades), end=" ")
    print(WeightedPairs()(scores, grades))

    train, valid, test = (rw.load(f"digits/{part}") for part in ("train", "valid", "test"))
    for model in (rw.models.Trees(n_estimators=50), "linear", rw.models.Network(epochs=10)):
        ranker = rw.Ranker(loss=WeightedPairs(), model=model).fit(train, eval_set=valid)
        print(type(ranker.model_).__name__, rw.evaluate(test, ranker.predict(test), "ndcg@10"))


if __name__ == "__main__":
    main()

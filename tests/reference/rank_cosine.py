"""RankCosine of one query, as a quotient of sums; its gradient by the rule for quotients."""

import numpy as np


def rank_cosine(loss, s, y, w, **_):
    target = {"linear": y, "gain": 2.0**y - 1}.get(loss.targets)
    if target is None:
        target = np.array([loss.targets[int(grade)] for grade in y])
    if loss.centred:
        s, target = (x - np.average(x, weights=w) for x in (s, target))
    top = sum(m * a * b for m, a, b in zip(w, target, s, strict=True))
    of_target = sum(m * a * a for m, a in zip(w, target, strict=True)) ** 0.5
    of_scores = (sum(m * b * b for m, b in zip(w, s, strict=True)) + loss.softening**2) ** 0.5
    bottom = of_target * of_scores
    gradients = (w * target * bottom - top * of_target * w * s / of_scores) / bottom**2
    return (1 - top / bottom) / 2, -gradients / 2

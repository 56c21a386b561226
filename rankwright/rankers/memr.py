"""MEMR: the nearest scores that keep the grades in order, a margin apart."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class MEMR(Ranker):
    """MEMR: margin equipped monotone retargeting.

    Scores may be any that order the grades with a margin; those nearest to what the model can say
    are its targets (`acharyya2014memr`). As fast as a least squares fit, or nearly. The linear
    model's l2 is 1 by default, since the loss is a sum over the documents of a query, the kernel
    model's 0.01 (validation parts of OHSUMED and MQ2008: .450 and .506, where 1e-3 has .429, .507).
    """

    loss_name = "retarget"
    models = ("linear", "trees", "kernel", "network")
    defaults = {"solver": "tron"}
    model_defaults = {"linear": {"l2": 1.0}, "kernel": {"l2": 1e-2}}

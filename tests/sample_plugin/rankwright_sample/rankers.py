"""A named ranker: Huber's loss with a linear model."""

from typing import ClassVar

import rankwright as rw


class HuberRanker(rw.Ranker):
    """Huber's loss to the grades, with a linear model.

    Parameters
    ----------
    delta : float, default 1.0
        Where the loss becomes linear.
    l2 : float, default 1e-3
        Ridge penalty.
    model : model, str or None, default None
        Replaces the default model.
    metric, convention, random_state, n_jobs, verbose
        As for `rankwright.Ranker`.
    """

    name = "sample_ranker"
    loss_class = "sample_huber"
    model_class = "linear"
    search_space: ClassVar[dict] = {"delta": (0.1, 10.0, "log")}

    def __init__(
        self,
        *,
        delta=1.0,
        l2=1e-3,
        model=None,
        metric="ndcg@10",
        convention="standard",
        random_state=0,
        n_jobs=None,
        verbose=False,
    ):
        self.delta = delta
        self.l2 = l2
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

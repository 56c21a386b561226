"""AdaRank: features added up, each chosen for the queries that the sum so far serves badly."""

from __future__ import annotations

from rankwright.rankers.metric_ranker import MetricRanker


class AdaRank(MetricRanker):
    """AdaRank: features added up, each chosen for the queries that the sum so far serves badly.

    ``metric`` is what it climbs: map, ndcg@10, any measure (`xu2007adarank`). The defaults are
    RankLib's rules, which keep a strong feature from holding the run where it is; for the algorithm
    as printed give ``weights="total", enqueue=False, tolerance=inf, max_selections=0``. Queries may
    have weights; documents may not, but those of weight 0 are left out.
    """

    models = ("feature_sum",)
    defaults = {"weights": "running", "enqueue": True, "tolerance": 0.002, "max_selections": 5}

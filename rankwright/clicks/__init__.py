"""Clicks: logs, click models, learning from clicks, off-policy evaluation and interleaving.

Names load on first use; importing this package loads nothing else.

    import rankwright
    from rankwright import clicks

    log = clicks.load_log("log.csv")
    model = clicks.PBM().fit(log)
    model.evaluate(later_log).perplexity
    ranker = rankwright.LambdaMART().fit(log, propensity=clicks.estimate_propensity(log))
    print(clicks.evaluate_policy(later_log, ranker, "ctr@5"))
"""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

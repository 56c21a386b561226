"""Metrics of rankings: every class under its usual name, `metric` by name, and `evaluate`.

Names load on first use; importing this package loads nothing else.

    from rankwright.metrics import NDCG, evaluate, from_function

    evaluate(y, scores, [NDCG(k=10), "map", from_function(my_metric)], qid=qid)
"""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

"""RankGP: a short formula over features, found by genetic programming."""

from __future__ import annotations

from rankwright.rankers.metric_ranker import MetricRanker


class RankGP(MetricRanker):
    """RankGP: a short formula over features, found by genetic programming.

    The formulas that rank best are crossed and changed for some generations; the best one on valid
    is kept, simplified, and printed by ``rankwright inspect`` (`yeh2007rankgp`).

    Parameters
    ----------
    metric : str
        The measure that formulas are bred for.
    population, n_generations : int
        Formulas of a generation, and generations.
    max_nodes, max_depth, max_features : int
        The largest formula.
    parsimony : float
        How much better in the metric a formula must be for each node more.
    """

    models = ("expression",)

    @property
    def formula_(self) -> str:
        """The formula, with the names of the features."""
        formula: str = self._part("written", "formula")
        return formula

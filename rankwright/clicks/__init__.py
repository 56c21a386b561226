"""Clicks: logs, models of how users click, and what can be learnt from both.

Names load on first use; importing this package loads nothing else.

    import rankwright
    from rankwright import clicks

    log = clicks.load_log("log.csv")
    model = clicks.PBM().fit(log)
    model.evaluate(later_log).perplexity
    ranker = rankwright.LambdaMART().fit(log, propensity=clicks.estimate_propensity(log))
    print(clicks.evaluate_policy(later_log, ranker, "ctr@5"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwright.clicks.base import ClickModel as ClickModel
    from rankwright.clicks.base import ClickScores as ClickScores
    from rankwright.clicks.chains import DBN as DBN
    from rankwright.clicks.chains import DCM as DCM
    from rankwright.clicks.chains import SDBN as SDBN
    from rankwright.clicks.chains import Cascade as Cascade
    from rankwright.clicks.debiasing import debias as debias
    from rankwright.clicks.examination import PBM as PBM
    from rankwright.clicks.examination import UBM as UBM
    from rankwright.clicks.gain import DebiasingGain as DebiasingGain
    from rankwright.clicks.gain import debiasing_gain as debiasing_gain
    from rankwright.clicks.inspect import LogProfile as LogProfile
    from rankwright.clicks.inspect import inspect_log as inspect_log
    from rankwright.clicks.interleaving import InterleavedList as InterleavedList
    from rankwright.clicks.interleaving import Optimised as Optimised
    from rankwright.clicks.interleaving import Probabilistic as Probabilistic
    from rankwright.clicks.interleaving import TeamDraft as TeamDraft
    from rankwright.clicks.interleaving import interleave as interleave
    from rankwright.clicks.interleaving import interleave_rankings as interleave_rankings
    from rankwright.clicks.interleaving import interleave_scores as interleave_scores
    from rankwright.clicks.interleaving_score import InterleavingScores as InterleavingScores
    from rankwright.clicks.interleaving_score import PairScore as PairScore
    from rankwright.clicks.interleaving_score import plot_interleaving as plot_interleaving
    from rankwright.clicks.interleaving_score import score_interleaving as score_interleaving
    from rankwright.clicks.models import model as model
    from rankwright.clicks.off_policy import PolicyDifference as PolicyDifference
    from rankwright.clicks.off_policy import PolicyValue as PolicyValue
    from rankwright.clicks.off_policy import estimate_value as estimate_value
    from rankwright.clicks.off_policy import plot_values as plot_values
    from rankwright.clicks.policies import slot_probabilities as slot_probabilities
    from rankwright.clicks.policy_evaluation import PolicyComparison as PolicyComparison
    from rankwright.clicks.policy_evaluation import SupportError as SupportError
    from rankwright.clicks.policy_evaluation import compare_policies as compare_policies
    from rankwright.clicks.policy_evaluation import evaluate_policy as evaluate_policy
    from rankwright.clicks.propensity import estimate_propensity as estimate_propensity
    from rankwright.clicks.rates import DCTR as DCTR
    from rankwright.clicks.rates import GCTR as GCTR
    from rankwright.clicks.rates import RCTR as RCTR
    from rankwright.clicks.simulation import simulate as simulate
    from rankwright.clicks.simulation import simulate_clicks as simulate_clicks
    from rankwright.data.click_files import load_log as load_log
    from rankwright.data.click_files import save_log as save_log
    from rankwright.data.click_log import ClickLog as ClickLog
    from rankwright.data.click_log import Interleaving as Interleaving
    from rankwright.data.click_log import concatenate_logs as concatenate_logs
    from rankwright.data.propensity import Propensity as Propensity

_MODULES = {
    "Cascade": "rankwright.clicks.chains",
    "ClickLog": "rankwright.data.click_log",
    "ClickModel": "rankwright.clicks.base",
    "ClickScores": "rankwright.clicks.base",
    "DBN": "rankwright.clicks.chains",
    "DCM": "rankwright.clicks.chains",
    "DCTR": "rankwright.clicks.rates",
    "DebiasingGain": "rankwright.clicks.gain",
    "GCTR": "rankwright.clicks.rates",
    "InterleavedList": "rankwright.clicks.interleaving",
    "Interleaving": "rankwright.data.click_log",
    "InterleavingScores": "rankwright.clicks.interleaving_score",
    "LogProfile": "rankwright.clicks.inspect",
    "Optimised": "rankwright.clicks.interleaving",
    "PBM": "rankwright.clicks.examination",
    "PairScore": "rankwright.clicks.interleaving_score",
    "PolicyComparison": "rankwright.clicks.policy_evaluation",
    "PolicyDifference": "rankwright.clicks.off_policy",
    "PolicyValue": "rankwright.clicks.off_policy",
    "Probabilistic": "rankwright.clicks.interleaving",
    "Propensity": "rankwright.data.propensity",
    "RCTR": "rankwright.clicks.rates",
    "SDBN": "rankwright.clicks.chains",
    "SupportError": "rankwright.clicks.policy_evaluation",
    "TeamDraft": "rankwright.clicks.interleaving",
    "UBM": "rankwright.clicks.examination",
    "compare_policies": "rankwright.clicks.policy_evaluation",
    "concatenate_logs": "rankwright.data.click_log",
    "debias": "rankwright.clicks.debiasing",
    "debiasing_gain": "rankwright.clicks.gain",
    "estimate_propensity": "rankwright.clicks.propensity",
    "estimate_value": "rankwright.clicks.off_policy",
    "evaluate_policy": "rankwright.clicks.policy_evaluation",
    "inspect_log": "rankwright.clicks.inspect",
    "interleave": "rankwright.clicks.interleaving",
    "interleave_rankings": "rankwright.clicks.interleaving",
    "interleave_scores": "rankwright.clicks.interleaving",
    "load_log": "rankwright.data.click_files",
    "model": "rankwright.clicks.models",
    "plot_interleaving": "rankwright.clicks.interleaving_score",
    "plot_values": "rankwright.clicks.off_policy",
    "save_log": "rankwright.data.click_files",
    "score_interleaving": "rankwright.clicks.interleaving_score",
    "simulate": "rankwright.clicks.simulation",
    "simulate_clicks": "rankwright.clicks.simulation",
    "slot_probabilities": "rankwright.clicks.policies",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rankwright.clicks' has no attribute '{name}'")
    globals()[name] = found = getattr(import_module(_MODULES[name]), name)  # asked for once
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

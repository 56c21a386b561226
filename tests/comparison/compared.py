"""Three quick rankers, and what two comparisons of them must have in common."""

import importlib

from rankwright.rankers.base import Ranker

QUICK = ["gbdt:n_estimators=5", "ranknet:model=linear", "ranksvm"]
compare_module = importlib.import_module("rankwright.comparison.compare")


def count_fits(monkeypatch):
    """Return a list to which each fit adds the name of its ranker."""
    fitted = []
    monkeypatch.setattr(compare_module, "warm_up", lambda *_: None)  # its fits do not count
    original = Ranker.fit

    def spy(self, *args, **more):
        fitted.append(self.name)
        return original(self, *args, **more)

    monkeypatch.setattr(Ranker, "fit", spy)
    return fitted


def table(found):
    """Return what the table of a comparison shows."""
    reported = found.as_json()
    return {name: reported[name] for name in ("metrics", "tests", "bytes", "tuned", "failures")}

from functools import partial

import pytest
from command import run_json

from rankwright import registry
from rankwright.comparison import warmup


@pytest.fixture
def few_parts(monkeypatch):
    monkeypatch.setattr(registry, "names", lambda kind: {"losses": ["ranknet"]}.get(kind, []))
    monkeypatch.setattr(warmup, "_evaluate", int)


def test_the_parts_are_counted_and_their_kernels_kept(few_parts, tmp_path):
    answer = run_json("warmup", "--jobs", "1")
    assert answer["parts"] == 11
    assert "kernels-" in answer["folder"]


@pytest.mark.parametrize("name", registry.LOSSES)
def test_the_kernels_of_every_loss_run(name, monkeypatch):
    loss = registry.resolve("losses", name)
    calls, bind = [], loss.bind

    class Recorded:
        def __init__(self, bound):
            self.bound = bound

        def __getattr__(self, method):
            calls.append(method)
            return getattr(self.bound, method)

    monkeypatch.setattr(loss, "bind", lambda *args, **options: Recorded(bind(*args, **options)))
    warmup._bind(name)
    assert {"value", "grad", "grad_curv"} <= set(calls)
    assert ("hess_vec" in calls) == (loss().hessian is not None)


@pytest.mark.parametrize("name", ["cofirank", "jrank", "memr", "adarank"])
def test_rankers_of_ratings_losses_and_metrics_run(name):
    assert warmup._run(partial(warmup._fit, name))

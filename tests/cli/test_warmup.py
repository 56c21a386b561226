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
def test_every_loss_can_be_warmed_up(name):
    warmup._bind(name)

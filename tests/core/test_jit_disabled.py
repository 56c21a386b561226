"""Kernels as plain Python, ``NUMBA_DISABLE_JIT=1``: the same bits, and no warnings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rankwright.data.content import content_digest, content_sample
from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker

NAMES = ("lambdarank", "xendcg", "retarget", "listnet", "interval", "position_svm", "rank_cosine")


def core():
    """A few of everything: hashes, samples, losses, metrics and a fit."""
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(
        rng.normal(size=(30, 3)), rng.integers(0, 3, 30), group_sizes=[10, 12, 8]
    )
    yield content_digest(data)
    yield content_sample(data, 7).tolist()
    s = rng.normal(size=30)
    for name in NAMES:
        grad = np.empty(30)
        yield name, [loss(name).bind(data).grad(s, grad), *grad.tolist()]
    yield [evaluate(data, s, metric)[metric] for metric in ("ndcg@5", "map", "err")]
    yield ranker("memr").fit(data).predict(data).tolist()


def test_the_core_gives_the_same_answers_without_the_compiler():
    code = "import json, test_jit_disabled as t; print(json.dumps(list(t.core())))"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    digest, sample, *rest = json.loads(run.stdout)
    compiled = list(core())
    assert [digest, sample] == compiled[:2]
    for (name, values), (_, expected) in zip(rest[: len(NAMES)], compiled[2:], strict=False):
        assert values == pytest.approx(expected, rel=1e-9, abs=1e-12), name
    assert rest[-2] == pytest.approx(compiled[-2])
    assert rest[-1] == pytest.approx(compiled[-1], rel=1e-6, abs=1e-9)

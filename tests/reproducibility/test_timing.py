import itertools
from types import SimpleNamespace

import pytest
from tiny_experiment import write_toml

from rankwright.errors import UsageError
from rankwright.rankers.base import ranker
from reproducibility.experiment_file import experiment
from reproducibility.folds_run import load_folds
from reproducibility.timing import run_timing

TOML = """
title = "Tiny, Table T"
paper = "author2010"
kind = "time"

[printed]
columns = ["one, ms"]
[printed.rows]
ListMLE = [7.0]

[[rows]]
name = "ListMLE"
ranker = "listmle"

[[rows]]
name = "LIBLINEAR"
ranker = "liblinear_pairs"
fixed = { l2 = 0.1 }

[[studies]]
name = "one thread"
synthetic = { shape = "mq2008", queries = 20, sizes = "whole" }
repeats = 3
fixed = { n_jobs = 1 }
[[studies.columns]]
metrics = "seconds"
name = "one, ms"
scale = 1000
[[studies.columns]]
metrics = "ndcg@10"
name = "NDCG@10"

[[studies]]
name = "two threads"
synthetic = { shape = "mq2008", queries = 20, sizes = "whole" }
repeats = 3
fixed = { n_jobs = 2 }
[[studies.columns]]
metrics = "speedup"
name = "speed-up"
"""


@pytest.fixture
def clock(monkeypatch):
    """A clock by which every fit takes longer than the one before: 1, 2, 3, ... seconds.

    It is that of the module alone: kernels that are loaded look at the other one.
    """
    steps = itertools.chain.from_iterable([0, n] for n in itertools.count(1))
    ticks = itertools.accumulate(steps)
    own = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("reproducibility.timing.time", own)


@pytest.mark.usefixtures("clock")
def test_rows_take_turns_and_the_first_turn_is_not_counted(tmp_path):
    made = experiment(write_toml(tmp_path / "t.toml", TOML))
    lines = []
    result = run_timing(made, load_folds(made, None), report=lines.append)
    assert len(lines) == 2 * 2 * 4
    assert lines[:2] == ["one thread, ListMLE: 1.000 s", "one thread, LIBLINEAR: 2.000 s"]
    cell = result.cell("ListMLE", "one, ms")  # its fits took 1 | 3, 5, 7 s
    assert (cell.ours, cell.low, cell.high, cell.paper) == (5000, 3000, 7000, 7.0)
    faster = result.cell("ListMLE", "speed-up")  # and 9 | 11, 13, 15 s in the second study
    assert faster.ours == pytest.approx(5 / 13)
    assert 0.2 < result.cell("LIBLINEAR", "NDCG@10").ours <= 1.0
    assert result.missed() == []


SOLVED = """
title = "Tiny, Table S"
paper = "author2010"
kind = "time"

[[rows]]
name = "ROCArea"
ranker = "svm_rocarea"
fixed = { l2 = 0.1, solver = "column_generation", tol = 1e-3 }

[[studies]]
name = "tiny"
synthetic = { shape = "mq2008", queries = 6, sizes = "whole" }
[[studies.columns]]
metrics = "iterations"
name = "iterations"
[[studies.columns]]
metrics = "active"
name = "active"
[[studies.columns]]
metrics = "qp_share"
name = "% in QP"
scale = 100
"""


def test_solvers_by_cutting_planes_tell_what_they_took(tmp_path):
    made = experiment(write_toml(tmp_path / "t.toml", SOLVED))
    folds = load_folds(made, None)
    result = run_timing(made, folds)
    train = folds["tiny"][0].train
    again = ranker("svm_rocarea", **made.rows[0].settings[0]).fit(train).model_.solution
    assert result.cell("ROCArea", "iterations").ours == again.iterations > 1
    assert result.cell("ROCArea", "active").ours == again.active > 1
    assert 0.0 < result.cell("ROCArea", "% in QP").ours < 100.0


def test_a_solver_that_does_not_count_is_reported(tmp_path):
    changes = {'solver = "column_generation"': 'solver = "online"'}
    made = experiment(write_toml(tmp_path / "t.toml", SOLVED, changes=changes))
    with pytest.raises(UsageError, match="the solver of row 'ROCArea' has no active"):
        run_timing(made, load_folds(made, None))

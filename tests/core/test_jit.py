import gc
import logging
import operator
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from numba.core import config, types
from numba.core.caching import NullCache

from rankwright.core import jit, order
from rankwright.core.jit import Stopwatch, kernel
from rankwright.core.kernel_cache import kernel_hash


@kernel
def add_one(x):
    return x + 1


def test_a_kernel_computes():
    assert add_one(2) == 3


@pytest.mark.parametrize("changed", ["uses.py", "helper.py"])
def test_the_hash_changes_with_any_file_that_holds_a_kernel(tmp_path, changed):
    (tmp_path / "uses.py").write_text("from helper import f\n@kernel\ndef g(): return f()")
    (tmp_path / "helper.py").write_text("@kernel\ndef f(): return 1")
    (tmp_path / "other.py").write_text("x = 1")
    before = kernel_hash(tmp_path)
    (tmp_path / "other.py").write_text("x = 2")
    assert kernel_hash(tmp_path) == before
    (tmp_path / changed).write_text("@kernel\ndef f(): return 2")
    assert kernel_hash(tmp_path) != before


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


SORT = """
import numpy as np
from rankwright.core import order
print(order.ranking(np.array([1., 3., 2.]), np.array([0, 3])).tolist())
print(type(order.sort_query).__name__)
"""


compiled_alone = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT leaves nothing to compile"
)
inlined_alone = pytest.mark.skipif(
    bool(config.DISABLE_JIT) or not jit.INLINES, reason="kernels are inlined with Numba 0.68 alone"
)


@kernel
def twice(x):
    return 2.0 * x


@kernel
def sum_of_twice(values):
    total = 0.0
    for value in values:
        total += twice(value)
    return total


@kernel
def half_or_none(values, wanted):
    if wanted is not None:
        return len(values) // wanted
    return -1


@inlined_alone
def test_a_kernel_that_kernels_call_is_compiled_into_them_alone():
    assert kernel_of(sum_of_twice)(np.array([1.0, 2.5])) == 7.0
    assert list(twice.inner)
    assert not twice.overloads
    assert twice(4.0) == 8.0  # and for Python when Python calls it
    assert list(twice.overloads)


@inlined_alone
def test_an_error_within_an_inlined_kernel_is_raised_in_python():
    with pytest.raises(ValueError, match="negative"):
        outer_allocates(-1)


@kernel
def allocates(n):
    return np.empty(n)


@kernel
def outer_allocates(n):
    return len(allocates(n))


@kernel
def value_at(values, i):
    return values[i]


@kernel
def first_and_last(values):
    return value_at(values, 0) + value_at(values, len(values) - 1) + value_at(values, 1)


@inlined_alone
def test_integer_constants_are_compiled_as_any_integer():
    assert kernel_of(first_and_last)(np.array([1.0, 2.0, 4.0])) == 7.0
    assert len(value_at.inner) == 1


@inlined_alone
def test_numba_finds_the_signature_of_a_call_once(monkeypatch):
    asked = []
    resolve = jit._resolve
    monkeypatch.setattr(jit, "_resolved", {})
    monkeypatch.setattr(jit, "_resolve", lambda *call: asked.append(call) or resolve(*call))
    assert kernel_of(many_sums)(1.0) == 5.0
    additions = [call for call in asked if call[0].typing_key is operator.add]
    assert len(additions) == 1
    assert types.BaseFunction.get_call_type is jit._resolve  # for the kernels of others


@kernel
def many_sums(x):
    y = x + x
    z = y + x
    return z + y


@compiled_alone
def test_what_compiling_makes_is_put_with_the_old_objects_and_not_looked_at():
    found = []
    note = lambda phase, about: found.append(phase)  # noqa: E731
    one = kernel_of(add_one)
    gc.collect()
    gc.callbacks.append(note)
    try:
        one(1)
    finally:
        gc.callbacks.remove(note)
    assert found == []
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@compiled_alone
def test_what_the_user_froze_stays_frozen():
    gc.freeze()
    try:
        kernel_of(add_one)(1)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_branch_for_an_argument_that_is_none_is_left_out():
    assert half_or_none(np.zeros(4), 2) == 2
    assert half_or_none(np.zeros(4), None) == -1


@compiled_alone
def test_a_kernel_is_pickled_by_its_name():
    kept = pickle.dumps(order.sort_query)
    assert pickle.loads(kept) is order.sort_query  # noqa: S301


@inlined_alone
def test_progress_counts_to_the_number_of_functions(caplog):
    caplog.set_level(logging.DEBUG, jit.__name__)
    kernel_of(counted)(np.zeros(1))
    said = [step for step in caplog.records if hasattr(step, "kernel")]
    assert {step.kernel for step in said} == {f"{__name__}.counted"}
    assert [step.done for step in said] == [0, 1, 2]
    assert {step.total for step in said} == {2}


def kernel_of(one):
    """The kernel without its cache, so that it is compiled now."""
    made = kernel(one.py_func)
    made._cache = NullCache()
    return made


@kernel
def thrice(x):
    return 3.0 * x


@kernel
def counted(values):
    return thrice(values[0])


@kernel
def timed(values):
    return values.sum()


@compiled_alone
def test_a_stopwatch_tells_the_work_from_compiling():
    began = time.perf_counter()
    watch = Stopwatch()
    kernel_of(timed)(np.zeros(3))
    in_compiler = watch.compile_seconds
    assert in_compiler > 0.0
    time.sleep(0.01)
    assert watch.compile_seconds == in_compiler
    assert 0.01 <= watch.seconds <= time.perf_counter() - began - in_compiler


UNICODE = """
from numba.core import event
class Reported(event.Listener):
    def on_start(self, event): print("compiled", event.data["dispatcher"].py_func.__module__)
    def on_end(self, event): pass
event.register("numba:compile", Reported())
"""


@inlined_alone
def test_a_sort_compiles_no_sentences_of_numba(tmp_path):
    compiled = run(UNICODE + SORT, RANKWRIGHT_CACHE=str(tmp_path))
    assert "compiled rankwright.core.order" in compiled
    assert "unicode" not in compiled  # as an array assigned to a slice would


@inlined_alone
def test_compiling_is_reported_once_and_not_where_the_cache_has_all(tmp_path):
    reported = "import logging, sys; logging.basicConfig(level=logging.INFO, stream=sys.stdout)\n"
    cold, warm = (run(reported + SORT, RANKWRIGHT_CACHE=str(tmp_path)) for _ in range(2))
    assert cold.count("Compiling for this machine") == 1
    assert "Compiling" not in warm


def test_without_the_compiler_kernels_run_as_python():
    assert run(SORT, NUMBA_DISABLE_JIT="1").split("\n")[:2] == ["[1, 2, 0]", "function"]

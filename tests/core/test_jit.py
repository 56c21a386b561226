import gc
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from numba import config

from rankwright.core import order
from rankwright.core.jit import Stopwatch, inline_kernel, is_kernel, kernel

needs_compiler = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT leaves nothing to compile"
)

SORT = """
import numpy as np
from rankwright.core import order
print(order.ranking(np.array([1., 3., 2.]), np.array([0, 3])).tolist())
print(type(order.sort_query).__name__)
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@kernel
def add_one(x):
    return x + 1


@inline_kernel
def twice(x):
    return 2.0 * x


@kernel
def sum_of_twice(values):
    total = 0.0
    for value in values:
        total += twice(value)
    return total


@kernel
def half_or_none(values, divisor):
    if divisor is not None:
        return len(values) // divisor
    return -1


@kernel
def allocate(n):
    return np.empty(n)


@kernel
def allocated_length(n):
    return len(allocate(n))


def test_a_kernel_computes():
    assert add_one(2) == 3


def test_an_inline_kernel_computes_in_kernels_and_in_python():
    assert sum_of_twice(np.array([1.0, 2.5])) == 7.0
    assert twice(4.0) == 8.0


@needs_compiler
def test_an_inline_kernel_is_not_compiled_alone():
    inlined = inline_kernel(twice.py_func)
    total = kernel(sum_of_twice.py_func)
    total.py_func.__globals__["twice"] = inlined
    total(np.array([1.0, 2.5]))
    assert not inlined.signatures


@needs_compiler
def test_kernels_are_told_from_functions():
    assert is_kernel(add_one)
    assert is_kernel(twice)
    assert not is_kernel(add_one.py_func)


ENDS = """
@kernel
def value_at(values, i):
    return values[i]


@kernel
def sum_of_ends(values):
    return value_at(values, 0) + value_at(values, len(values) - 1)
"""


@needs_compiler
def test_constants_do_not_compile_a_kernel_again():
    scope = {"kernel": kernel}
    exec(ENDS, scope)  # noqa: S102 (without a file, nothing is loaded from the cache)
    assert scope["sum_of_ends"](np.array([1.0, 2.0, 4.0])) == 5.0
    assert len(scope["value_at"].signatures) == 1


def test_a_branch_for_an_argument_that_is_none_is_left_out():
    assert half_or_none(np.zeros(4), 2) == 2
    assert half_or_none(np.zeros(4), None) == -1


def test_an_error_within_a_kernel_is_raised_in_python():
    with pytest.raises(ValueError, match="negative"):
        allocated_length(-1)


@needs_compiler
def test_the_garbage_collector_is_enabled_again():
    kernel(add_one.py_func)(1)
    assert gc.isenabled()
    gc.disable()
    try:
        kernel(add_one.py_func)(1)
        assert not gc.isenabled()
    finally:
        gc.enable()


@needs_compiler
def test_a_kernel_is_unpickled_as_itself():
    assert pickle.loads(pickle.dumps(order.sort_query)) is order.sort_query  # noqa: S301


@needs_compiler
def test_a_stopwatch_separates_the_work_from_compiling():
    start = time.perf_counter()
    watch = Stopwatch()
    kernel(sum_of_twice.py_func)(np.zeros(3))
    compiling = watch.compile_seconds
    assert compiling > 0.0
    time.sleep(0.01)
    assert watch.compile_seconds == compiling
    assert 0.01 <= watch.seconds <= time.perf_counter() - start - compiling


@needs_compiler
def test_compiling_is_reported_once_and_not_with_a_complete_cache(tmp_path):
    report = "import logging, sys; logging.basicConfig(level=logging.INFO, stream=sys.stdout)\n"
    cold, warm = (run(report + SORT, RANKWRIGHT_CACHE=str(tmp_path)) for _ in range(2))
    assert cold.count("Compiling for this machine") == 1
    assert "Compiling" not in warm


def test_without_the_compiler_kernels_run_as_python():
    assert run(SORT, NUMBA_DISABLE_JIT="1").split("\n")[:2] == ["[1, 2, 0]", "function"]

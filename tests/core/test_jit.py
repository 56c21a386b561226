import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from numba.core import config

from rankwright.core import jit
from rankwright.core.jit import kernel, kernel_hash


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


@compiled_alone
def test_kernels_are_kept_in_the_folder_that_rankwright_cache_names(tmp_path):
    run(SORT, RANKWRIGHT_CACHE=str(tmp_path))
    kept = list(tmp_path.glob(f"kernels-{kernel_hash()}/*/*.nbi"))
    assert any("sort_query" in path.name for path in kept)


UNICODE = """
from numba.core import event
class Told(event.Listener):
    def on_start(self, event): print("compiled", event.data["dispatcher"].py_func.__module__)
    def on_end(self, event): pass
event.register("numba:compile", Told())
"""


@compiled_alone
def test_a_sort_compiles_no_sentences_of_numba(tmp_path):
    compiled = run(UNICODE + SORT, RANKWRIGHT_CACHE=str(tmp_path))
    assert "compiled rankwright.core.order" in compiled
    assert "unicode" not in compiled  # as an array assigned to a slice would


@compiled_alone
def test_compiling_is_told_once_and_not_where_the_cache_has_all(tmp_path):
    told = "import logging, sys; logging.basicConfig(level=logging.INFO, stream=sys.stdout)\n"
    cold, warm = (run(told + SORT, RANKWRIGHT_CACHE=str(tmp_path)) for _ in range(2))
    assert cold.count("Compiling for this machine") == 1
    assert "Compiling" not in warm


def test_a_folder_that_another_process_drops_at_the_same_time_is_no_trouble(tmp_path):
    (tmp_path / "kernels-dropped").symlink_to(tmp_path / "nowhere")  # listed, but not there
    assert run("import rankwright.core.order as o; print(1)", RANKWRIGHT_CACHE=str(tmp_path))


def test_a_cache_that_is_not_ours_to_write_is_left_for_the_temporary_folder(tmp_path, monkeypatch):
    theirs, temporary, real = tmp_path / "theirs", tmp_path / "temporary", os.utime
    monkeypatch.setenv("RANKWRIGHT_CACHE", str(theirs))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def utime(path, *args, **options):
        if Path(path).is_relative_to(theirs):
            raise PermissionError
        real(path, *args, **options)

    monkeypatch.setattr(os, "utime", utime)
    assert jit._cache_folder.__wrapped__().is_relative_to(temporary)


def test_without_the_compiler_kernels_run_as_python():
    assert run(SORT, NUMBA_DISABLE_JIT="1").split("\n")[:2] == ["[1, 2, 0]", "function"]


def test_other_users_of_numba_keep_their_own_cache_folder():
    code = (
        "from numba.core import config; before = config.CACHE_DIR\n"
        "import rankwright.core.order\nprint(config.CACHE_DIR == before)"
    )
    assert run(code).strip() == "True"

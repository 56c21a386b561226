"""Kept machine code is loaded again, is trusted only in private folders, and may be damaged."""

import logging
import os
import pickle
import stat
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from numba import config

from rankwright.core import jit, kernel_cache
from rankwright.core.jit import kernel
from rankwright.core.kernel_cache import kernel_hash, private_folder

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT leaves nothing to compile"
)

ADD = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
import numpy as np
from rankwright.core.kernels import copy_values
out = np.empty(2)
copy_values(np.array([1.0, 2.0]), out)
print(out.tolist(), copy_values.stats.cache_hits and "loaded" or "compiled")
"""


def run(tmp_path, code=ADD, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "RANKWRIGHT_CACHE": str(tmp_path / "cache"), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[1.0, 2.0]" in done.stdout
    return done.stdout


def entries(tmp_path):
    return sorted((tmp_path / "cache").glob(f"kernels-{kernel_hash()}/*/*/*.nbc"))


@pytest.fixture
def fresh(monkeypatch):
    """Forget which folders this process uses, before and after."""
    for function in (kernel_cache.kernels_folder, kernel_cache.warn_once):
        function.cache_clear()
    yield
    for function in (kernel_cache.kernels_folder, kernel_cache.warn_once):
        function.cache_clear()


def test_code_is_kept_in_the_folder_that_rankwright_cache_names_and_found_again(tmp_path):
    assert "compiled" in run(tmp_path)
    (entry,) = entries(tmp_path)
    assert "rankwright.core.kernels.copy_values" in str(entry)
    assert "loaded" in run(tmp_path)


@pytest.fixture
def empty(tmp_path, monkeypatch, fresh):
    """A folder that has no code yet, for kernels of this process."""
    monkeypatch.setenv("RANKWRIGHT_CACHE", str(tmp_path / "cache"))


def first(values):
    return values[0]


def last(values):
    return values[-1]


def was_loaded():
    compiled = kernel(last)
    assert compiled(np.array([3.0, 4.0])) == 4.0
    return bool(compiled.stats.cache_hits)


def test_folders_are_for_this_user_alone(empty, tmp_path):
    assert not was_loaded()
    (entry,) = entries(tmp_path)
    for folder in (entry.parents[2], tmp_path / "cache"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"garbage", "cut", "flipped"])
def test_a_damaged_entry_is_dropped_and_compiled_anew(empty, tmp_path, damage, caplog):
    assert not was_loaded()
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    flipped = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    entry.write_bytes({"cut": whole[:-100], "flipped": flipped}.get(damage, damage))
    assert not was_loaded()
    (message,) = (r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING)
    assert "was damaged; it is compiled again" in message
    assert was_loaded()


@pytest.mark.parametrize("suffix", ["*.nbi", "digests.json"])
@pytest.mark.parametrize("text", ["", "garbage"])
def test_a_damaged_index_is_dropped(empty, tmp_path, suffix, text):
    assert not was_loaded()
    (path,) = (tmp_path / "cache").rglob(suffix)
    path.write_text(text)
    assert not was_loaded()
    assert was_loaded()


def test_code_without_digests_is_not_loaded(empty, tmp_path):
    assert not was_loaded()  # as if the process had been killed before it wrote them
    (path,) = (tmp_path / "cache").rglob("digests.json")
    path.unlink()
    assert not was_loaded()
    assert was_loaded()


def test_processes_that_compile_one_kernel_for_several_types_save_all(tmp_path):
    code = """
import sys
import numpy as np
from rankwright.core.kernels import copy_values
out = np.empty(2, sys.argv[1])
copy_values(np.array([1.0, 2.0], sys.argv[1]), out)
print(out.astype(float).tolist(), copy_values.stats.cache_hits and "loaded" or "compiled")
"""
    environment = {**os.environ, "RANKWRIGHT_CACHE": str(tmp_path / "cache")}
    types = ["float64", "float32", "int64", "int32"]

    def start(kind):
        command = [sys.executable, "-c", code, kind]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    for expected in ("compiled", "loaded"):
        outputs = [process.communicate()[0] for process in [start(kind) for kind in types]]
        assert outputs == [f"[1.0, 2.0] {expected}\n"] * len(types)


def test_a_full_disk_leaves_the_code_in_memory(empty, tmp_path, monkeypatch, caplog):
    replace = os.replace

    def no_space(source, target):
        if str(target).endswith((".nbi", ".nbc")):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", no_space)
    with caplog.at_level(logging.WARNING):
        assert kernel(first)(np.array([3.0, 4.0])) == 3.0
        assert kernel(last)(np.array([3.0, 4.0])) == 4.0
    (message,) = caplog.messages
    assert "No space left on device" in message
    assert "compiled in each run" in message
    assert not entries(tmp_path)


def test_without_a_folder_that_can_be_written_to_the_code_is_in_memory(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(jit, "kernels_folder", lambda: tmp_path / "file")  # as on a full disk
    compiled = kernel(last)
    assert compiled(np.array([3.0, 4.0])) == 4.0
    assert compiled.stats.cache_path is None


def test_loading_writes_nothing(empty, tmp_path):
    assert not was_loaded()
    (digests,) = (tmp_path / "cache").rglob("digests.json")
    written = digests.stat().st_mtime_ns
    assert was_loaded()
    assert digests.stat().st_mtime_ns == written


# --- who may have written it -----------------------------------------------------------------


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    for level in ("a", "a/b"):
        path = tmp_path / "a" / "b"
        private_folder(path)
        (tmp_path / level).chmod(0o777)
        with pytest.raises(PermissionError, match="other users can write to"):
            private_folder(path)
        (tmp_path / level).chmod(0o700)
    assert private_folder(path) == path


def test_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError, match="not a folder of this user"):
        private_folder(tmp_path / "link")


def test_the_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    path = private_folder(tmp_path / "a")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="not a folder of this user"):
        private_folder(path)


def plant(folder, proof):
    """Write entries that run a command if they are loaded."""

    class Command:
        def __reduce__(self):
            return os.system, (f"touch {proof}",)

    for path in folder.rglob("*.nb[ci]"):
        path.write_bytes(pickle.dumps(Command()))
        kernel_cache.sign(path.parents[1])


def test_what_another_user_planted_in_the_temporary_folder_is_not_loaded(tmp_path):
    temporary, proof = tmp_path / "temporary", tmp_path / "proof"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    (tmp_path / "cache").write_text("no folder")  # a home that cannot be written to
    settings = {"TMPDIR": str(temporary)}
    assert "compiled" in run(tmp_path, **settings)
    assert "loaded" in run(tmp_path, **settings)  # kept where the home allows nothing
    (own,) = temporary.glob(f"rankwright-{os.getuid()}")
    plant(own, proof)
    own.chmod(0o777)  # as if it had been made by somebody else
    said = run(tmp_path, **settings)
    assert not proof.exists()
    assert "deleted after this run" in said
    assert not list(temporary.glob("rankwright-[!0-9]*"))  # the private folder went with it


def test_the_default_root_is_closed_where_a_umask_left_it_open(tmp_path, monkeypatch, fresh):
    monkeypatch.delenv("RANKWRIGHT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "rankwright").mkdir()
    (tmp_path / "rankwright").chmod(0o775)
    assert kernel_cache.kernels_folder().is_relative_to(tmp_path)
    assert stat.S_IMODE((tmp_path / "rankwright").stat().st_mode) == 0o700


def test_a_folder_that_another_process_drops_at_the_same_time_is_no_trouble(empty, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "kernels-dropped").symlink_to(tmp_path / "nowhere")
    assert not was_loaded()
    assert entries(tmp_path)


def test_a_temporary_folder_is_the_last_resort(tmp_path, monkeypatch, fresh):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("RANKWRIGHT_CACHE", str(blocked))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"rankwright-{os.getuid()}").write_text("not a folder either")
    folder = kernel_cache.kernels_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.parent == tmp_path


def test_an_edited_file_of_another_package_is_compiled_anew(tmp_path):
    module = tmp_path / "plugin.py"
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
sys.dont_write_bytecode = True
import plugin
print([1.0, 2.0], plugin.scaled(2.0), plugin.scaled.stats.cache_hits and "loaded" or "compiled")
"""
    text = "from rankwright.losses import kernel\n\n@kernel\ndef scaled(x):\n    return {} * x\n"
    for factor, seen in (("3.0", "6.0 compiled"), ("3.0", "6.0 loaded"), ("5.0", "10.0 compiled")):
        if not module.exists() or module.read_text() != text.format(factor):
            module.write_text(text.format(factor))
        assert seen in run(tmp_path, code)

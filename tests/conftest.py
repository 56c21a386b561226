"""Fixtures for real data: set RANKWRIGHT_DATA to the folder that holds it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Test workers share the cores: one thread each, and none that spins while it waits. Tests of
# threads ask for them by number.
os.environ["RANKWRIGHT_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `make test` runs the same examples on every machine; `make soak`, by its profile, fresh ones.
# No deadline in either: the first call of a kernel compiles it.
settings.register_profile("same", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data sets."""
    folder = os.environ.get("RANKWRIGHT_DATA")
    if not folder:
        pytest.skip("RANKWRIGHT_DATA does not name a folder with the real data sets")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def golden_dir(data_dir: Path) -> Path:
    """Real outputs of other tools."""
    folder = data_dir.parent / "golden"
    if not folder.is_dir():
        pytest.skip("there is no folder 'golden' beside RANKWRIGHT_DATA")
    return folder


def _rebuild_folds(data_dir: Path, name: str, out: Path) -> Path:
    subprocess.run(
        [sys.executable, str(data_dir / "rebuild_folds.py"), name, str(out)],
        check=True,
        capture_output=True,
    )
    return out


@pytest.fixture(scope="session")
def mq2008(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MQ2008 in its five official folds."""
    return _rebuild_folds(data_dir, "MQ2008", tmp_path_factory.mktemp("mq2008"))


@pytest.fixture(scope="session")
def ohsumed(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OHSUMED (LETOR 3.0, normalised per query) in its five official folds."""
    out = tmp_path_factory.mktemp("ohsumed")
    return _rebuild_folds(data_dir, "OHSUMED_LETOR3/QueryLevelNorm", out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("RANKWRIGHT_NO_SKIPS") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("RANKWRIGHT_NO_SKIPS is set, and tests were skipped", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("RANKWRIGHT_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

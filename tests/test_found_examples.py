"""What ``make soak`` finds is kept and replayed, and ``make test`` is the same on every machine."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from found_examples import FOLDER, falsifying_arguments, keep, replay
from hypothesis import given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).parent
PROPERTY = """
from hypothesis import given, strategies as st

@given(n=st.integers(), text=st.text())
def test_small(n, text):
    assert n < 1000 or n == 10**9
"""


def item_of(function, name="tests/test_x.py::test_small[a]"):
    return SimpleNamespace(obj=function, nodeid=name)


def failing():
    @settings(database=None)
    @given(n=st.integers(), text=st.binary())
    def test_small(n, text):
        assert n < 1000

    return test_small


def failure_of(function):
    with pytest.raises(AssertionError) as found:
        function()
    return found.value


def test_a_failing_example_is_kept_with_its_test_and_arguments(tmp_path):
    function = failing()
    path = keep(item_of(function), failure_of(function), tmp_path)
    kept = json.loads(path.read_text())
    assert kept["test"] == "tests/test_x.py::test_small"
    assert kept["arguments"] == {"n": "1000", "text": "b''"}


def test_a_kept_example_is_run_again_though_no_sampled_one_would_fail(tmp_path):
    function = failing()
    keep(item_of(function), failure_of(function), tmp_path)

    seen = []

    @settings(max_examples=1, derandomize=True)
    @given(n=st.integers(0, 5), text=st.binary())
    def test_small(n, text):
        seen.append((n, text))

    replay([item_of(test_small), item_of(test_small, "tests/test_x.py::test_small[b]")], tmp_path)
    test_small()
    assert seen.count((1000, b"")) == 1


@pytest.mark.parametrize(
    "notes",
    [
        [],
        ["something else"],
        ["Falsifying example: test(\n    a=array([1.]),\n)"],
        ["Failing test case: test(\n    b=1,\n)"],
        ["Failing test case: test(\n    a=,\n)"],
    ],
)
def test_what_is_no_literal_is_not_kept(notes):
    assert falsifying_arguments(notes, ["a"]) is None


def test_a_test_without_sampled_arguments_keeps_nothing(tmp_path):
    assert keep(item_of(lambda: None), AssertionError("no"), tmp_path) is None


def test_every_kept_example_belongs_to_a_test_that_is_there():
    for path in FOLDER.glob("*.json"):
        file, _, name = json.loads(path.read_text())["test"].partition("::")
        assert f"def {name}(" in (TESTS.parent / file).read_text(), path


def test_the_suite_samples_the_same_examples_in_every_run():
    seen = []

    @given(n=st.integers(), x=st.floats(allow_nan=False))
    def sampled(n, x):
        seen.append((n, x))

    for _ in range(2):
        sampled()
    half = len(seen) // 2
    assert settings.default.derandomize
    assert settings.default.database is None
    assert seen[:half] == seen[half:]


@pytest.mark.parametrize("profile", ["same", "soak"])
def test_only_soak_keeps_what_fails(profile, tmp_path):
    for name in ("conftest.py", "found_examples.py"):
        (tmp_path / name).write_text((TESTS / name).read_text())
    (tmp_path / "test_it.py").write_text(PROPERTY)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    flags = ["-c", "/dev/null", f"--rootdir={tmp_path}"]
    for _ in range(2):
        done = subprocess.run(
            [*run, *flags, f"--hypothesis-profile={profile}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stdout
    found = list((tmp_path / "found").glob("*.json"))
    assert len(found) == (profile == "soak")
    assert ("explicit" in done.stdout) == (profile == "soak")

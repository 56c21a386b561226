"""The wheel holds the package with what it reads at run time, and nothing else."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check_wheel():
    return tool("check_wheel")


def build(target, **settings):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    environment = {k: v for k, v in os.environ.items() if k != "RANKWRIGHT_KERNELS"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**environment, **settings}
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def names(wheel):
    """The files of a wheel of this tree."""
    with zipfile.ZipFile(wheel) as file:
        return file.namelist()


def test_the_wheel_holds_what_it_must_and_nothing_foreign(check_wheel, names):
    assert check_wheel.wheel_faults(names) == []


def test_the_wheel_tells_type_checkers_that_it_is_typed(names):
    assert "rankwright/py.typed" in names


@pytest.mark.parametrize(
    ("left_out", "fault"),
    [
        ("rankwright/py.typed", "rankwright/py.typed is missing"),
        ("rankwright/registry.py", "rankwright/registry.py is missing"),
        ("LICENSE", "the licence is missing"),
    ],
)
def test_a_file_that_is_not_there_is_named(check_wheel, names, left_out, fault):
    kept = [name for name in names if not name.endswith(left_out)]
    assert check_wheel.wheel_faults(kept) == [fault]


@pytest.mark.parametrize(
    "foreign", ["tests/conftest.py", "rankwright/data/train.txt", "rankwright/.cache/a.nbi"]
)
def test_a_file_that_does_not_belong_is_named(check_wheel, names, foreign):
    assert check_wheel.wheel_faults([*names, foreign]) == [f"{foreign} does not belong there"]


def test_every_extra_for_users_is_tried_by_make_wheel(check_wheel):
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    not_tried = {"bench", "dev", "docs", "release", "soak", "gpu"}  # the last needs a GPU
    assert set(check_wheel.EXTRAS) == set(project["optional-dependencies"]) - not_tried


def test_a_walk_is_run_with_what_its_first_line_installs(check_wheel, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```text\npip install 'rankwright[serve,tune]' pandas  # frames\n```\n")
    assert check_wheel.installed_by(page) == ("serve,tune", ["pandas"])
    page.write_text("pip install rankwright\n")
    assert check_wheel.installed_by(page) == ("", [])
    page.write_text("pip install pandas\n")
    with pytest.raises(SystemExit, match=r"page\.md has no line 'pip install rankwright'"):
        check_wheel.installed_by(page)


def test_every_walk_installs_extras_that_exist(check_wheel):
    assert {page.stem for page in check_wheel.walks()} == {
        "data-scientist",
        "researcher",
        "search-engineer",
    }
    for page in check_wheel.walks():
        extras, _ = check_wheel.installed_by(page)
        assert set(extras.split(",")) <= set(check_wheel.EXTRAS)


def test_without_kernels_the_wheel_is_for_every_platform(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")


def test_with_kernels_the_wheel_is_for_this_python_and_platform(check_wheel, tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "x86-64-v3.zip").write_bytes(b"code")
    made = build(tmp_path / "dist", RANKWRIGHT_KERNELS=str(tmp_path / "kernels"))
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{python}-{python}-" in made.name
    with zipfile.ZipFile(made) as file:
        names = file.namelist()
    assert "rankwright/compiled/x86-64-v3.zip" in names
    assert check_wheel.wheel_faults(names) == []


def test_sources_that_change_while_kernels_are_compiled_are_noticed(tmp_path, monkeypatch):
    from rankwright.core import kernel_cache

    kernel_cache.versions()  # when the tool starts
    monkeypatch.setattr(kernel_cache, "kernel_hash", lambda: "that of an edited file")
    monkeypatch.setattr(sys, "path", list(sys.path))
    compile_kernels = tool("compile_kernels")
    monkeypatch.setattr(compile_kernels.subprocess, "run", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="sources were changed while kernels were compiled"):
        compile_kernels.compile_for("x86-64-v2", tmp_path, "")


def test_models_of_kernels_compiled_ahead_and_here_must_be_equal(check_wheel, tmp_path):
    class Changing:
        folder = tmp_path

        def run(self, line, RANKWRIGHT_CACHE, RANKWRIGHT_COMPILE=None, **settings):
            (tmp_path / "model.rw").write_bytes(b"compiled" if RANKWRIGHT_COMPILE else b"ahead")
            if RANKWRIGHT_COMPILE:
                Path(RANKWRIGHT_CACHE, "a.kernel").touch()

    with pytest.raises(SystemExit, match="lambdamart has other bytes with RANKWRIGHT_COMPILE=1"):
        check_wheel.check_kernels(Changing())


def test_the_pythons_that_are_found_start(check_wheel):
    for python in check_wheel.found_pythons():
        assert subprocess.run([python, "-c", ""]).returncode == 0

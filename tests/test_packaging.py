"""The wheel holds the package with what it reads at run time, and nothing else."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def check_wheel():
    spec = importlib.util.spec_from_file_location("check_wheel", ROOT / "tools/check_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The files of a wheel of this tree."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
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
    "foreign", ["tests/test_layout.py", "rankwright/data/train.txt", "rankwright/.cache/a.nbi"]
)
def test_a_file_that_does_not_belong_is_named(check_wheel, names, foreign):
    assert check_wheel.wheel_faults([*names, foreign]) == [f"{foreign} does not belong there"]


def test_every_extra_for_users_is_tried_by_make_wheel(check_wheel):
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    developers = {"bench", "dev", "docs", "release", "soak"}
    assert set(check_wheel.EXTRAS) == set(project["optional-dependencies"]) - developers


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

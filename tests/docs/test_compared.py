"""The page that compares tools: every claim of Rankwright's can be followed by its command."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import rankwright
from rankwright.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/compared.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## Notes")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| **")
]
AREAS = tomllib.loads((ROOT / "benchmarks/floors.toml").read_text(encoding="utf-8"))
OURS = {row[0]: row[1] for row in ROWS}
COMMANDS = {command for cell in OURS.values() for command in re.findall(r"`([^`]+)`", cell)}


def test_every_yes_has_a_command():
    assert [name for name, cell in OURS.items() if cell.startswith("●") and "`" not in cell] == []


def test_tests_that_are_named_exist():
    named = [word for c in COMMANDS if c.startswith("pytest ") for word in c.split() if "/" in word]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_areas_of_benchmarks_that_are_named_exist():
    named = {area for c in COMMANDS for area in re.findall(r"^make bench AREA=(\w+)$", c)}
    assert named
    assert named <= AREAS.keys()


def test_commands_that_are_named_exist():
    verbs = {c.split()[1] for c in COMMANDS if c.startswith("rankwright ")}
    known = {c.name or c.callback.__name__ for c in app.registered_commands}
    known |= {g.name or g.typer_instance.info.name for g in app.registered_groups}
    assert verbs
    assert verbs <= known


def test_names_that_are_called_exist():
    calls = [c for c in COMMANDS if re.fullmatch(r"(rw|rankwright)\.[\w.]+", c)]
    assert calls
    for call in calls:
        module, _, name = call.replace("rw.", "rankwright.", 1).rpartition(".")
        found = rankwright if module == "rankwright" else import_module(module)
        assert hasattr(found, name), call

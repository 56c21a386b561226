"""The program that runs the long checks and keeps what they said."""

import json
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checks(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import checks

    monkeypatch.setattr(checks, "RESULTS", tmp_path / "results")
    return checks


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, said, status in [("01-holds", "3.5x | equal", 0), ("02-short", "short: 2x", 1)]:
        path = folder / name
        code = (
            f'"""What {name} asks."""\nprint("before")\nprint("{said}")\nraise SystemExit({status})'
        )
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (folder / "README.md").write_text("no check")
    return folder


def run(checks, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["checks.py", *map(str, arguments)])
    return checks.main()


def test_what_each_check_said_last_is_kept_and_those_that_fall_short_count(
    checks, folder, monkeypatch
):
    assert run(checks, monkeypatch, "acceptance", folder) == 1
    kept = json.loads((checks.RESULTS / "acceptance.json").read_text())
    assert [(row["name"], row["said"], row["holds"]) for row in kept] == [
        ("01-holds", "3.5x | equal", True),
        ("02-short", "short: 2x", False),
    ]
    assert kept[0]["about"] == "What 01-holds asks."


def test_one_check_is_run_again_in_its_place(checks, folder, monkeypatch):
    run(checks, monkeypatch, "acceptance", folder)
    (folder / "02-short").write_text(f"#!{sys.executable}\nprint('4x')\n")
    assert run(checks, monkeypatch, "acceptance", folder, "--only", "02") == 0
    kept = json.loads((checks.RESULTS / "acceptance.json").read_text())
    assert [row["said"] for row in kept] == ["3.5x | equal", "4x"]


def test_the_page_tells_what_falls_short_and_what_was_not_run(checks, folder, monkeypatch):
    run(checks, monkeypatch, "acceptance", folder)
    page = checks.checks_tables()
    assert "2 checks on" in page
    assert "short: 02-short" in page
    assert "| `01-holds` | What 01-holds asks. | 3.5x \\| equal | yes |" in page
    assert "`make soak`: not run." in page


@pytest.mark.parametrize("arguments", [["acceptance"], ["soak", "somewhere"]])
def test_a_folder_is_for_acceptance_alone(checks, monkeypatch, capsys, arguments):
    with pytest.raises(SystemExit):
        run(checks, monkeypatch, *arguments)
    assert "acceptance needs the folder" in capsys.readouterr().err


def test_the_page_has_a_row_for_each_kind_of_attack(checks):
    assert "## Attacks\n\nNot run." in checks.checks_tables()
    checks.RESULTS.mkdir()
    numbers = {"inputs": 12345, "used": 45, "refused": 12300, "signals": 0, "hangs": 0}
    row = {"name": "stores", "about": "bytes | parts", **numbers, "raw exceptions": 0}
    row |= {"minutes": 3.1, "ran": "2026-11-16", "next": 12345}
    (checks.RESULTS / "attacks.json").write_text(json.dumps([row]))
    line = checks.checks_tables().splitlines()[-1]
    assert line.startswith("| stores | bytes \\| parts | 12,345 | 45 | 12,300 | 0 | 0 | 0 | 3.1 |")

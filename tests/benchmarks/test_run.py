"""Running benchmarks: floors, peers that are absent, peers and areas that fail."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.contest import Contender, contest
from benchmarks.findings import Findings
from benchmarks.run import main, measured, report
from benchmarks.timing import least, slope

AREA = '''"""A fake area."""


def run():
    return {"speed": 2.0}
'''


@pytest.fixture
def areas(tmp_path):
    folder = tmp_path / "areas"
    folder.mkdir()
    (folder / "fake.py").write_text(AREA)
    return folder


def ran(areas, floors, tmp_path):
    (areas / "floors.toml").write_text(floors)
    return main([], results=tmp_path / "results", folder=areas)


def test_a_figure_within_its_floor_passes_and_is_saved_with_a_page(areas, tmp_path):
    assert ran(areas, "[fake]\nspeed = { least = 1.5 }\n", tmp_path) == 0
    saved = json.loads((tmp_path / "results/fake.json").read_text())
    assert saved["figures"] == {"speed": 2.0}
    assert saved["floors"] == {"speed": {"least": 1.5}}
    assert "| `speed` | 2 | least 1.5 |" in (tmp_path / "results.md").read_text()


def test_an_area_that_crashes_is_reported_of_and_the_others_go_on(areas, tmp_path, capsys):
    (areas / "crash.py").write_text('"""Ends at once."""\n\nimport os\n\nos._exit(3)\n')
    assert ran(areas, "[crash]\n[fake]\n", tmp_path) == 1
    assert "FAULT crash: the whole area failed: BrokenProcessPool" in capsys.readouterr().out
    assert json.loads((tmp_path / "results/fake.json").read_text())["figures"] == {"speed": 2.0}


def test_data_that_are_not_there_are_no_fault(areas):
    text = "from benchmarks.data_sets import data_folder\n\n\ndef run():\n    data_folder()\n"
    (areas / "needy.py").write_text(text)
    code = (
        "from pathlib import Path; from benchmarks.run import measured\n"
        f"if __name__ == '__main__': print(measured(Path({str(areas / 'needy.py')!r})).absent)"
    )
    script = areas / "script.py"
    script.write_text(code)
    without = {key: value for key, value in os.environ.items() if key != "RANKWRIGHT_DATA"}
    done = subprocess.run(
        [sys.executable, script], env=without, capture_output=True, text=True, check=True
    )
    assert "RANKWRIGHT_DATA" in done.stdout


def test_an_area_that_is_not_known_is_refused(areas, tmp_path, capsys):
    (areas / "floors.toml").write_text("[fake]\n")
    assert main(["other"], results=tmp_path / "results", folder=areas) == 2
    assert capsys.readouterr().err == "there is no area other; known: fake\n"


@pytest.mark.parametrize(
    ("value", "bounds", "ok"),
    [
        (2.0, {"least": 2.0}, True),
        (1.9, {"least": 2.0}, False),
        (2.0, {"most": 2.0}, True),
        (2.1, {"most": 2.0}, False),
        (1.5, {"least": 1.0, "most": 2.0}, True),
        (float("nan"), {"least": 1.0}, False),
        (0.0, {}, True),
    ],
)
def test_a_floor_holds_at_its_end_and_not_beyond(value, bounds, ok):
    faults = report("area", Findings({"figure": value}), {"figure": bounds})
    assert (not faults) is ok


def test_a_floor_without_a_figure_is_a_fault_unless_a_peer_was_absent():
    floors = {"figure": {"least": 1.0}}
    assert report("area", Findings(), floors) == ["area: figure has a floor and was not measured"]
    assert report("area", Findings(absent={"ranx": "ranx is not installed"}), floors) == []


def test_a_missing_module_of_an_area_is_absent(areas):
    (areas / "needs.py").write_text("import no_such_module_at_all\n")
    found = measured(areas / "needs.py")
    assert found.absent == {"the whole area": "no_such_module_at_all is not installed"}
    assert not found.failed


def test_a_missing_module_of_our_own_is_a_failure(areas):
    (areas / "needs.py").write_text("import rankwright.no_such_module\n")
    found = measured(areas / "needs.py")
    assert not found.absent
    assert "rankwright.no_such_module" in found.failed["the whole area"]


# --- contests --------------------------------------------------------------------------------


def absent():
    import no_such_module_at_all

    return no_such_module_at_all


def broken():
    def call():
        raise ValueError("bad\nnews")

    return call


def test_who_is_absent_or_fails_is_named_and_the_others_are_measured():
    found = contest(
        "task",
        [
            Contender("Rankwright", "rankwright", "ours", lambda: lambda: 3.0, lambda x: x / 2),
            Contender("Gone", "no-such-package", "none", absent),
            Contender("Cracked", "numpy", "none", absent),
            Contender("Broken", "numpy", "none", broken),
        ],
        rounds=2,
    )
    assert [(one.peer, one.quality) for one in found.records] == [("Rankwright", 1.5)]
    assert found.absent == {"Gone": "no-such-package is not installed"}
    assert found.failed == {
        "Broken": "ValueError: bad news",
        "Cracked": "ModuleNotFoundError: No module named 'no_such_module_at_all'",
    }


def test_a_wrong_result_is_a_failure():
    def judge(_):
        raise AssertionError("other numbers")

    found = contest("task", [Contender("X", "numpy", "", lambda: lambda: 0, judge)], rounds=1)
    assert not found.records
    assert found.failed == {"X": "AssertionError: other numbers"}


def test_calls_take_turns_and_the_least_counts_after_one_that_is_not_timed():
    order, ticks = [], iter(range(100))
    times = {"a": iter([9.0, 5.0, 3.0]), "b": iter([9.0, 1.0, 4.0])}
    now = [0.0]

    def call(name):
        def work():
            order.append((name, next(ticks)))
            now[0] += next(times[name])

        return work

    seconds = least({"a": call("a"), "b": call("b")}, 2, clock=lambda: now[0])
    assert [name for name, _ in order] == ["a", "b"] * 3
    assert seconds == {"a": 3.0, "b": 1.0}


def test_the_slope_is_the_power_of_growth():
    assert slope([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)


def test_findings_come_back_from_json():
    found = contest("t", [Contender("X", "numpy", "s", lambda: lambda: 0)], rounds=1)
    found.figures["f"] = 1.0
    assert Findings.from_json(json.loads(json.dumps(found.as_json()))) == found

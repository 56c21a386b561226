"""Contests: turns, absent and failed tools, limits of ratios, the recorded summary."""

import json
import tomllib
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.contest import Contender, Results, contest
from benchmarks.summary import MARK, PAGE, SUMMARY, describe, speeds
from benchmarks.timing import least

FLOORS = tomllib.loads(command.FLOORS.read_text(encoding="utf-8"))


def absent():
    import no_such_module_at_all

    return no_such_module_at_all


def broken():
    def call():
        raise ValueError("bad\nnews")

    return call


def test_absent_and_failed_tools_are_named_and_the_others_are_measured():
    results = contest(
        "task",
        [
            Contender("Rankwright", "ours", lambda: lambda: 3.0, lambda x: x / 2),
            Contender("Gone", "none", absent),
            Contender("NumPy, cracked", "none", absent),
            Contender("NumPy", "none", broken),
        ],
        rounds=2,
    )
    assert [(row.tool, row.quality) for row in results.rows] == [("Rankwright", 1.5)]
    assert results.absent == {"Gone": "gone is not installed"}
    assert results.failed == {
        "NumPy": "ValueError: bad news",
        "NumPy, cracked": "ModuleNotFoundError: No module named 'no_such_module_at_all'",
    }


def test_a_wrong_result_is_a_failure():
    def judge(_):
        raise AssertionError("other numbers")

    results = contest("task", [Contender("X", "", lambda: lambda: 0, judge)], rounds=1)
    assert not results.rows
    assert results.failed == {"X": "AssertionError: other numbers"}


def test_calls_take_turns_and_the_least_counts_after_one_that_is_not_timed():
    order, now = [], [0.0]
    times = {"a": iter([9.0, 5.0, 3.0]), "b": iter([9.0, 1.0, 4.0])}

    def call(name):
        def work():
            order.append(name)
            now[0] += next(times[name])

        return work

    seconds = least({"a": call("a"), "b": call("b")}, 2, clock=lambda: now[0])
    assert order == ["a", "b"] * 3
    assert seconds == {"a": 3.0, "b": 1.0}


@pytest.mark.parametrize(
    ("value", "limits", "ok"),
    [
        (2.0, {"least": 2.0}, True),
        (1.9, {"least": 2.0}, False),
        (2.0, {"most": 2.0}, True),
        (2.1, {"most": 2.0}, False),
        (float("nan"), {"least": 1.0}, False),
        (0.0, {}, True),
    ],
)
def test_a_limit_holds_at_its_end_and_not_beyond(value, limits, ok):
    faults = command.check("area", Results({"ratio": value}), {"ratio": limits})
    assert (not faults) is ok


def test_a_limit_without_a_ratio_is_a_fault_unless_a_tool_was_absent():
    floors = {"ratio": {"least": 1.0}}
    faults = ["area: ratio has a limit and was not measured"]
    assert command.check("area", Results(), floors) == faults
    assert command.check("area", Results(absent={"ranx": "not installed"}), floors) == []


def test_an_unknown_area_is_refused_and_known_ones_are_listed(capsys):
    assert command.main(["other"]) == 2
    assert "unknown area 'other'" in capsys.readouterr().err
    assert command.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    others = {"__init__", "__main__", "contest", "data_sets", "plain_server", "summary", "timing"}
    files = {path.stem for path in Path(command.HERE).glob("*.py")}
    assert set(listed) == files - others


def test_an_area_without_its_data_is_absent(monkeypatch):
    monkeypatch.delenv("RANKWRIGHT_DATA", raising=False)
    results = command.run_area("factorization")
    assert "RANKWRIGHT_DATA" in results.absent["the area"]
    assert not results.failed


def test_the_page_shows_the_summary_and_no_limit_is_broken():
    summary = json.loads(SUMMARY.read_text(encoding="utf-8"))
    table = PAGE.read_text(encoding="utf-8").partition(MARK)[2]
    for area, measured in summary.items():
        assert measured["ratios"].keys() <= FLOORS[area].keys()
        for name, value in measured["ratios"].items():
            limit = FLOORS[area][name]
            row = f"| {area} | {limit['task']} | {value:.3g} {limit['unit']} | {describe(limit)} |"
            assert row in table
            assert limit.get("least", value) <= value <= limit.get("most", value)


def test_speeds_are_times_as_fast():
    floors = {
        "area": {
            "a": {"task": "A", "unit": "times as fast as X"},
            "b": {"task": "B", "unit": "of the time of X"},
            "c": {"task": "C", "unit": "of the memory"},
        }
    }
    summary = {"area": {"ratios": {"a": 4.0, "b": 0.5, "c": 1.0}}}
    assert speeds(summary, floors) == [("A vs X", 4.0), ("B vs X", 2.0)]

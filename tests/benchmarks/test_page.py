"""The page of a benchmark run: losing is said in words, and so is who was not there."""

import json
from dataclasses import replace

from benchmarks.findings import Curve, Findings, Record
from benchmarks.page import losses, page, read, write
from benchmarks.plots import COLOURS, _colour, _count, draw_times

MACHINE = {"cpu": "Some CPU", "cores": 2, "memory_gigabytes": 8, "system": "Linux", "python": "3"}


def record(peer, seconds, quality=None, **more):
    return Record("Task", peer, "1.0", "settings", seconds, quality, **more)


def result(found, area="trees", floors=None):
    about = {"area": area, "about": "What it is.", "date": "2026-01-02", "seconds": 60.0}
    return {
        **about, "machine": MACHINE, "rankwright": "0.1.0", "floors": floors or {},
        **found.as_json(),
    }  # fmt: skip


def test_a_faster_peer_is_said_to_be_faster():
    assert losses([record("Rankwright", 1.3), record("LightGBM", 1.0)]) == [
        "LightGBM is 1.30x faster here."
    ]


def test_a_better_peer_is_said_to_be_better_and_equal_is_no_loss():
    lost = losses([record("Rankwright", 1.0, 0.5), record("XGBoost", 1.04, 0.51)])
    assert lost == ["XGBoost is 0.0100 better (NDCG@10 on held-out queries) here."]
    assert losses([record("Rankwright", 1.0, 0.5), record("XGBoost", 0.99, 0.5005)]) == []


def test_less_memory_is_said():
    ours = record("Rankwright", 1.0, peak_megabytes=300.0)
    theirs = record("XGBoost", 2.0, peak_megabytes=100.0)
    assert losses([ours, theirs]) == ["XGBoost needs 3.0x less memory here."]
    ours = record("Rankwright", 4.0, peak_megabytes=300.0)
    assert losses([ours, theirs]) == ["XGBoost is 2.0x faster and needs 3.0x less memory here."]


def test_our_own_variants_and_parts_of_the_work_are_no_peers():
    assert losses([record("Rankwright", 2.0), record("Rankwright, one thread", 1.0)]) == []
    assert losses([record("Rankwright", 2.0), record("pyarrow, reading alone", 1.0)]) == []


def test_the_page_names_version_settings_machine_losses_and_absent_peers():
    found = Findings(
        {"ratio": 0.5},
        [record("Rankwright", 2.0, 0.5), record("LightGBM", 1.0, 0.5)],
        absent={"CatBoost": "catboost is not installed"},
        failed={"XGBoost": "ValueError: no"},
    )
    text = page({"trees": result(found, floors={"ratio": {"least": 1.0}})})
    assert "Measured 2026-01-02 on 2 cores of Some CPU, 8 GB, Linux, Python 3" in text
    assert "| LightGBM | 1.0 | 1 | 0.5 | 0.5000 | settings |" in text
    assert "- Task ([trees](#trees)): LightGBM is 2.0x faster here." in text
    assert "**LightGBM is 2.0x faster here.**" in text
    assert "- CatBoost (trees): catboost is not installed." in text
    assert "- XGBoost (trees): ValueError: no" in text
    assert "- trees: `ratio` is 0.5; it should be at least 1." in text
    assert "Nowhere in this run." not in text


def test_a_run_without_a_loss_says_who_takes_how_long():
    found = Findings(records=[record("Rankwright", 1.0), record("ranx", 8.0)])
    text = page({"metrics": result(found, "metrics")})
    assert "Nowhere in this run." in text
    assert "the others take 8.0x as long (ranx)" in text


def test_records_of_a_task_stand_in_one_table_whatever_their_order():
    tasks = ["quiet", "busy"]
    mixed = [
        replace(record(peer, 1.0), task=task) for peer in ("Rankwright", "ranx") for task in tasks
    ]
    text = page({"busy": result(Findings(records=mixed), "busy")})
    assert [text.count(f"### {task}") for task in tasks] == [1, 1]
    assert "No peer was measured" not in text


def test_many_tasks_are_rows_of_one_panel(tmp_path):
    pair = record("Rankwright", 1.0), record("ranx", 8.0)
    many = [replace(one, task=f"task {number}") for number in range(30) for one in pair]
    draw_times(many, tmp_path / "many.svg")
    drawn = (tmp_path / "many.svg").read_text()
    assert drawn.count('id="axes_') == 1
    assert all(f">task {number}<" in drawn for number in range(30))
    draw_times(many[:4], tmp_path / "few.svg")
    assert (tmp_path / "few.svg").read_text().count('id="axes_') == 2


def test_a_peer_that_is_faster_at_the_largest_size_is_named():
    sizes = [1.0, 10.0]
    curves = [
        Curve("Fit", "queries", "Rankwright", "1", sizes, [1.0, 10.0], 1.0),
        Curve("Fit", "queries", "XGBoost", "1", sizes, [2.0, 5.0], 0.4),
    ]
    text = page({"growth": result(Findings(curves=curves), "growth")})
    assert "XGBoost is 2.0x faster at 10 queries." in text


def test_page_and_plots_are_written_alike_each_time(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    curve = Curve("Fit", "queries", "Rankwright", "1", [1.0, 10.0], [1.0, 10.0], 1.0)
    found = Findings(records=[record("Rankwright", 1.0), record("ranx", 8.0)], curves=[curve])
    (folder / "growth.json").write_text(json.dumps(result(found, "growth")))
    target = write(folder)
    first = {path.name: path.read_bytes() for path in [target, *folder.iterdir()]}
    write(folder)
    assert first == {path.name: path.read_bytes() for path in [target, *folder.iterdir()]}
    assert set(first) == {"kept.md", "growth.json", "growth.svg", "growth-queries.svg"}
    for link in ("kept/growth.svg", "kept/growth-queries.svg"):
        assert link in target.read_text()


def test_memory_has_a_curve_and_an_exponent_of_its_own(tmp_path):
    sizes, seconds = [1.0, 10.0], [1.0, 10.0]
    curves = [
        Curve("Fit", "queries", "Rankwright", "1", sizes, seconds, 1.0, "", [2.0, 30.0], 1.18),
        Curve("Rank", "queries", "Rankwright", "1", sizes, seconds, 1.0, "", [0.1, 0.2]),
    ]
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "growth.json").write_text(json.dumps(result(Findings(curves=curves), "growth")))
    text = write(folder).read_text()
    assert "| seconds | slope | added MB | slope of memory | settings |" in text
    assert "| 1, 10 | 1, 10 | 1.00 | 2, 30 | 1.18 |  |" in text
    assert "| 1, 10 | 1, 10 | 1.00 | 0.1, 0.2 |  |  |" in text
    assert "kept/growth-queries-memory.svg" in text
    drawn = (folder / "growth-queries-memory.svg").read_text()
    assert "megabytes added" in drawn
    assert "slope 1.18" in drawn


def test_areas_are_in_the_order_of_a_users_work(tmp_path):
    for area in ("scoring", "zebra", "load"):
        (tmp_path / f"{area}.json").write_text(json.dumps(result(Findings(), area)))
    assert list(read(tmp_path)) == ["load", "scoring", "zebra"]


def test_without_results_the_page_says_so():
    assert "`make bench` makes them" in page({})


def test_sizes_on_an_axis_are_short():
    shown = {16: "16", 2000: "2000", 8553: "8553", 103042: "103k", 3.77112e6: "3.77M"}
    assert {size: _count(size) for size in shown} == shown


def test_a_variant_has_the_colour_of_its_tool_but_ours_is_of_one_line():
    assert _colour("LightGBM, DaskLGBMRanker", 1) == COLOURS["LightGBM"]
    assert _colour("Rankwright", 0) == COLOURS["Rankwright"]
    assert _colour("Rankwright, one thread", 1) != COLOURS["Rankwright"]

import pytest
from reproduce import run, run_json
from tiny_experiment import write_toml
from tiny_reuters import write_reuters
from tiny_topics import TOPICS


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_reuters(folder / "data" / "Reuters21578")
    return write_toml(folder / "tiny.toml", TOPICS), folder / "data"


def test_a_table_over_topics_is_printed_with_the_paper_s_figures(tiny):
    path, folder = tiny
    done = run(path, "--data", folder)
    for words in (
        "Tiny, Table 5",
        "(0.7000)",
        "(90.00)",
        "chosen on valid by map (standard)",
        "95 % bootstrap interval over 3 topics.",
    ):
        assert words in done.stdout
    assert "1 of 8: random, sparse: 3 of 3 topics" in done.stderr


def test_json_is_one_object_also_for_some_rows(tiny):
    path, folder = tiny
    found = run_json(path, "--data", folder, "--rows", "pairs")
    assert list(found) == ["table", "rows"]
    assert {row["row"] for row in found["rows"]} == {"Oracle", "sparse", "pairs"}
    assert all(
        set(row) == {"row", "column", "paper", "ours", "low", "high"} for row in found["rows"]
    )


def test_the_tables_of_the_paper_are_listed():
    found = run_json("list")["experiments"]
    assert {"sparse-table12", "sparse-table13"} <= set(found)

"""The demo ends in a table and a report, the same on any number of threads."""

import json

import pytest
from command import run, run_json


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo gives as JSON on one thread, the table of it on two, and both pages."""
    folder = tmp_path_factory.mktemp("demo")
    one, two = folder / "1.html", folder / "2.html"
    found = run_json("demo", "-o", one, RANKWRIGHT_THREADS="1", alone=True)
    table = run("demo", "-o", two, RANKWRIGHT_THREADS="2", alone=True).stdout
    return found["metrics"], table, [one.read_text(), two.read_text()]


def test_the_demo_ends_in_a_table_and_a_report(demo):
    metrics, table, (html, _) = demo
    assert metrics["random"]["ndcg@10"] < metrics["best feature"]["ndcg@10"]
    for name in metrics:
        assert name in table
    for name in set(metrics) - {"random", "best feature"}:
        assert name in html


def content_without_times(html):
    """Return what the page holds, but for how long fits took."""
    content = json.loads(html.split('id="content">')[1].split("</script>")[0])
    for ranker in content["rankers"]:
        del ranker["seconds"], ranker["compile_seconds"]
    del content["conclusion"][1]  # what to do, which depends on how long fits took
    return content


def test_the_demo_is_the_same_on_any_number_of_threads(demo):
    *_, (one, two) = demo
    assert content_without_times(one) == content_without_times(two)

import json

from command import run, run_json


def test_the_demo_ends_in_a_table_and_a_report(tmp_path):
    found = run_json("demo", "-o", tmp_path / "report.html")
    metrics = found["metrics"]
    assert metrics["random"]["ndcg@10"] < metrics["best feature"]["ndcg@10"]
    html = (tmp_path / "report.html").read_text()
    for name in set(metrics) - {"random", "best feature"}:
        assert name in html


def page_without_times(path):
    """Return what the page holds, but for how long fits took."""
    content = json.loads(path.read_text().split('id="content">')[1].split("</script>")[0])
    for ranker in content["rankers"]:
        del ranker["seconds"]
    return content


def test_the_demo_is_the_same_on_any_number_of_threads(tmp_path):
    pages = []
    for threads in ("1", "2"):
        path = tmp_path / f"{threads}.html"
        run("demo", "-o", path, RANKWRIGHT_THREADS=threads)
        pages.append(page_without_times(path))
    assert pages[0] == pages[1]

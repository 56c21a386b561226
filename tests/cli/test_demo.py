from command import run, run_json


def test_the_demo_ends_in_a_table_and_a_report(tmp_path):
    found = run_json("demo", "-o", tmp_path / "report.html")
    metrics = found["metrics"]
    assert metrics["random"]["ndcg@10"] < metrics["best feature"]["ndcg@10"]
    html = (tmp_path / "report.html").read_text()
    assert "http" not in html.replace("http-equiv", "")
    for name in metrics:
        assert name in html


def test_the_demo_is_the_same_on_any_number_of_threads(tmp_path):
    pages = []
    for threads in ("1", "2"):
        path = tmp_path / f"{threads}.html"
        run("demo", "-o", path, RANKWRIGHT_THREADS=threads)
        pages.append(path.read_bytes())
    assert pages[0] == pages[1]

"""Pages are written from what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_figures_of_the_last_run_stand_behind_their_names(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import generate_pages

    folder = tmp_path / "docs/benchmarks"
    folder.mkdir(parents=True)
    figures = {"time_vs_other": 1.23456, "ndcg10_minus_other": -0.00123, "vs_slow": 711.4}
    (folder / "trees.json").write_text(json.dumps({"figures": figures}))
    monkeypatch.setattr(generate_pages, "ROOT", tmp_path)
    before = (
        "| <!-- trees.time_vs_other -->9.99 times, <!-- trees.vs_slow -->1e+03 | "
        "<!-- trees.ndcg10_minus_other -->(NDCG) | <!-- end --> 5"
    )
    assert generate_pages.with_figures(before) == (
        "| <!-- trees.time_vs_other -->1.23 times, <!-- trees.vs_slow -->711 | "
        "<!-- trees.ndcg10_minus_other -->-0.0012(NDCG) | <!-- end --> 5"
    )

"""The numbers in the picture of the first pages are those of the package."""

from pathlib import Path

import rankwright

ROOT = Path(__file__).parents[2]


def test_the_picture_shows_the_ndcg_that_evaluate_finds():
    grades, scores = [2, 0, 1, 0], [0.7, 0.4, 0.9, 0.1]  # as docs/tutorial.md has them
    found = rankwright.evaluate(grades, scores, "dcg,ndcg", qid=["red shoes"] * 4)
    picture = (ROOT / "docs" / "ranking.svg").read_text(encoding="utf-8")
    best = found["dcg"] / found["ndcg"]
    assert f"{found['dcg']:.4f} / {best:.4f} = {found['ndcg']:.4f}" in picture
    for score in scores:
        assert f">{score}<" in picture

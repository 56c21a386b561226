"""Vespa's rank profiles: a sum of trees stands alone, so that its fast path takes it."""

from exported import of_rules, scored


def test_the_initial_score_is_added_outside_of_the_sum_of_trees(tmp_path):
    ranker = of_rules([(0, 0.5, 1.0), (1, 0.5, 2.0)], initial=0.25)
    found, _ = scored(ranker, "vespa", tmp_path / "o", [[0, 0], [1, 1]])
    assert found.tolist() == [0.25, 3.25]
    text = (tmp_path / "o" / "rankwright_model.profile").read_text()
    forest = text.partition("function forest() {")[2].partition("}")[0]
    terms = forest.partition("{")[2].strip().split(" +\n")
    assert len(terms) == 2
    assert all(term.strip().startswith("if (") for term in terms)
    assert "forest + 0.25" in text.partition("function score() {")[2]

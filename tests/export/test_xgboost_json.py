"""XGBoost's JSON: children are neighbours there."""

from exported_models import chain, scored

from rankwright.models.portable import Forest, portable


def test_children_that_are_not_neighbours_are_numbered_anew_for_xgboost(tmp_path):
    """XGBoost takes the node after the left child for the right one."""
    ranker = chain(6)
    forest = portable(ranker._fitted(), ranker.model_name)
    assert isinstance(forest, Forest)
    assert (forest.right != forest.left + 1).any()
    rows = [[float(k) - 0.5, 0] for k in range(8)]
    found, _ = scored(ranker, "xgboost-json", tmp_path / "o", rows)
    assert found.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0]

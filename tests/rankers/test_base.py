"""What a ranker says of itself."""

import rankwright as rw


def test_a_ranker_has_a_loss_unless_it_optimises_a_metric():
    assert rw.LambdaMART().has_loss
    assert rw.Ranker(loss="listnet").has_loss
    assert not rw.AdaRank().has_loss

import numpy as np
import pytest

from rankwright.errors import UsageError
from reproducibility.clicks import made_clicks

SMALL = {"queries": 3, "features": 200, "row": 12, "themes": 8, "words": 6, "relevant": 0.1}


def test_images_are_sparse_rows_of_unit_length_in_three_parts():
    names, *parts = made_clicks(400, sizes=(0.5, 0.25, 0.25), **SMALL)
    assert names == ("query 1", "query 2", "query 3")
    assert [X.shape for X, _ in parts] == [(200, 200), (100, 200), (100, 200)]
    assert [grades.shape for _, grades in parts] == [(200, 3), (100, 3), (100, 3)]
    for X, _ in parts:
        assert X.nnz <= 12 * X.shape[0]
        np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0)


def test_the_share_of_selected_images_is_as_asked_and_counts_are_whole_and_uneven():
    _, *parts = made_clicks(1000, **SMALL)
    clicks = np.vstack([grades.toarray() for _, grades in parts])
    np.testing.assert_allclose((clicks > 0).mean(axis=0), 0.1, atol=0.002)
    assert (clicks == np.floor(clicks)).all()
    assert np.median(clicks[clicks > 0]) <= 3 < 8 < clicks.max() <= 1000


def test_without_noise_clicks_follow_from_the_features():
    """A least-squares fit of the features tells selected images from others, with noise not."""
    quality = []
    for noise in (0.0, 0.99):
        _, (X, clicks), _, (X_test, clicks_test) = made_clicks(2000, noise=noise, **SMALL)
        w = np.linalg.lstsq(X.toarray(), np.log1p(clicks.toarray()), rcond=None)[0]
        scores, selected = X_test @ w, clicks_test.toarray() > 0
        order = scores[:, 0][selected[:, 0]][:, None] > scores[:, 0][~selected[:, 0]]
        quality.append(order.mean())
    assert quality[0] > 0.9 > 0.65 > quality[1]


def test_the_same_seed_gives_the_same_data_and_another_another():
    one, same, other = (made_clicks(100, seed=seed, **SMALL) for seed in (1, 1, 2))
    assert (one[1][0] != same[1][0]).nnz == 0
    assert (one[3][1] != same[3][1]).nnz == 0
    assert (one[1][0] != other[1][0]).nnz > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sizes": (0.5, 0.5)}, "three shares above 0 that add up to 1"),
        ({"noise": 1.0}, "noise and relevant are shares"),
        ({"words": 300}, "no more words than features"),
    ],
)
def test_what_cannot_be_made_is_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        made_clicks(100, **{**SMALL, **wrong})

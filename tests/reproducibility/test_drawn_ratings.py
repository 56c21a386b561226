"""Users drawn from ratings, and what of their ratings is known."""

import numpy as np
import pytest

from rankwright.data.ratings import ratings_of_triples
from rankwright.errors import DataError, UsageError
from reproducibility.drawn_ratings import (
    check_ratings,
    draw_ratings,
    in_levels,
    load_ratings,
)


def ratings(users=20, items=8):
    """Every user rates every item but one; user 0 rates two."""
    user, item = np.divmod(np.arange(users * items), items)
    kept = ((user + item) % items != 0) & ((user > 0) | (item < 3))
    user, item = user[kept], item[kept]
    return ratings_of_triples(user, item, (user * 7 + item * 3) % 11 - 5.0)


def pairs(data):
    return set(zip(data.qid[data.query_of_row()].tolist(), data.X.indices.tolist(), strict=True))


def draw(**options):
    return draw_ratings(ratings(), users=3, input_users=5, least=4, **options)


def test_a_user_s_ratings_are_either_known_or_asked_and_input_users_are_known_wholly():
    data = ratings()
    for fold in draw(known=2, draws=3):
        assert fold.train.n_queries == 3 + 3 + 5
        assert (fold.valid.n_queries, fold.test.n_queries) == (3, 3)
        assert not set(fold.valid.qid) & set(fold.test.qid)
        assert 0 not in fold.train.qid  # has fewer than 4 ratings
        asked = set(fold.valid.qid) | set(fold.test.qid)
        for user, size in zip(fold.train.qid, fold.train.sizes, strict=True):
            assert size == (2 if user in asked else 7)
        together = [pairs(part) for part in fold]
        assert sum(map(len, together)) == len(set.union(*together))
        assert set.union(*together) == {p for p in pairs(data) if p[0] in set(fold.train.qid)}


def test_with_items_the_same_ones_are_known_of_all_users_asked_about():
    (fold,) = draw(items=5, draws=1)
    asked = set(fold.valid.qid) | set(fold.test.qid)
    known = {item for user, item in pairs(fold.train) if user in asked}
    hidden = {item for part in (fold.valid, fold.test) for _, item in pairs(part)}
    assert len(known) == 5
    assert not known & hidden
    assert known | hidden == set(range(8))


def test_draws_differ_and_the_seed_decides_them():
    first, second = draw(known=2, draws=2)
    assert pairs(first.test) != pairs(second.test)
    assert pairs(draw(known=2, draws=2)[1].test) == pairs(second.test)
    assert pairs(draw(known=2, draws=2, seed=1)[1].test) != pairs(second.test)


def test_levels_are_equal_parts_of_the_range():
    data = ratings_of_triples([0] * 5, range(5), [0.0, 4.9, 5.0, 9.9, 10.0])
    assert in_levels(data, 2).y.tolist() == [0, 0, 1, 1, 1]
    with pytest.raises(UsageError, match="levels must be 2 or more"):
        in_levels(data, 1)


def test_a_file_is_read_below_the_data_folder(tmp_path):
    lines = [f"{u},{i},{(u + i) % 5}" for u in range(6) for i in range(4)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    asked = {"file": "r.csv", "known": 2, "users": 1, "input_users": 2, "least": 3, "draws": 2}
    folds = load_ratings({**asked, "levels": 5}, tmp_path)
    assert [fold.train.n_queries for fold in folds] == [4, 4]
    assert folds[0].test.n_documents == 2
    with pytest.raises(DataError, match=r"s\.csv is not there"):
        load_ratings({**asked, "file": "s.csv"}, tmp_path)
    with pytest.raises(DataError, match="6 users have 3 ratings or more: too few to draw 22"):
        load_ratings({**asked, "input_users": 20}, tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"file": "a", "know": 3}, "no option of ratings 'know'; did you mean known"),
        ({"known": 3}, "ratings needs file"),
        ({"file": "a"}, "ratings needs known or items"),
        ({"file": "a", "known": 3, "items": 4}, "ratings needs known or items"),
    ],
)
def test_a_wrong_option_is_told_before_any_work(options, says):
    with pytest.raises(UsageError, match=says):
        check_ratings(options)

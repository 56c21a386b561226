from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import case, each

from rankwright.data.click_log import ClickLog, Interleaving, concatenate_logs
from rankwright.data.ranking_data import FeatureIds, RankingData
from rankwright.errors import DataError, UsageError


@pytest.fixture
def rows():
    """Three sessions: a shows 1, 2; b shows 3, 1 (written in the other order); a shows 2, 1."""
    return {
        "session": ["s1", "s1", "s2", "s2", "s3", "s3"],
        "query": ["a", "a", "b", "b", "a", "a"],
        "document": [1, 2, 1, 3, 2, 1],
        "click": [0, 1, 1, 0, 2, 0],
        "position": [1, 2, 2, 1, 1, 2],
    }


@pytest.fixture
def features():
    return RankingData.from_arrays(
        np.arange(10.0).reshape(5, 2),
        np.zeros(5),
        qid=["a", "a", "b", "b", "b"],
        doc_id=["1", "2", "1", "3", "4"],
    )


def shown(log):
    return log.document_ids[log.document].tolist()


def test_impressions_are_grouped_by_session_and_ordered_by_position(rows):
    log = ClickLog.from_arrays(**rows)
    assert shown(log) == [1, 2, 3, 1, 2, 1]
    assert log.click.tolist() == [False, True, False, True, True, False]
    assert log.query_ids[log.query].tolist() == ["a", "b", "a"]
    mixed = np.array([4, 0, 2, 5, 1, 3])
    again = ClickLog.from_arrays(**{name: np.array(v)[mixed] for name, v in rows.items()})
    assert again.query_ids[again.query].tolist() == ["a", "a", "b"]  # by first appearance
    assert shown(again) == [2, 1, 1, 2, 3, 1]


def test_positions_default_to_the_order_of_impressions(rows):
    del rows["position"]
    assert ClickLog.from_arrays(**rows).position.tolist() == [1, 2, 1, 2, 1, 2]


def test_sizes_of_sessions_stand_for_ids_and_queries_may_be_given_per_session(rows):
    del rows["session"]
    rows["query"] = ["a", "b", "a"]
    log = ClickLog.from_arrays(**rows, session_sizes=[2, 2, 2], time=[7, 8, 9])
    assert log.indptr.tolist() == [0, 2, 4, 6]
    assert log.query.tolist() == [0, 1, 0]
    assert log.time.tolist() == [7, 8, 9]


@each("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_give_the_same_log_and_no_user_unless_asked(kind, rows):
    frame = kind({**rows, "who": ["x", "x", "y", "y", "x", "x"]})
    log, plain = ClickLog.from_frame(frame), ClickLog.from_arrays(**rows)
    assert shown(log) == shown(plain)
    assert log.click.tolist() == plain.click.tolist()
    assert log.user is None
    assert ClickLog.from_frame(frame, user="who").user.tolist() == ["x", "y", "x"]
    with pytest.raises(DataError, match="'dcoument'"):
        ClickLog.from_frame(frame, document="dcoument")
    with pytest.raises(UsageError, match="'cookie'"):
        ClickLog.from_frame(frame, cookie="who")


@each(
    ("change", "sentence"),
    [
        ({"position": [0, 1, 1, 2, 1, 2]}, "row 0 has 0. Add 1"),
        ({"position": [1, 1.5, 1, 2, 1, 2]}, "row 1 has 1.5"),
        ({"position": [1, 1, 1, 2, 1, 2]}, "session 0 shows two documents at position 1"),
        ({"click": [0, 1, -1, 0, 0, 0]}, "click must be 0 or more; row 2"),
        ({"query": ["a", "b", "b", "b", "a", "a"]}, "session 0 has two values of query: 'a'"),
        ({"weight": [1, 2, 1, 1, 1, 1]}, "session 0 has two values of weight: '1'"),
        ({"session": [1, 1, None, 2, 2, 2]}, "the session id is missing at row 2"),
        ({"document": [1, None, 1, 3, 2, 1]}, "the document id is missing at row 1"),
        ({"query": [1, 1, np.nan, 2, 1, 1]}, "the query id is missing at row 2"),
        ({"session_sizes": [2, 2, 2]}, "give session"),
        ({"propensity": [1, 1, 0, 1, 1, 1]}, "propensity is 0 at number 3"),
        ({"propensity": [1, 1, 1, 1, 1.5, 1]}, "'propensity' has 1.5 at number 4"),
        ({"document": [1, 2]}, "session has 6 values, where 2"),
        ({"document": [], "session": [], "click": []}, "the log has no impressions"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(change, sentence, rows):
    with pytest.raises((DataError, UsageError), match=sentence):
        ClickLog.from_arrays(**rows | change)


def test_the_constructor_checks_what_kernels_read(rows):
    log = ClickLog.from_arrays(**rows)
    fields = {name: getattr(log, name) for name in log.__slots__}
    with pytest.raises(DataError, match="'document' has 3 at number 0"):
        ClickLog(**fields | {"document": log.document + np.int32(3)})
    with pytest.raises(DataError, match="must go from 0 to 6"):
        ClickLog(**fields | {"indptr": np.array([0, 2, 4, 7])})
    with pytest.raises(DataError, match="features and row belong together"):
        ClickLog(**fields | {"row": np.zeros(6, np.int64)})


def test_lists_may_be_empty_where_queries_are_given_per_session():
    log = ClickLog.from_arrays(["a", "b"], [1, 2], [0, 1], session_sizes=[2, 0])
    assert log.query.tolist() == [0, 1]
    assert log.sizes.tolist() == [2, 0]
    with pytest.raises(DataError, match="session 1 has no impressions; give query per session"):
        ClickLog.from_arrays(["a", "a", "b"], [1, 2, 3], [0, 1, 0], session_sizes=[2, 0, 0, 1])


def test_select_keeps_whole_sessions(rows):
    log = ClickLog.from_arrays(**rows, user=["x", "x", "y", "y", "z", "z"])
    some = log.select([2, 0])
    assert shown(some) == [2, 1, 1, 2]
    assert some.user.tolist() == ["z", "x"]
    assert shown(log.select(np.array([False, True, False]))) == [3, 1]
    with pytest.raises(UsageError, match="from 0 to 2"):
        log.select([3])


def test_concatenated_logs_share_ids_by_their_value(rows):
    log = ClickLog.from_arrays(**rows)
    other = ClickLog.from_arrays(["c", "a"], [9, 2], [1, 0], session=[0, 1], weight=[2.0, 3.0])
    both = concatenate_logs([log, other])
    assert shown(both) == [*shown(log), 9, 2]
    assert both.query_ids[both.query].tolist() == ["a", "b", "a", "c", "a"]
    assert both.weight.tolist() == [1, 1, 1, 2, 3]
    assert concatenate_logs([log, log]).weight is None


def test_pairs_and_counts(rows):
    log = ClickLog.from_arrays(**rows)
    pairs = log.pairs()
    assert list(zip(pairs.query.tolist(), pairs.document.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 2),
    ]  # fmt: skip
    assert pairs.code.tolist() == [0, 1, 3, 2, 1, 0]
    counts = concatenate_logs([log, log.select([0])]).counts()
    at_2 = (counts.document == 1) & (counts.position == 2)
    assert counts.impressions[at_2].tolist() == [2]
    assert counts.clicks[at_2].tolist() == [2]
    assert counts.impressions.sum() == 8


def test_equal_sessions_are_merged_with_their_number(rows):
    log = ClickLog.from_arrays(**rows)
    merged = concatenate_logs([log, log.select([1]), log]).merged()
    assert merged.weight.tolist() == [2, 3, 2]
    assert shown(merged) == shown(log)
    assert merged.merged().weight.tolist() == [2, 3, 2]
    unclicked = ClickLog.from_arrays(**rows | {"click": np.zeros(6)})
    assert concatenate_logs([log, unclicked]).merged().n_sessions == 6


def test_sessions_that_differ_in_one_part_stay_apart():
    one = {"query": [0], "document": [1, 2], "click": [0, 1], "session_sizes": [2]}
    others = [
        {"query": [1]},
        {"document": [1, 3]},
        {"click": [1, 1]},
        {"position": [1, 3]},
        {"document": [1], "click": [0], "session_sizes": [1]},
        {},
    ]
    for other in others:
        log = concatenate_logs([ClickLog.from_arrays(**one | change) for change in ({}, other)])
        with case(other):
            assert log.merged().n_sessions == (2 if other else 1)


def test_features_are_found_by_query_and_document_id(rows, features):
    log = ClickLog.from_arrays(**rows, features=features)
    assert log.row.tolist() == [0, 1, 3, 2, 1, 0]
    rows["document"][3] = 7
    with pytest.raises(DataError, match=r"document '7' of query 'b' \(session 1\)"):
        ClickLog.from_arrays(**rows, features=features)


@each("by", ["session", "query"])
def test_the_data_of_a_log_has_the_numbering_of_its_features(rows, features, by):
    numbered = replace(features, feature_ids=FeatureIds(0, True))
    data = ClickLog.from_arrays(**rows, features=numbered).to_ranking_data(by)
    assert data.feature_ids == FeatureIds(0, True)


def test_a_log_becomes_data_by_session_or_by_query(rows, features):
    log = ClickLog.from_arrays(**rows, features=features, weight=[1.0, 2.0, 3.0])
    data = log.to_ranking_data()
    assert data.query_weight.tolist() == [1, 2, 3]
    assert data.doc_id.tolist() == shown(log)
    log = ClickLog.from_arrays(**rows, features=features)
    data = log.to_ranking_data()
    assert data.query_weight is None
    assert data.indptr.tolist() == [0, 2, 4, 6]
    assert data.y.tolist() == [0, 1, 0, 1, 1, 0]
    assert data.position.tolist() == [1, 2, 1, 2, 1, 2]
    assert data.X[:, 0].tolist() == [0, 2, 6, 4, 2, 0]
    data = concatenate_logs([log, log.select([0])]).to_ranking_data(by="query")
    assert data.qid.tolist() == ["a", "b"]
    assert data["a"].y.tolist() == [0, 0, 1, 1]
    assert data["a"].doc_id.tolist() == [1, 1, 2, 2]
    assert data.position.tolist() == [1, 2, 1, 2, 2, 1]
    assert data.X[:, 0].tolist() == [0, 0, 2, 2, 4, 6]
    assert data.sample_weight.tolist() == [2, 1, 1, 2, 1, 1]
    with pytest.raises(DataError, match="no features"):
        ClickLog.from_arrays(**rows).to_ranking_data()
    with pytest.raises(UsageError, match="'list'"):
        log.to_ranking_data(by="list")


HOW = Interleaving("team_draft", ("A", "B"), {"k": 2})


def interleaved(**changes):
    given = {"team": [0, 1, 1, 0, 1], "credit": [[1.0], [2.0], [3.0], [4.0], [5.0]]}
    return ClickLog.from_arrays(
        ["a", "a", "b", "b", "b"],
        [1, 2, 3, 4, 5],
        [0, 1, 1, 0, 0],
        **{"session_sizes": [2, 3], "interleaving": HOW, **given, **changes},
    )


def test_teams_and_credit_follow_their_impressions():
    log = interleaved(position=[2, 1, 1, 2, 3])
    assert log.team.tolist() == [1, 0, 1, 0, 1]
    assert log.credit.ravel().tolist() == [2, 1, 3, 4, 5]
    assert log.select([1]).team.tolist() == [1, 0, 1]
    assert "with interleaving" in repr(log)


def test_frames_hold_interleaved_lists():
    rows = {
        "session": [1, 1],
        "query": ["a", "a"],
        "document": [1, 2],
        "click": [0, 1],
        "team": [0, 1],
        "credit_1": [0.5, 1.5],
        "interleaving": ['{"method": "team_draft", "rankers": ["A", "B"], "k": 2}'] * 2,
    }
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows)):
        log = ClickLog.from_frame(frame)
        assert log.interleaving == HOW
        assert log.team.tolist() == [0, 1]
        assert log.credit.tolist() == [[0.5], [1.5]]


def test_merged_logs_are_no_longer_interleaved():
    merged = interleaved().merged()
    assert merged.team is None
    assert merged.credit is None
    assert merged.interleaving is None


def test_logs_interleaved_in_different_ways_are_kept_apart():
    log = interleaved()
    plain = ClickLog.from_arrays(["a"], [1], [0], session_sizes=[1])
    assert concatenate_logs([log, plain]).team is None
    assert concatenate_logs([plain, log]).interleaving is None
    with pytest.raises(DataError, match="different ways"):
        concatenate_logs([log, interleaved(interleaving=Interleaving("optimised", ("A", "B")))])


def test_teams_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="team 2"):
        interleaved(team=[0, 1, 2, 0, 1])
    with pytest.raises(DataError, match="row 1 has -2"):
        interleaved(team=[0, -2, 1, 0, 1])
    with pytest.raises(DataError, match="not how it was interleaved"):
        interleaved(interleaving=None)
    with pytest.raises(DataError, match="shape"):
        interleaved(credit=[[1.0]])

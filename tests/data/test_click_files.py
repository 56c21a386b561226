import gzip
import json

import numpy as np
import pytest
from cases import each
from click_sessions import random_log
from yandex_clicks import yandex_log

from rankwright.data.click_files import load_log, save_log
from rankwright.data.click_log import ClickLog, Interleaving, concatenate_logs
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

ROWS = """session_id,qid,doc_id,rank,clicked,user,ts
s1,shoes,a,1,0,u1,2024-05-01
s1,shoes,b,2,1,u1,2024-05-01
s2,hats,c,1,1,u2,2024-05-02
"""


def seen(log):
    """What a log says, by session."""
    return [
        (
            log.query_ids[log.query[s]],
            log.document_ids[log.document[lo:hi]].tolist(),
            log.position[lo:hi].tolist(),
            log.click[lo:hi].astype(int).tolist(),
        )
        for s, (lo, hi) in enumerate(zip(log.indptr[:-1], log.indptr[1:], strict=True))
    ]


SEEN = [("shoes", ["a", "b"], [1, 2], [0, 1]), ("hats", ["c"], [1], [1])]


def written(path, text):
    path.write_text(text)
    return path


def test_columns_are_found_by_their_usual_names_and_users_are_left_out(tmp_path):
    path = written(tmp_path / "log.csv", ROWS)
    log = load_log(path)
    assert seen(log) == SEEN
    assert log.user is None
    assert load_log(path, user="user", time="ts").user.tolist() == ["u1", "u2"]
    assert load_log(path, time="ts").time.tolist() == ["2024-05-01", "2024-05-02"]
    path = tmp_path / "log.tsv.gz"
    path.write_bytes(gzip.compress(ROWS.replace(",", "\t").encode()))
    assert seen(load_log(path)) == SEEN


@each("suffix", [".csv", ".parquet", ".arrow", ".jsonl"])
def test_a_written_log_is_read_as_it_was(suffix, tmp_path):
    log = random_log()
    path = tmp_path / f"log{suffix}"
    save_log(log, path)
    again = load_log(path)
    assert seen(again) == seen(log)
    assert (again.weight == log.weight).all()
    with pytest.raises(UsageError, match="are written as"):
        save_log(log, tmp_path / "log.txt")


def interleaved_log():
    """Return a log with what every field of interleaved lists can hold."""
    how = Interleaving("probabilistic", ('A "x", é', "B"), {"k": 2, "tau": 0.5})
    return ClickLog.from_arrays(
        ["p", "p", "q", "q"],
        ["a", "b", "c", "d"],
        [0, 1, 0, 0],
        session=[0, 0, 1, 1],
        time=["2024-05-01", "2024-05-01", "2024-05-02", "2024-05-02"],
        team=[0, 1, 1, -1],
        credit=[[1, 2], [3, 4], [5, 6], [0.1, 1 / 3]],
        interleaving=how,
    )


@each("suffix", [".csv", ".tsv.gz", ".parquet", ".arrow", ".jsonl", ".jsonl.xz"])
def test_interleaved_lists_are_read_as_they_were_written(suffix, tmp_path):
    log, path = interleaved_log(), tmp_path / f"log{suffix}"
    save_log(log, path)
    again = load_log(path)
    assert again.interleaving == log.interleaving
    assert again.team.tolist() == log.team.tolist()
    assert again.credit.tolist() == log.credit.tolist()
    assert again.time.tolist() == log.time.tolist()
    joined = concatenate_logs([again, again])
    assert joined.credit.shape == (8, 2)
    assert joined.interleaving == log.interleaving


def test_interleaved_impressions_are_json_lines_too(tmp_path):
    how = {"method": "optimised", "rankers": ["A", "B"]}
    rows = [
        {"session": s, "query": "q", "document": d, "click": 0, "interleaving": how,
         "team": team, "credit_1": 1, "credit_2": 0.5}
        for s, d, team in ((1, "a", 0), (1, "b", 1), (2, "a", 1))
    ]  # fmt: skip
    log = load_log(written(tmp_path / "log.jsonl", "\n".join(map(json.dumps, rows))))
    assert log.interleaving == Interleaving("optimised", ("A", "B"))
    assert log.team.tolist() == [0, 1, 1]
    assert log.credit.tolist() == [[1, 0.5]] * 3


DAMAGED = [
    ({"interleaving": "draft"}, "must be an object with a method"),
    ({"interleaving": {"method": "team_draft", "rankers": ["A"]}}, "two or more"),
    ({"interleaving": {"method": 3, "rankers": ["A", "B"]}}, "two or more"),
    ({"teams": [0]}, "line 1: 1 teams for 2 documents"),
    ({"teams": [0, 7]}, "team 7"),
    ({"teams": [0, 0.5]}, "team must be a whole number"),
    ({"teams": [0, None]}, r"line 1: this is not a session: .* at `\$.teams"),
    ({"teams": 3}, r"expected `array.*`, got `int` at `\$.teams"),
    ({"credits": [[1], [1, 2]]}, "as many in each"),
    ({"credits": [1, 2]}, r"expected `array.*`, got `int` at `\$.credits"),
    ({"credits": [[1], ["x"]]}, r"expected `float`, got `str` at `\$.credits"),
    ({"credits": [[1], [None]]}, r"expected `float`, got `null` at `\$.credits"),
]


@each(("change", "sentence"), DAMAGED)
def test_damaged_interleaved_lists_are_named(change, sentence, tmp_path):
    how = {"method": "team_draft", "rankers": ["A", "B"]}
    line = {"query": "q", "documents": ["a", "b"], "clicks": [0, 1], "teams": [0, 1]}
    text = json.dumps(line | {"interleaving": how} | change)
    with pytest.raises(DataError, match=sentence):
        load_log(written(tmp_path / "log.jsonl", text))


def test_sessions_interleaved_in_different_ways_are_refused(tmp_path):
    line = {"query": "q", "documents": ["a"], "clicks": [0], "teams": [0]}
    ways = [{"method": one, "rankers": ["A", "B"]} for one in ("team_draft", "optimised")]
    text = "\n".join(json.dumps(line | {"interleaving": one}) for one in ways)
    with pytest.raises(DataError, match="different ways"):
        load_log(written(tmp_path / "log.jsonl", text))
    rows = "session,query,document,click,interleaving,team\n"
    cells = [json.dumps(one).replace('"', '""') for one in ways]
    rows += f'1,q,a,0,"{cells[0]}",0\n2,q,a,0,"{cells[1]}",0\n'
    with pytest.raises(DataError, match="different ways"):
        load_log(written(tmp_path / "log.csv", rows))


def test_columns_called_team_belong_to_interleaving_alone(tmp_path):
    rows = "session,query,document,click,team\n1,q,a,0,blue\n"
    log = load_log(written(tmp_path / "log.csv", rows))
    assert log.team is None


def test_rows_of_a_session_can_lie_apart(tmp_path):
    lines = ROWS.splitlines()
    path = written(tmp_path / "log.csv", "\n".join([lines[0], lines[1], lines[3], lines[2]]))
    assert seen(load_log(path)) == SEEN


@each(
    ("change", "sentence"),
    [
        (("clicked", "bought"), "no click column found"),
        ((ROWS[ROWS.index("s1") :], ""), "log.csv: the table has no rows"),
        (("user", "item"), "'doc_id' and 'item' could each be the document"),
        (("s1,shoes,b", "s1,hats,b"), "log.csv: session 0 has two values of query"),
        (("b,2,1", ",2,1"), "log.csv: column 'doc_id' has no id at row 1"),
        (("b,2,1", "b,0,1"), "row 1 has 0. Add 1"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(change, sentence, tmp_path):
    path = written(tmp_path / "log.csv", ROWS.replace(*change))
    with pytest.raises(DataError, match=sentence):
        load_log(path)


def test_options_and_formats_are_checked(tmp_path):
    path = written(tmp_path / "log.csv", ROWS)
    with pytest.raises(UsageError, match="has no option 'clck'"):
        load_log(path, clck="clicked")
    with pytest.raises(UsageError, match="format of click logs 'csvv'"):
        load_log(path, format="csvv")
    with pytest.raises(UsageError, match="no file extension of a click log"):
        load_log(written(tmp_path / "log.log", ROWS))
    with pytest.raises(DataError, match="'clck'"):
        load_log(path, click="clck")


def test_features_are_joined_by_query_and_document(tmp_path):
    features = RankingData.from_arrays(
        np.eye(3), np.zeros(3), qid=["shoes", "shoes", "hats"], doc_id=["a", "b", "c"]
    )
    path = written(tmp_path / "log.csv", ROWS)
    assert load_log(path, features=features).row.tolist() == [0, 1, 2]


# --- JSON lines -------------------------------------------------------------------------------


def lines(path, *objects):
    return written(path, "".join(json.dumps(one) + "\n" for one in objects))


def test_json_lines_hold_sessions_or_impressions(tmp_path):
    by_session = lines(
        tmp_path / "sessions.jsonl",
        {"query": "shoes", "documents": ["a", "b"], "clicks": [0, 1], "user": "u1"},
        {"query": "none", "documents": [], "clicks": [], "user": "u3"},
        {"query": "hats", "documents": ["c"], "clicks": [1], "user": "u2"},
    )
    by_impression = lines(
        tmp_path / "impressions.jsonl",
        {"session": 1, "query": "shoes", "document": "a", "click": 0},
        {"session": 1, "query": "shoes", "document": "b", "click": 1},
        {"session": 2, "query": "hats", "document": "c", "click": True},
    )
    assert seen(load_log(by_session)) == seen(load_log(by_impression)) == SEEN
    assert load_log(by_session).user is None
    assert load_log(by_session, user="user").user.tolist() == ["u1", "u2"]


@each(
    ("documents", "ids"),
    [
        ([7, 12], [7, 12]),
        ([7, "x"], ["7", "x"]),
        (["7", "12"], [7, 12]),
        (["07", "7"], ["07", "7"]),
    ],
)
def test_ids_of_json_are_numbers_where_all_are(documents, ids, tmp_path):
    path = lines(tmp_path / "log.jsonl", {"query": 1, "documents": documents, "clicks": [0, 1]})
    log = load_log(path)
    assert log.document_ids[log.document].tolist() == ids
    assert log.query_ids.tolist() == [1]


@each(
    ("objects", "sentence"),
    [
        ([{"query": "q", "documents": ["a"], "clicks": [0, 1]}], "line 1: 2 clicks for 1 document"),
        ([{"query": "q", "documents": ["a"]}], "line 1: the session has no list 'clicks'"),
        (
            [
                {"query": "q", "documents": ["a"], "clicks": [0]},
                {"documents": ["a"], "clicks": [0]},
            ],
            "line 2: this is not a session: object missing required field `query`",
        ),
        (
            [
                {"session": 1, "query": "q", "document": "a", "click": 0},
                {"session": 1, "query": "r", "document": "a", "click": 0},
            ],
            "log.jsonl: session 0 has two values of query: 'q' and 'r'",
        ),
        (
            [{"session": s, "query": "q", "document": "a", "click": 0} for s in (1, 2, 1)],
            "log.jsonl: session '1' appears again after other sessions",
        ),
        (
            [{"session": [1], "query": "q", "document": "a", "click": 0}],
            "log.jsonl: column 'session' has no id at row 0",
        ),
        ([[1]], "line 1: this is not a JSON object"),
        (
            [{"query": "q", "documents": ["a"], "clicks": [-1]}],
            "log.jsonl: click must be 0 or more",
        ),
        ([], "the log has no sessions"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said(objects, sentence, tmp_path):
    with pytest.raises(DataError, match=sentence):
        load_log(lines(tmp_path / "log.jsonl", *objects))


# --- OpenSearch -------------------------------------------------------------------------------


def ubi_query(query_id, text, documents):
    return {
        "query_id": query_id,
        "user_query": text,
        "query_response_object_ids": documents,
        "client_id": f"client of {query_id}",
        "timestamp": "2024-05-01T10:00:00Z",
    }


def ubi_event(query_id, document, action="click"):
    found = {"object": {"object_id": document}, "position": {"ordinal": 1}}
    return {"action_name": action, "query_id": query_id, "event_attributes": found}


QUERIES = [
    ubi_query("1", "shoes", ["a", "b"]),
    ubi_query("2", "hats", ["c"]),
    ubi_query("3", "x", []),
]
EVENTS = [
    ubi_event("2", "c"),
    ubi_event("1", "b"),
    ubi_event("1", "b"),
    ubi_event("1", "a", "view"),
]


def test_ubi_joins_queries_and_clicks(tmp_path):
    queries = lines(tmp_path / "ubi_queries.jsonl", *({"_source": one} for one in QUERIES))
    events = lines(tmp_path / "ubi_events.jsonl", *EVENTS)
    log = load_log(queries, format="ubi", events=events)
    assert seen(log) == SEEN
    assert log.user is None
    assert log.time[0] == "2024-05-01T10:00:00Z"
    both = lines(tmp_path / "both.jsonl", *QUERIES, *EVENTS)
    assert load_log(both, format="ubi", user=True).user[0] == "client of 1"
    viewed = load_log(both, format="ubi", actions="view")
    assert viewed.click.tolist() == [True, False, False]


def test_ubi_says_what_does_not_fit(tmp_path):
    path = lines(tmp_path / "log.jsonl", *QUERIES, ubi_event("1", "a"), ubi_event("9", "a"))
    with pytest.warns(UserWarning, match="1 clicks of .* no logged query showed"):
        assert load_log(path, format="ubi").click.tolist() == [True, False, False]
    path = lines(tmp_path / "log.jsonl", *QUERIES, ubi_event("1", "z"))
    with pytest.warns(UserWarning, match="1 clicks of"):
        load_log(path, format="ubi")
    path = lines(tmp_path / "log.jsonl", *QUERIES, ubi_event("1", "a", "add_to_cart"))
    with pytest.raises(DataError, match="its action names are 'add_to_cart'"):
        load_log(path, format="ubi")
    path = lines(tmp_path / "log.jsonl", {"query_id": "1"}, ubi_event("1", "a"))
    with pytest.raises(
        DataError, match=r"line 1: this is not a query of UBI: .*query_response_object_ids"
    ):
        load_log(path, format="ubi")
    path = lines(tmp_path / "log.jsonl", {"action_name": "click", "query_id": "1"})
    with pytest.raises(
        DataError,
        match=r"line 1: this is not a click with query_id and event_attributes",
    ):
        load_log(path, format="ubi")


# --- clicks that are reported later -----------------------------------------------------------


SHOWN = (
    {
        "session": "s1",
        "query": "shoes",
        "documents": ["a", "b"],
        "positions": [1, 2],
        "clicked": [],
    },
    {"session": "s2", "query": "hats", "documents": ["c"], "positions": [3], "clicked": []},
)


def test_clicks_may_follow_their_lists_or_come_before(tmp_path):
    reports = ({"session": "s2", "clicked": [3]}, {"session": "s1", "time": 5, "clicked": [2]})
    late, gone = {"session": "s1", "clicked": [1, 2]}, {"session": "s9", "clicked": [1]}
    expected = [("shoes", ["a", "b"], [1, 2], [0, 1]), ("hats", ["c"], [3], [1])]
    for some in ((*SHOWN, *reports), (*reports, *SHOWN), (*SHOWN, gone, *reports)):
        assert seen(load_log(lines(tmp_path / "log.jsonl", *some))) == expected
    log = load_log(lines(tmp_path / "log.jsonl", *SHOWN, late))
    assert log.click.tolist() == [True, True, False]
    assert not load_log(lines(tmp_path / "log.jsonl", *SHOWN)).click.any()
    own = ({**SHOWN[0], "clicked": [1]}, SHOWN[1])
    assert load_log(lines(tmp_path / "log.jsonl", *own)).click.tolist() == [True, False, False]


@each(
    ("some", "why"),
    [
        (
            (*SHOWN, {"session": "s1", "clicked": [0]}),
            "line 3: clicked positions must be 1 or more",
        ),
        ((*SHOWN, {"session": "s1", "clicked": ["a"]}), "line 3: this is not a report of clicks"),
        ((*SHOWN, {"clicked": [1]}), "line 3: .* object missing required field `session`"),
        (({**SHOWN[0], "session": [1]},), "line 1: this is not a session: .*session"),
        (({**SHOWN[0], "session": None},), "line 1: the session has no key 'session'"),
        (({**SHOWN[0], "positions": 3},), "line 1: this is not a session: .*positions"),
        (({**SHOWN[0], "clicked": None}, SHOWN[1]), "line 1: the session has no list 'clicks'"),
        (({"session": "s1", "clicked": [1]},), "log.jsonl: the log has no sessions"),
        (
            (*SHOWN, {"session": "s1", "clicked": [3]}),
            "line 1: position 3 was clicked, but has no document",
        ),
        ((*SHOWN, SHOWN[0]), "session 's1' appears again after other sessions"),
    ],
)
def test_reports_of_clicks_that_are_refused(tmp_path, some, why):
    with pytest.raises(DataError, match=why):
        load_log(lines(tmp_path / "log.jsonl", *some))


def test_ids_stay_apart_whatever_their_size(tmp_path):
    big = [2**63, 2**63 + 1, -1, 2**70, True, 1]
    shown = {"query": -5, "documents": big, "clicks": [0] * len(big)}
    log = load_log(lines(tmp_path / "log.jsonl", shown, {**shown, "query": 2**64 + 1}))
    assert sorted(log.document_ids.tolist()) == sorted(map(str, big))
    assert sorted(log.query_ids.tolist()) == ["-5", str(2**64 + 1)]


@each(
    ("change", "why"),
    [
        ({"documents": ["a", None]}, r"line 2: .* got `null` at `\$.documents\[1\]`"),
        ({"documents": ["a", ["b"]]}, r"line 2: .* got `array` at `\$.documents\[1\]`"),
        ({"teams": None}, "line 2: the session has no 'teams', unlike the first session"),
        (
            {"interleaving": None},
            "line 2: the session has no 'interleaving', unlike the first session",
        ),
        ({"positions": [1, 2]}, "line 2: the session has 'positions', unlike the first session"),
        ({"interleaving": {"method": "team_draft", "rankers": ["A", "A"]}}, "different"),
    ],
)
def test_lines_that_do_not_fit_are_refused(tmp_path, change, why):
    how = {"method": "team_draft", "rankers": ["A", "B"]}
    line = {"query": "q", "documents": ["a", "b"], "clicks": [0, 1], "teams": [0, 1]}
    line |= {"interleaving": how}
    changed = {k: v for k, v in {**line, **change}.items() if v is not None}
    with pytest.raises(DataError, match=why):
        load_log(lines(tmp_path / "log.jsonl", line, changed))


def test_the_yandex_sample_has_the_counts_of_its_description(data_dir):
    log = yandex_log(data_dir / "Yandex_clicks" / "train.tsv.xz")
    assert (log.n_sessions, log.n_queries, int(log.click.sum())) == (35_064, 20, 42_703)
    assert len(log.pairs().query) == 1_024
    assert log.merged().n_sessions == 8_272
    clicks = np.bincount(log.position, log.click)[1:].astype(int).tolist()
    assert clicks == [8999, 8715, 5958, 5385, 3710, 2552, 2409, 1638, 1768, 1569]

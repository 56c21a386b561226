"""Which column is what: told, found by its usual name, or asked for; never guessed."""

import pytest

from rankwright.data.frames import USUAL_NAMES, choose_columns
from rankwright.errors import DataError


def chosen(names, *, features=None, drop=(), **given):
    roles = {**dict.fromkeys(USUAL_NAMES), **given}
    return choose_columns(names, roles, features=features, drop=drop)


@pytest.mark.parametrize("qid", ["qid", "QID", "query", "Query_ID", "group_id"])
@pytest.mark.parametrize("label", ["label", "Grade", "rel", "relevance", "y"])
def test_usual_names_are_found_in_any_case(qid, label):
    assert chosen(["a", label, qid, "b"]) == ({"qid": qid, "label": label}, ["a", "b"])


def test_blanks_around_a_name_do_not_matter():
    names = ["qid", " label", " x"]
    assert chosen(names) == ({"qid": "qid", "label": " label"}, [" x"])


def test_optional_columns_are_found():
    names = ["qid", "label", "DocID", "host", "weight", "query_weight", "position", "x"]
    roles, features = chosen(names)
    assert features == ["x"]
    assert roles["doc_id"] == "DocID"
    assert roles["group"] == "host"
    assert roles["sample_weight"] == "weight"
    assert (roles["query_weight"], roles["position"]) == ("query_weight", "position")


def test_what_the_caller_says_goes_before_usual_names():
    roles, features = chosen(["qid", "label", "session"], qid="session")
    assert roles == {"qid": "session", "label": "label"}
    assert features == ["qid"]


def test_a_column_named_as_a_feature_plays_no_role():
    roles, features = chosen(["qid", "label", "weight", "x"], features="weight,x")
    assert "sample_weight" not in roles
    assert features == ["weight", "x"]


def test_an_empty_name_says_that_there_is_no_such_column():
    roles, features = chosen(["qid", "x", "weight"], label="", sample_weight="")
    assert roles == {"qid": "qid"}
    assert features == ["x", "weight"]


def test_two_candidates_are_asked_about():
    with pytest.raises(DataError, match=r"'qid' and 'query_id' could each be the qid; specify it"):
        chosen(["qid", "query_id", "label"])
    roles, features = chosen(["qid", "query_id", "label"], qid="qid", drop=["query_id"])
    assert (roles, features) == ({"qid": "qid", "label": "label"}, [])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["label", "x"], r"no query id column found .*'label', 'x'.*qid=.*--read qid="),
        (["qid", "x"], r"no label column found .*'qid', 'x'.*label=.*--read label="),
        ([f"c{i}" for i in range(20)], r"'c11' and 8 more"),
    ],
)
def test_what_is_not_found_is_asked_for_with_the_columns_listed(names, sentence):
    with pytest.raises(DataError, match=sentence):
        chosen(names)


def test_unknown_columns_are_answered_with_the_nearest():
    with pytest.raises(DataError, match=r"no column 'prise'; did you mean price"):
        chosen(["qid", "label", "price"], drop="prise")


def test_the_index_of_a_frame_is_no_feature():
    assert chosen(["qid", "label", "x", "__index_level_0__"])[1] == ["x"]
    with pytest.raises(DataError, match="a column has no name"):
        chosen(["", "qid", "label", "x"])
    assert chosen(["", "qid", "label", "x"], drop=[""])[1] == ["x"]

import pytest

from rankwright.comparison.key_values import parse_parameters, parse_settings, parse_space
from rankwright.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=3", 3),
        ("a=0.5", 0.5),
        ("a=auto", "auto"),
        ("a=true", True),
        ("a=None", None),
        ("a=inf", float("inf")),
        ("a=[0, 1, 3]", (0, 1, 3)),
        ('a={"x": 1}', {"x": 1}),
        ("a=b=c", "b=c"),
    ],
)
def test_values_are_read_as_what_they_look_like(text, value):
    assert parse_settings([text]) == {"a": value}


def test_dashes_stand_for_underscores():
    assert parse_settings(["n-estimators=3"]) == {"n_estimators": 3}


def test_dots_lead_into_the_parts_of_a_ranker():
    given = ["model.num-leaves=7", "loss.k=3", "solver.tol=1e-8"]
    expected = {"model__num_leaves": 7, "loss__k": 3, "solver__tol": 1e-8}
    assert parse_settings(given) == expected


def test_a_file_is_a_loss_where_parameters_of_a_ranker_are_read(tmp_path):
    (tmp_path / "own.py").write_text(
        "from rankwright.losses import from_function\nloss = from_function(max, name='mine')\n"
    )
    given = [f"loss={tmp_path / 'own.py'}", "l2=0.1"]
    assert parse_settings(given)["loss"] == str(tmp_path / "own.py")
    assert repr(parse_parameters(given)) == "{'loss': from_function(mine), 'l2': 0.1}"
    assert parse_parameters(["loss=listnet"]) == {"loss": "listnet"}


@pytest.mark.parametrize("text", ["a", "=3"])
def test_what_is_no_setting_is_reported(text):
    with pytest.raises(UsageError, match="--set takes key=value"):
        parse_settings([text])


def test_ranges_and_choices_are_a_space_to_search():
    given = ["a=1:8", "b=0.1:10:log", "c=x, 2", "d=[3, 5]", "e=word", "f=4", 'g="4"']
    assert parse_space(given) == {
        "a": (1, 8),
        "b": (0.1, 10, "log"),
        "c": ["x", 2],
        "d": [3, 5],
        "e": ["word"],
        "f": [4],
        "g": ["4"],
    }

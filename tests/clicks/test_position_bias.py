"""The propensity object: what it holds, gives, keeps in a file and refuses."""

import numpy as np
import pytest
from cases import each

from rankwright.clicks.position_bias import Propensity
from rankwright.errors import DataError, UsageError


def test_examination_and_offset_are_looked_up_by_position():
    found = Propensity([1.0, 0.5, 0.25], offset=[0.0, -0.1, 0.2])
    examination, offset = found.at(np.array([3, 1, 2, 2]))
    assert examination.tolist() == [0.25, 1.0, 0.5, 0.5]
    assert offset.tolist() == [0.2, 0.0, -0.1, -0.1]
    assert Propensity([1.0, 0.5]).at(np.array([2]))[1].tolist() == [0.0]


def test_a_power_of_the_position_and_clipping():
    found = Propensity.power(2.0, positions=4)
    np.testing.assert_allclose(found.examination, [1, 1 / 4, 1 / 9, 1 / 16])
    assert found.clipped(0.2).examination.tolist() == [1.0, 0.25, 0.2, 0.2]
    assert repr(found) == "Propensity([1, 0.25, 0.111, 0.0625], 4 positions, (1/k)^2)"


def test_a_file_holds_all_of_it(tmp_path):
    path = tmp_path / "propensity.json"
    made = Propensity([1.0, 0.5], [0.0, 0.1], [0.9, 0.4], [1.1, np.inf], method="dual")
    made.save(path)
    back = Propensity.load(path)
    for name in ("examination", "offset", "low", "high"):
        assert getattr(back, name).tolist() == getattr(made, name).tolist()
    assert back.method == "dual"
    Propensity([1.0]).save(path)
    assert Propensity.load(path).low is None


@each(
    "case",
    [
        ("[1]", "a JSON object"),
        ("{", "is not JSON"),
        ('{"format": "x"}', "'format' must be"),
        ('{"format": "rankwright propensity 1"}', "'examination' is missing"),
        ("session,query\n1,2\n", "not a propensity: the file is not JSON"),
        ('{"format": "rankwright propensity 1", "examination": 3}', "must be a list"),
        ('{"format": "rankwright propensity 1", "examination": ["a"]}', "could not convert"),
        ('{"format": "rankwright propensity 1", "examination": [0]}', "above 0"),
        (
            '{"format": "rankwright propensity 1", "examination": [1], "eta": 1}',
            "key 'eta'",
        ),
    ],
)
def test_a_damaged_file_is_refused_by_its_name(case, tmp_path):
    text, says = case
    path = tmp_path / "propensity.json"
    path.write_text(text)
    with pytest.raises(DataError, match=says) as refused:
        Propensity.load(path)
    assert str(path) in str(refused.value)


def test_what_makes_no_sense_is_refused():
    for given, says in (
        ([], "one for each position"),
        ([1.0, 0.0], "above 0; position 2 has 0.0"),
        ([1.0, np.nan], "position 2 has nan"),
    ):
        with pytest.raises(DataError, match=says):
            Propensity(given)
    with pytest.raises(DataError, match="low has the shape"):
        Propensity([1.0, 0.5], low=[1.0])
    with pytest.raises(DataError, match="position 4, and the propensity knows 1 to 3"):
        Propensity.power(1.0, positions=3).at(np.array([1, 4]))
    with pytest.raises(DataError, match="position 0"):
        Propensity.power(1.0, positions=3).at(np.array([0]))
    with pytest.raises(DataError, match="whole numbers"):
        Propensity.power(1.0, positions=3).at(np.array([1.5]))
    with pytest.raises(UsageError, match="clip"):
        Propensity([1.0]).clipped(0.0)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.json does not exist"):
        Propensity.load(tmp_path / "none.json")

"""Named rankers are dataclasses: constructor and documentation come from their fields."""

import inspect
import json
from pathlib import Path

import pytest
from cases import each

import rankwright as rw
from rankwright import registry
from rankwright.errors import UsageError
from rankwright.rankers.parameters import LinearParameters, MetricParameters, named_ranker

NAMES_OF_0_2_0 = json.loads(
    (Path(__file__).parent / "parameters_0_2_0.json").read_text(encoding="utf-8")
)


@named_ranker
class Steep(MetricParameters, LinearParameters):
    """A loss of a test.

    It has notes.

    Parameters
    ----------
    sigma : float
        Scale of score differences.
    l2 : float or "auto"
        Penalty of this ranker.

    Notes
    -----
    Nothing.
    """

    loss_class = "ranknet"
    sigma: float = 2.0
    l2: float | str = 1e-2


def test_own_parameters_come_first_and_all_are_keywords():
    parameters = inspect.signature(Steep).parameters
    assert list(parameters)[:4] == ["sigma", "l2", "metric", "select_metric"]
    assert {"solver", "tol", "missing", "random_state"} <= set(parameters)
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert inspect.getfullargspec(Steep).kwonlydefaults["sigma"] == 2.0


def test_the_docstring_has_the_parameters_of_all_groups_before_its_other_sections():
    doc = inspect.getdoc(Steep)
    assert doc.startswith(
        "A loss of a test.\n\nIt has notes.\n\nParameters\n----------\nsigma : float, "
    )
    assert 'l2 : float or "auto", default 0.01\n    Penalty of this ranker.\n' in doc
    assert "scale : bool, default True\n    Apply the penalty" in doc
    assert "metric : str, Metric or callable, default 'ndcg@10'\n    Metric to optimise." in doc
    assert doc.endswith("\n\nNotes\n-----\nNothing.")
    assert doc.count("Parameters\n---") == 1


def test_a_subclass_without_fields_keeps_the_constructor():
    class Steeper(Steep):
        fixed = {"normalize": True}

    assert Steeper.name == "steeper"
    assert inspect.signature(Steeper) == inspect.signature(Steep)
    assert Steeper(sigma=3.0).make_loss() == rw.losses.RankNet(sigma=3.0, normalize=True)


def test_an_unknown_parameter_is_reported_with_its_name_here():
    with pytest.raises(UsageError, match="Steep has no parameter 'max_iterations'; it is called"):
        Steep(max_iterations=3)
    with pytest.raises(UsageError, match="Steep has no parameter 'max_bins'; max_bins is a"):
        Steep(max_bins=7)


@each("name", registry.RANKERS)
def test_no_ranker_has_more_parameters_than_in_0_2_0(name):
    parameters = set(registry.resolve("rankers", name)().get_params(deep=False))
    assert parameters <= set(NAMES_OF_0_2_0[name])

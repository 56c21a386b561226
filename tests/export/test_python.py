"""Python: a module without imports of ours, that takes lists or names."""

import runpy

import pytest
from exported_models import named, of_rules, of_weights

from rankwright.errors import UsageError
from rankwright.export.folder import export_model


def module_of(ranker, folder):
    export_model(named(ranker, "clicks", "age"), "python", folder)
    return runpy.run_path(str(folder / "rankwright_model.py"))


def test_features_come_in_order_or_by_name_and_may_be_missing(tmp_path):
    score = module_of(of_weights([2.0, -1.0], fill=[0.5, 8.0]), tmp_path / "out")["score"]
    assert score([3.0, 1.0]) == score({"age": 1.0, "clicks": 3.0}) == 2 * 3 - 1
    assert score([None, 1.0]) == score({"age": 1.0}) == 2 * 0.5 - 1


def test_a_value_at_the_threshold_does_not_exceed_it(tmp_path):
    score = module_of(of_rules([(0, 0.5, 1.0)], initial=0.25), tmp_path / "out")["score"]
    assert [score([x, 0.0]) for x in (0.5, 0.50001)] == [0.25, 1.25]


def test_what_is_no_row_is_refused(tmp_path):
    score = module_of(of_weights([2.0, -1.0]), tmp_path / "out")["score"]
    with pytest.raises(ValueError, match="1 features where 2 are expected"):
        score([1.0])
    with pytest.raises(ValueError, match="age is 'old', which is no number"):
        score([1.0, "old"])


@pytest.mark.parametrize(
    ("name", "why"),
    [("class", "a keyword of Python"), ("None", "a keyword"), ("math", "a module of Python")],
)
def test_a_name_that_cannot_be_imported_is_refused(tmp_path, name, why):
    ranker = of_weights([2.0, -1.0])
    with pytest.raises(UsageError, match=f"'{name}' is {why}"):
        export_model(ranker, "python", tmp_path / "out", name=name)
    assert not (tmp_path / "out").exists()
    export_model(ranker, "python", tmp_path / "out", name="match")  # no keyword everywhere

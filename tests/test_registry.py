"""The registry: names, the nearest to a wrong one, and plug-ins that are broken or take a name."""

import inspect
import re
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import rankwright
from rankwright import registry
from rankwright.errors import PluginError, UsageError
from rankwright.rankers.base import Ranker, ranker


@pytest.fixture
def announced(monkeypatch):
    """Entry points that no package stands behind."""

    def announce(kind, **entries):
        made = [EntryPoint(name, value, f"rankwright.{kind}") for name, value in entries.items()]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: made)
        registry.plugins.cache_clear()

    yield announce
    monkeypatch.undo()
    registry.plugins.cache_clear()


def test_a_plug_in_cannot_take_a_name_that_is_ours(announced):
    announced("rankers", lambdamart="os:path", mart="os:path", other="os:path")
    assert registry.names("rankers") == [*registry.RANKERS, "other"]
    assert registry.resolve("rankers", "lambdamart").__name__ == "LambdaMART"
    assert registry.package_of("rankers", "lambdamart") is None


def test_a_broken_plug_in_is_named_and_left_out_of_all(announced):
    announced("losses", gone="not_a_package.there:Loss", lacks="json:Loss")
    for name, why in (("gone", "ModuleNotFoundError"), ("lacks", "AttributeError")):
        sentence = f"the loss '{name}' of the package .* cannot be imported: {why}"
        with pytest.raises(PluginError, match=sentence):
            registry.resolve("losses", name)
    assert list(registry.all_of("losses")) == list(registry.LOSSES)


def test_a_name_that_no_one_has_is_answered_with_plug_ins_too(announced):
    announced("losses", sample_huber="json:JSONDecoder")
    with pytest.raises(UsageError, match="did you mean sample_huber"):
        registry.resolve("losses", "sample_hubr")


def test_a_name_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"there is no metric 'ncdg'; did you mean ndcg"):
        registry.resolve("metrics", "ncdg")


def test_every_registered_part_can_be_imported_and_says_what_it_is():
    for kind, entries in registry.KINDS.items():
        for name in entries:
            assert registry.resolve(kind, name).__doc__, name


def test_a_ranker_has_one_name_as_key_class_and_word_of_the_command_line():
    for key, cls in registry.all_of("rankers").items():
        assert cls.name == key
        assert cls.__name__.lower() == key.replace("_", "")
        assert type(ranker(key)) is cls


def test_a_loss_has_one_name_as_key_and_class():
    for key, cls in registry.all_of("losses").items():
        assert cls.__name__.lower() == key.replace("_", "")


SHARED_FILES = {
    "alpha_ndcg": "subtopics",
    "classifier": "pointwise",
    "err_ia": "subtopics",
    "forest": "bagged_trees",
    "least_squares": "pointwise",
    "num_rel": "counts",
    "num_rel_ret": "counts",
    "num_ret": "counts",
    "p_ia": "subtopics",
    "passive_aggressive": "perceptron",
    "prank": "perceptron",
}


@pytest.mark.parametrize("kind", ["losses", "metrics", "models", "solvers"])
def test_the_registry_key_of_a_part_is_the_name_of_its_file(kind):
    for key, target in registry.KINDS[kind].items():
        assert target.partition(":")[0] == f"rankwright.{kind}.{SHARED_FILES.get(key, key)}"


def test_every_ranker_class_of_the_package_is_registered():
    rankers = Path(rankwright.__file__).parent / "rankers"
    for path in rankers.glob("*.py"):
        module = import_module(f"rankwright.rankers.{path.stem}")
        for name, cls in inspect.getmembers(module, inspect.isclass):
            here = issubclass(cls, Ranker) and cls.__module__ == module.__name__
            if here and not cls.__subclasses__():  # not a base class or a group of parameters
                assert f"{module.__name__}:{name}" in registry.RANKERS.values()


def test_every_cited_paper_is_in_the_bibliography():
    package = Path(rankwright.__file__).parent
    keys = set(re.findall(r"@\w+\{(\w+),", (package / "references.bib").read_text("utf-8")))
    for path in package.rglob("*.py"):
        cited = set(re.findall(r"[`\[](?!mq)([a-z]+\d{4}[a-z]*)[`\]]", path.read_text("utf-8")))
        assert cited <= keys, path

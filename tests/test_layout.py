"""One thing, one name; losses and metrics a file each, rankers by family: the tree, checked."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import rankwright
from rankwright import registry
from rankwright.rankers.base import Ranker, ranker

ROOT = Path(rankwright.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
SHARED = {  # beside one file for each part
    "metrics": {
        "along_line",
        "base",
        "convention",
        "evaluation",
        "ranked",
        "significance",
        "swap",
    },
    "losses": {
        "assignment",
        "base",
        "domination_columns",
        "function",
        "gain_lists",
        "interval_qp",
        "pair_sampler",
        "pair_sums",
        "pav",
        "position_orders",
        "top_k",
        "topic_search",
    },
    "models": {
        "boosting",
        "callbacks",
        "factor_problem",
        "forest_scorer",
        "formula",
        "imported_trees",
        "linear_problem",
        "portable",
        "rules",
        "symmetric_trees",
        "tree_shap",
        "tree_text",
    },
    "solvers": {"choice", "oracle_log"},
}
FAMILIES = {"base", "boosting", "linear", "neural", "ratings", "structured", "trees"}  # of rankers


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("kind", SHARED)
def test_the_registry_key_is_the_name_of_the_file(kind):
    for name, target in registry.KINDS[kind].items():
        assert target.partition(":")[0] == f"rankwright.{kind}.{name}"


@pytest.mark.parametrize("kind", SHARED)
def test_every_file_of_a_registered_kind_is_in_the_registry(kind):
    files = {path.stem for path in (ROOT / kind).glob("*.py")} - {"__init__"}
    assert files - SHARED[kind] == set(registry.KINDS[kind])


def test_rankers_stand_together_by_family_and_all_are_registered():
    homes = {target.partition(":")[0] for target in registry.RANKERS.values()}
    assert homes == {f"rankwright.rankers.{family}" for family in FAMILIES}
    for family in FAMILIES:
        module = import_module(f"rankwright.rankers.{family}")
        here = {cls for cls in vars(module).values() if is_ranker_of(cls, module.__name__)}
        named = {registry.name_of("rankers", cls) for cls in here if "__init__" in vars(cls)}
        assert None not in named, family


def is_ranker_of(cls, module):
    return isinstance(cls, type) and issubclass(cls, Ranker) and cls.__module__ == module


def test_a_ranker_has_one_name_as_key_class_and_word_of_the_command_line():
    for key, cls in registry.all_of("rankers").items():
        assert cls.name == key
        assert cls.__name__.lower() == key.replace("_", "")
        assert type(ranker(key)) is cls


def test_a_loss_has_one_name_as_key_and_class():
    for key, cls in registry.all_of("losses").items():
        assert cls.__name__.lower() == key.replace("_", "")


def test_presets_hold_no_mathematics():
    for family in FAMILIES - {"base"}:
        text = (ROOT / "rankers" / f"{family}.py").read_text()
        assert "@kernel" not in text
        assert "numba" not in text


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_registered_part_can_be_imported_and_says_what_it_is(kind):
    for name in registry.KINDS[kind]:
        assert registry.resolve(kind, name).__doc__, name


def test_a_name_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"there is no metric 'ncdg'; did you mean ndcg"):
        registry.resolve("metrics", "ncdg")


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_every_file_opens_with_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_drawer_modules_and_no_parallel_kernels():
    assert not [path for path in SOURCES if path.stem in {"utils", "helpers", "misc", "common"}]
    assert not [path for path in SOURCES if "parallel=True" in path.read_text().split('"""')[-1]]


def test_each_module_of_core_and_data_has_its_test_file():
    tests = {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    modules = [p for kind in ("core", "data") for p in (ROOT / kind).glob("*.py")]
    untested = [p.stem for p in modules if not any(f"test_{p.stem}" in name for name in tests)]
    assert sorted(set(untested) - {"__init__", "types"}) == []

"""One thing, one file, one name: what the tree promises, checked."""

import ast
from pathlib import Path

import pytest

import rankwright
from rankwright import registry

ROOT = Path(rankwright.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
SHARED = {
    "metrics": {
        "along_line",
        "base",
        "convention",
        "evaluation",
        "function",
        "inputs",
        "names",
        "position",
        "ranked",
        "significance",
        "swap",
        "tied_swap",
    },
    "losses": {"base", "gain_lists"},
    "models": {
        "factor_problem",
        "fitted_expression",
        "fitted_factorization",
        "fitted_kernel",
        "fitted_network",
        "forest_scorer",
        "formula",
        "formula_breeding",
        "interrupt",
        "joint_features",
        "kernel_matrix",
        "linear_problem",
        "linear_sums",
        "linear_work",
        "mapped_watch",
        "missing",
        "network_design",
        "network_problem",
        "penalty",
        "rules",
        "tree_memory",
        "tree_text",
        "weight_rounds",
    },
    "solvers": {"journal", "quasi_newton"},
    "rankers": {
        "auto",
        "base",
        "candidates",
        "footprint",
        "inputs",
        "joint_convexity",
        "metric_ranker",
        "parameters",
        "recommender",
        "search_space",
        "selection",
    },
}
ONE_FILE_EACH = [kind for kind in SHARED if kind in registry.KINDS]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("kind", ONE_FILE_EACH)
def test_the_registry_key_is_the_name_of_the_file(kind):
    for name, target in registry.KINDS[kind].items():
        assert target.partition(":")[0] == f"rankwright.{kind}.{name}"


@pytest.mark.parametrize("kind", ONE_FILE_EACH)
def test_every_file_of_a_registered_kind_is_in_the_registry(kind):
    files = {path.stem for path in (ROOT / kind).glob("*.py")} - {"__init__"}
    assert files - SHARED[kind] == set(registry.KINDS[kind])


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


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_files_and_functions_stay_within_their_budgets_or_say_why_not(path):
    """300 lines, 40 for a function, 60 for a kernel, docstrings of functions aside."""
    text = path.read_text()
    lines = text.splitlines()
    assert_within(300, lines, "the file")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            budget = 60 if any("kernel" in ast.unparse(d) for d in node.decorator_list) else 40
            doc = (ast.get_docstring(node, clean=False) or "").splitlines()
            assert_within(budget, lines[node.lineno - 1 : node.end_lineno], node.name, len(doc))


def assert_within(budget, lines, name, aside=0):
    length = len(lines) - aside
    assert length <= 1.9 * budget, f"{name} has {length} lines"
    reason = f"# Over the budget of {budget} lines: "
    assert length <= budget or any(line.strip().startswith(reason) for line in lines), (
        f"{name} has {length} lines and does not say why: '{reason}…'"
    )


def test_no_drawer_modules_and_no_parallel_kernels():
    assert not [path for path in SOURCES if path.stem in {"utils", "helpers", "misc", "common"}]
    assert not [path for path in SOURCES if "parallel=True" in path.read_text().split('"""')[-1]]


def test_each_module_of_core_and_data_has_its_test_file():
    tests = {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    modules = [p for kind in ("core", "data") for p in (ROOT / kind).glob("*.py")]
    untested = [p.stem for p in modules if not any(f"test_{p.stem}" in name for name in tests)]
    assert sorted(set(untested) - {"__init__", "types"}) == []

"""Check what no linter knows of this project's sources: a part of ``make lint``.

Names of files, tests and registry entries, papers, paths named in the docs, and words. Each check
returns a line for each thing that is wrong, with where it is and what to do.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from rankwright import registry

ROOT = Path(__file__).resolve().parents[1]

# --- files and the registry -------------------------------------------------------------------

SHARED = {
    "metrics": "along_line base convention device evaluation ranked significance swap",
    "losses": "assignment base device domination_columns function gain_lists interval_qp "
    "pair_sampler pair_sums pav position_orders score_sums top_k topic_search",
    "models": "als best_items blend boosting callbacks factor_problem forest_scorer formula "
    "imported_trees linear_problem network_device portable rules schema symmetric_trees tree_shap "
    "tree_text",
    "solvers": "choice oracle_log",
}
"""Modules beside those with one registered part each."""
FAMILIES = ("base", "boosting", "linear", "neural", "ratings", "structured", "trees")
"""Modules that hold named rankers, which are presets."""
DRAWERS = {"utils", "helpers", "misc", "common"}


def registered_files(root: Path = ROOT) -> Iterator[str]:
    """One thing, one name: the registry key of a part is the name of its file."""
    package = root / "rankwright"
    for kind, shared in SHARED.items():
        for name, target in registry.KINDS[kind].items():
            if target.partition(":")[0] != f"rankwright.{kind}.{name}":
                yield f"rankwright/registry.py: {name} of {kind} must be in the module {name}"
        files = {path.stem for path in (package / kind).glob("*.py")} - {"__init__"}
        for name in sorted(files - set(shared.split()) - set(registry.KINDS[kind])):
            yield f"rankwright/{kind}/{name}.py is not in the registry, nor in SHARED of this tool"
    for family in FAMILIES:
        path = package / "rankers" / f"{family}.py"
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            written_out = isinstance(node, ast.ClassDef) and any(
                isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in node.body
            )
            target = f"rankwright.rankers.{family}:{getattr(node, 'name', '')}"
            if written_out and target not in registry.RANKERS.values():
                yield f"{_at(path, root, node)}: {target} is not in the registry"
        if family != "base" and ("@kernel" in text or "numba" in text):
            yield f"{path.relative_to(root)}: presets hold no mathematics; losses/ and models/ do"


def odd_modules(root: Path = ROOT) -> Iterator[str]:
    """No drawers, and no kernels that share their work among threads by themselves."""
    for path in sorted((root / "rankwright").rglob("*.py")):
        where = path.relative_to(root)
        if path.stem in DRAWERS:
            yield f"{where}: a name that says what is inside is needed"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and ast.unparse(node) == "parallel=True":
                yield f"{_at(path, root, node)}: parallel=True: see core/parallel.py for threads"


def static_names(root: Path = ROOT) -> Iterator[str]:
    """Type checkers see in a namespace what loads on first use."""
    for name in ("", ".clicks", ".data", ".losses", ".metrics", ".models", ".solvers", ".testing"):
        module = import_module(f"rankwright{name}")
        path = root / "rankwright" / name[1:] / "__init__.py"
        where = path.relative_to(root)
        seen = _type_checking_imports(ast.parse(path.read_text(encoding="utf-8")))
        for public in sorted(set(module.__all__) ^ set(seen)):
            yield f"{where}: {public} must be in both __all__ and the TYPE_CHECKING block"
        for public, origin in seen.items():
            found = import_module(f"rankwright.{public}" if origin == "rankwright" else origin)
            same = found if origin == "rankwright" else getattr(found, public)
            if same is not getattr(module, public, None):
                yield f"{where}: {public} of {origin} is not what is loaded"


def _type_checking_imports(tree: ast.Module) -> dict[str, str]:
    """Return the names that are exported again under TYPE_CHECKING -> their modules."""
    return {
        name.asname: str(one.module)
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for one in node.body
        if isinstance(one, ast.ImportFrom)
        for name in one.names
        if name.asname
    }


# --- tests ------------------------------------------------------------------------------------

TOPICS = {"contract", "differential", "docs", "engines"}
"""Folders of tests/ that go across modules; every other is named after what it mirrors."""
UNTESTED = {
    "rankwright/core/types.py": "protocols, which mypy checks",
    "rankwright/rankers/neural.py": "presets, which tests/contract/test_estimators.py walks",
    "rankwright/runtime.py": "names of persist/runtime.py",
}
"""Modules without a test of their own, and why."""
CHECKS = re.compile(
    r"(np\.testing\.|contract\.|pytest\.(raises|warns)|run_page)|.*\b_?(assert|check|refuse|says)"
)
"""Calls that fail where something does not hold, beside functions of the same file that assert."""


def names_of_tests(root: Path = ROOT) -> Iterator[str]:
    """Name the test of a module after it: ``test_store.py`` or ``test_store_<topic>.py``."""
    for folder in sorted({path.parent for path in (root / "tests").rglob("test_*.py")}):
        inside = folder.relative_to(root / "tests")
        if inside.as_posix() in TOPICS:
            continue
        beside = root / "rankwright" / inside
        beside = beside if beside.is_dir() else root / inside
        modules = {path.stem.strip("_") for path in beside.glob("*.py")}
        modules |= {path.stem for path in folder.glob("*.py")}  # helpers of the tests
        for path in sorted(folder.glob("test_*.py")):
            if not _named(path.stem, modules):
                yield f"{path.relative_to(root)} names no module of {beside.relative_to(root)}"
    for path in sorted((root / "rankwright").rglob("*.py")):
        where = path.relative_to(root)
        beside = root / "tests" / where.relative_to("rankwright").parent
        tested = any(_named(test.stem, {path.stem}) for test in beside.glob("test_*.py"))
        if not (tested or path.stem.startswith("__") or where.as_posix() in UNTESTED):
            yield f"{where} has no {(beside / f'test_{path.stem}.py').relative_to(root)}"
    for name in UNTESTED:
        if not (root / name).exists():
            yield f"tools/check_sources.py: UNTESTED names {name}, which is not there"


def _named(test: str, modules: set[str]) -> bool:
    return any(f"{test}_".startswith(f"test_{module}_") for module in modules)


def idle_tests(root: Path = ROOT) -> Iterator[str]:
    """Find tests that assert nothing, which cannot fail."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        helpers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for name, node in helpers.items():
            if name.startswith("test_") and not _checks(node, helpers, set()):
                yield f"{_at(path, root, node)}: {name} asserts nothing"


def _checks(node: ast.AST, helpers: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    """Whether something is asserted, here or in a function of the same file that is called."""
    for one in ast.walk(node):
        if isinstance(one, ast.Assert):
            return True
        if isinstance(one, ast.Call):
            name = ast.unparse(one.func)
            if CHECKS.match(name):
                return True
            if name in helpers and name not in seen:
                seen.add(name)
                if _checks(helpers[name], helpers, seen):
                    return True
    return False


# --- papers and paths -------------------------------------------------------------------------

CITED = re.compile(r"[`\[](?!mq)([a-z]+\d{4}[a-z]*)[`\]]")
NAMED = re.compile(
    r"(?<![\w/.-])((?:rankwright|reproducibility|tests|tools|benchmarks)/[\w/-]*\.py)\b"
)


def citations(root: Path = ROOT) -> Iterator[str]:
    """Every paper cited in the code has an entry."""
    bib = root / "rankwright" / "references.bib"
    known = set(re.findall(r"@\w+\{(\w+),", bib.read_text(encoding="utf-8")))
    for path in sorted((root / "rankwright").rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for key in set(CITED.findall(line)) - known:
                yield f"{path.relative_to(root)}:{number}: {key} is not in {bib.relative_to(root)}"


def named_paths(root: Path = ROOT) -> Iterator[str]:
    """Files that pages, the Makefile and CI name are there."""
    pages = [
        *root.glob("*.md"),
        *(root / "docs").glob("*.md"),
        *(root / "docs").glob("how-to/*.md"),
    ]
    for path in [root / "Makefile", root / "pyproject.toml", *sorted(pages)]:
        if path.name == "CHANGELOG.md":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for named in NAMED.findall(line):
                if not (root / named).exists():
                    yield f"{path.relative_to(root)}:{number}: there is no {named}"
    workflows = "".join(p.read_text(encoding="utf-8") for p in (root / ".github").rglob("*.yml"))
    if "make test-lowest" not in workflows:
        yield ".github/workflows: no job runs make test-lowest"


# --- words ------------------------------------------------------------------------------------

PRIVATE = {
    r"beyond luck|\bluck\b": "statistically significant, chance",
    r"\btold\b|\btell_of_\w+|\bis told\b": "reported, warned, warn_of_...",
    r"\blikeness(es)?\b": "kernel matrix",
    r"\bgive_back\b": "trim_memory",
    r"\bcome_to_round\b|\bnext_round\b": "set_iteration",
    r"\bfootprint\b|\bcheck_room\b": "memory_estimate, check_memory",
    r"\bnobody('s)?\b": "none, or name who does not",
    r"\bwhere somebody waits\b": "on an interactive terminal",
    r"\bput into words\b": "formatted",
    r"\bheld[ _]back\b": "holdout, validation set",
    r"\brivals?\b": "baselines",
    r"\bOver the budget\b": "nothing: files follow concepts, not line counts",
    r"\bmade-up data\b|\bmake up ranking data\b": "synthetic data, generate synthetic data",
    r"\bparted by\b": "separated by",
    r"\bnamed like a grade\b": "no label column found",
    r"\btells no format\b": "unknown file extension",
    r"\bthere is no parameter of\b": "X has no parameter 'y'",
    r"\bgo by most\b": "feature importance",
}
"""Words that were private to this project -> what to write; docs/glossary.md has those in use."""
SUFFIXES = (".py", ".md", ".toml", ".html", ".js", ".yml")
LEFT_OUT = (
    "CHANGELOG.md",
    "tools/check_sources.py",
    "docs/reproduction",
    "docs/benchmarks",
    "reproducibility/tables/",  # results are bound to these files as they are
    "tests/found/",
)
_EDGE = r"(?:(?<![a-z])(?=[a-z])|(?<=[a-z])(?![a-z]))"  # of a word, also between underscores
_ANY = re.compile(
    "|".join(f"(?:{pattern})" for pattern in PRIVATE).replace(r"\b", _EDGE), re.IGNORECASE
)


def private_words(root: Path = ROOT) -> Iterator[str]:
    """Code, messages and docs keep to the field's words."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in listed:
        if not name.endswith(SUFFIXES) or name.startswith(LEFT_OUT) or not (root / name).is_file():
            continue
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            for match in _ANY.finditer(line):
                yield f"{name}:{number}: '{match[0]}': write {_instead(match[0])}"


def _instead(word: str) -> str:
    fitting = (write for one, write in PRIVATE.items() if re.fullmatch(one, word, re.IGNORECASE))
    return next(fitting)


def _at(path: Path, root: Path, node: ast.AST) -> str:
    return f"{path.relative_to(root)}:{getattr(node, 'lineno', 1)}"


def main() -> int:
    """Print what was found; return the exit status."""
    checks = (
        registered_files,
        odd_modules,
        static_names,
        names_of_tests,
        idle_tests,
        citations,
        named_paths,
        private_words,
    )
    found = [line for check in checks for line in check()]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

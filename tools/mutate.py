"""Break functions on purpose and check whether a test notices: the strength of the test suite.

    python tools/mutate.py                      30 functions, three changes each
    python tools/mutate.py --seed 1 --only rankwright/data/trec.py

Functions are drawn from all packages in turn; kernels are included, which other mutation testers
skip because they are decorated. Each change is small: a comparison or sign reversed, a constant off
by one, a condition negated, a statement removed. It is made in a copy of the checkout; the tests of
the module run first, then those of its package, then the contract tests if they cover the package.
Changes that no test notices are listed at the end, and the exit status is 1. A change that keeps
the behaviour survives rightly: read the list.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXCLUDED = ("__repr__", "__init__", "main")
CONTRACT = ("losses", "metrics", "models", "rankers", "solvers", "testing", "persist")
"""Packages that the contract tests cover."""
CHANGES_EACH, LIMIT = 3, 900.0  # seconds of a run of pytest
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """A changed function: the file, the function and the whole changed text."""

    file: str
    function: str
    text: str

    def diff(self) -> str:
        """Return the changed lines."""
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


# --- changes ---------------------------------------------------------------------------------


def changes(function: ast.FunctionDef) -> list[tuple[ast.AST, str]]:
    """Return the nodes of a function's body that can be changed, with their replacements."""
    nodes = [node for statement in function.body for node in _code(statement)]
    return [(node, text) for node in nodes for text in _replacements(node)]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code, without annotations, docstrings and messages of errors."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.FunctionDef | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield node
    for name, child in ast.iter_fields(node):
        if name == "annotation":
            continue
        for part in child if isinstance(child, list) else [child]:
            if isinstance(part, ast.AST):
                yield from _code(part)


def _replacements(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        changed = ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        yield f"({ast.unparse(changed)})"
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield repr(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield "pass"
    elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        yield "return None"


def _replace(source: str, node: ast.AST, text: str) -> str:
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    return "".join([*lines[:first], head + text + tail, *lines[last + 1 :]])


def draw(count: int, seed: int, only: list[str]) -> list[Mutant]:
    """Draw functions from every package in turn; return three changes of each."""
    rng = random.Random(seed)
    packages: dict[Path, list[tuple[Path, str, ast.FunctionDef]]] = {}
    for path in sorted((ROOT / "rankwright").rglob("*.py")):
        if only and str(path.relative_to(ROOT)) not in only:
            continue
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef) or node.name in EXCLUDED:
                continue
            if len(changes(node)) >= CHANGES_EACH:
                packages.setdefault(path.parent, []).append((path, source, node))
    for functions in packages.values():
        rng.shuffle(functions)
    drawn: list[tuple[Path, str, ast.FunctionDef]] = []
    while len(drawn) < count and any(packages.values()):
        drawn += [functions.pop() for functions in packages.values() if functions]
    return [
        Mutant(str(path.relative_to(ROOT)), function.name, _replace(source, node, text))
        for path, source, function in drawn[:count]
        for node, text in rng.sample(changes(function), CHANGES_EACH)
    ]


# --- tests -----------------------------------------------------------------------------------


def stages(mutant: Mutant) -> list[list[str]]:
    """Return the test files to run in order: the module's, the package's, the contract tests."""
    module = Path(mutant.file)
    tests = ROOT / "tests" / module.parent.relative_to("rankwright")
    own = [*tests.glob(f"test_{module.stem}.py"), *tests.glob(f"test_{module.stem}_*.py")]
    others = [path for path in tests.glob("test_*.py") if path not in own]
    covered = module.parent.name in CONTRACT
    contract = [*(ROOT / "tests/contract").glob("test_*.py")] if covered else []
    groups = (own, others, contract)
    return [[str(path.relative_to(ROOT)) for path in sorted(paths)] for paths in groups if paths]


def first_failure(mutant: Mutant, copy: Path) -> str:
    """Run the tests on a changed copy; return the test that failed, or an empty text."""
    target = copy / mutant.file
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.text, encoding="utf-8")
    try:
        for paths in stages(mutant):
            if failure := _run_tests(paths, copy):
                return failure
    finally:
        target.write_text(original, encoding="utf-8")
    return ""


def _run_tests(paths: list[str], copy: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *paths]
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_WAIT_POLICY": "PASSIVE"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"no end after {LIMIT:.0f} s"
    if done.returncode in (0, 5):  # 5: no tests
        return ""
    summary = done.stdout.rpartition("short test summary info")[2]
    for line in summary.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].split(" - ")[0]
    return f"exit status {done.returncode}"


def main() -> int:
    """Draw, change, run and list; return 1 if a change was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="modules, instead of all")
    options = parser.parse_args()
    mutants = draw(options.functions, options.seed, options.only)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "build"))
        for number, mutant in enumerate(mutants, 1):
            failure = first_failure(mutant, copy)
            if not failure:
                survivors.append(mutant)
            outcome = failure or "SURVIVES"
            print(f"{number}/{len(mutants)} {mutant.file} {mutant.function}: {outcome}", flush=True)
    for mutant in survivors:
        print(f"\n{mutant.file} {mutant.function}\n{mutant.diff()}")
    print(f"{len(survivors)} of {len(mutants)} changes were not noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

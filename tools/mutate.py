"""Break functions on purpose and see whether a test notices: the strength of the test suite.

    python tools/mutate.py                      30 functions, three changes each
    python tools/mutate.py --seed 1 --only rankwright/data/trec.py

Functions are drawn from all packages in turn. Each change is a small one that a person could make:
a comparison or sign turned round, a constant off by one, a condition negated, a line left out. It
is made in a copy of the checkout; the tests of the module run first, then those of its package and
those that name the function, then the contract tests where they reach it. What no test notices is
listed last, and the exit status is 1. A change that leaves the behaviour as it was survives by
right: read the list.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import functools
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
NOT_OURS_TO_BREAK = ("__repr__", "__init__", "main")
CONTRACT = ("losses", "metrics", "models", "rankers", "solvers", "testing", "persist")
"""Packages whose modules the contract tests walk through."""
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
    """One changed function: the file, the function and the whole changed text."""

    file: str
    function: str
    text: str

    def diff(self) -> str:
        """Return the changed lines."""
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


# --- what is changed -------------------------------------------------------------------------


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods of a module that have something to change."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name not in NOT_OURS_TO_BREAK:
            yield node


def changes(function: ast.FunctionDef) -> list[tuple[ast.AST, str]]:
    """Return (node, what replaces it) for every change that can be made in a function's body."""
    found: list[tuple[ast.AST, str]] = []
    for statement in function.body:
        for node in _code(statement):
            found += [(node, new) for new in _replacements(node)]
    return found


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Walk over code alone: no annotation, no text, no sentence of an error."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.FunctionDef | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield node
    for name, child in ast.iter_fields(node):
        if name == "annotation":
            continue
        for one in child if isinstance(child, list) else [child]:
            if isinstance(one, ast.AST):
                yield from _code(one)


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


def mutants(path: Path, function: ast.FunctionDef, count: int, rng: random.Random) -> list[Mutant]:
    """Return `count` changes of a function, drawn without replacement."""
    source = path.read_text(encoding="utf-8")
    possible = changes(function)
    chosen = rng.sample(possible, min(count, len(possible)))
    name = str(path.relative_to(ROOT))
    return [Mutant(name, function.name, _replace(source, node, new)) for node, new in chosen]


def _replace(source: str, node: ast.AST, new: str) -> str:
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    return "".join([*lines[:first], head + new + tail, *lines[last + 1 :]])


def draw(count: int, seed: int, only: list[str]) -> list[Mutant]:
    """Draw functions from every package in turn and return three changes of each."""
    rng = random.Random(seed)
    packages: dict[str, list[tuple[Path, ast.FunctionDef]]] = {}
    for path in sorted((ROOT / "rankwright").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if not only or name in only:
            listed = [(path, one) for one in functions(path) if len(changes(one)) >= 3]
            packages.setdefault(str(path.parent), []).extend(listed)
    for listed in packages.values():
        rng.shuffle(listed)
    drawn: list[tuple[Path, ast.FunctionDef]] = []
    while len(drawn) < count and any(packages.values()):
        drawn += [listed.pop() for listed in packages.values() if listed]
    return [one for path, node in drawn[:count] for one in mutants(path, node, 3, rng)]


# --- which tests see it ----------------------------------------------------------------------


def stages(mutant: Mutant) -> list[list[str]]:
    """Return the test files to run: the module's own, then those that name it or the function."""
    module = Path(mutant.file)
    tests = ROOT / "tests" / module.parent.relative_to("rankwright")
    own = sorted(tests.glob(f"test_{module.stem}.py")) + sorted(
        tests.glob(f"test_{module.stem}_*.py")
    )
    imported = ".".join(module.with_suffix("").parts)
    words = [imported]
    if sum(f"def {mutant.function}(" in text for text in _sources()) == 1:
        words += [f"{mutant.function}(", f"{mutant.function},"]
    others = sorted(
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if path not in own
        and (path.parent == tests or any(word in path.read_text("utf-8") for word in words))
    )
    contract = sorted((ROOT / "tests/contract").glob("test_*.py"))
    walked = module.parent.name in CONTRACT
    listed = [own, [path for path in others if path not in contract], contract if walked else []]
    return [[str(path.relative_to(ROOT)) for path in paths] for paths in listed if paths]


@functools.cache
def _sources() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (ROOT / "rankwright").rglob("*.py")]


def killed(mutant: Mutant, copy: Path, limit: float, *, own: bool) -> str:
    """Run the tests on a changed copy; return the test that noticed, or "" where none did."""
    target = copy / mutant.file
    original = target.read_text(encoding="utf-8")
    for paths in stages(mutant)[: 1 if own else None]:
        left_out: list[str] = []
        while True:
            target.write_text(mutant.text, encoding="utf-8")
            try:
                failed = _first_failure([*paths, *left_out], copy, limit)
            finally:
                target.write_text(original, encoding="utf-8")
            if not failed:
                break
            if "::" not in failed or not _first_failure([failed], copy, limit):
                return failed
            left_out.append(f"--deselect={failed}")  # it fails in a copy without the change, too
    return ""


def _first_failure(arguments: list[str], copy: Path, limit: float) -> str:
    """Run pytest up to the first failure and return its id, or what else went wrong."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    own = {"PYTHONPATH": str(copy), "OMP_WAIT_POLICY": "PASSIVE"}
    try:
        ran = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {limit:.0f} s"
    if ran.returncode in (0, 5):
        return ""
    summary = ran.stdout.rpartition("short test summary info")[2]  # logs above it have ERROR, too
    for line in summary.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].split(" - ")[0]
    return f"exit status {ran.returncode}"


def main() -> int:
    """Draw, break, run and list; return 1 where a change was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="modules, instead of all")
    parser.add_argument("--own", action="store_true", help="run the module's own tests alone")
    parser.add_argument("--part", default="1/1", help="such as 1/2: every other change")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one stage of tests")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    drawn = draw(options.functions, options.seed, options.only)[part - 1 :: parts]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "build"))
        for number, mutant in enumerate(drawn, 1):
            seen = killed(mutant, copy, options.limit, own=options.own)
            if not seen:
                survivors.append(mutant)
            said = seen or "SURVIVES"
            print(f"{number}/{len(drawn)} {mutant.file} {mutant.function}: {said}", flush=True)
    for mutant in survivors:
        print(f"\n{mutant.file} {mutant.function}\n{mutant.diff()}")
    print(f"{len(survivors)} of {len(drawn)} changes were not noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

"""Functions have annotations; only kernels, whose types Numba infers, have none."""

import ast
from pathlib import Path

import rankwright

PACKAGE = Path(rankwright.__file__).parent
OF_TEAMS = {"_over_team_by_warps", "_over_team_by_halves"}  # core/cuda.py compiles one of the two


def is_kernel(function):
    names = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(name.endswith("kernel") or name.startswith("cuda.jit") for name in names)


def without_annotations(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if is_kernel(node) or node.name in OF_TEAMS:
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            unnamed = [
                a for a in arguments if a.annotation is None and a.arg not in ("self", "cls")
            ]
            if node.returns is None or unnamed:
                yield node


def test_only_kernels_have_no_annotations():
    missing = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in without_annotations(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert missing == []

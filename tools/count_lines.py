"""Print the size of the repository: code lines of each package and folder, words of docs, files.

Blank lines, comments and docstrings are not counted. With ``--compare TREE``, the checkout of
another version, each row begins with the figure of that version::

    python tools/count_lines.py --compare ../rankwright-0.2.0
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

OTHERS = ("tests", "tools", "benchmarks", "reproducibility", "fuzz")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """Return the number of lines of a Python file that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def git(tree: Path, *arguments: str) -> str:
    """Return what a command of git prints."""
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def sizes(tree: Path) -> dict[str, int]:
    """Return each figure of a checkout by the name of its row."""
    files = [tree / name for name in git(tree, "ls-files", "-z").split("\0") if name]
    packages: Counter[str] = Counter()
    others = Counter(dict.fromkeys(OTHERS, 0))
    words = 0
    for file in files:
        if file.suffix not in (".py", ".md") or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8")
        folder, *below = file.relative_to(tree).parts
        if file.suffix == ".md":
            words += len(text.split()) if folder == "docs" else 0
        elif folder == "rankwright":
            package = below[0] if len(below) > 1 else "*.py"
            packages[f"rankwright/{package}"] += code_lines(text)
        elif folder in OTHERS:
            others[folder] += code_lines(text)
    return {
        **dict(sorted(packages.items())),
        "rankwright, together": packages.total(),
        **others,
        "words of .md in docs": words,
        "files in git": len(files),
        "kB of a clone": int(git(tree, "rev-list", "--objects", "--disk-usage", "HEAD")) // 1000,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", type=Path, metavar="TREE", help="checkout of another version")
    options = parser.parse_args()
    trees = [Path(__file__).resolve().parents[1]]
    if options.compare is not None:
        trees.insert(0, options.compare.resolve())
    columns = [sizes(tree) for tree in trees]
    for name in dict.fromkeys(name for column in columns for name in column):
        figures = [f"{column.get(name, 0):>9,}" for column in columns]
        print(f"{name:<26}{''.join(figures)}")


if __name__ == "__main__":
    main()

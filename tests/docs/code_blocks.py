"""The fenced blocks of a page of Markdown, and how to run them as a reader would."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from io import StringIO
from pathlib import Path

from command import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = ("console", "bash", "sh", "shell")
NOT_RUN = {}
"""Lines that are shown and cannot be run in a test, with the reason."""

OWN_PROCESS = ("--dask", "--memory")
"""Options whose commands get a process of their own: workers are started, memory is bounded."""

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line of the page that it begins on."""

    language: str
    text: str
    line: int

    @property
    def commands(self):
        """The lines of a shell block, without a prompt or what a comment says."""
        lines = [_COMMENT.sub("", line).removeprefix("$ ") for line in self.text.splitlines()]
        return [line for line in lines if line.strip()]


def blocks(page):
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 2)
        for match in _FENCE.finditer(text)
    ]


def run_page(page, folder, names):
    """Run all Python and shell blocks of a page in ``folder``, Python in one namespace.

    A failing Python block shows the page's own line, as it is compiled under the page's name. An
    ``output`` block has what the blocks since the last one print, ``...`` standing for anything.
    """
    printed = ""
    for number, block in enumerate(blocks(page)):
        if block.language == "python":
            file = folder / f"block{number}.py"  # kernels are cached by the file they stand in
            file.write_text("\n" * (block.line - 1) + block.text, encoding="utf-8")
            with redirect_stdout(StringIO()) as said:
                exec(compile(file.read_text(), str(file), "exec"), names)  # noqa: S102
            printed += said.getvalue()
        elif block.language in SHELL:
            for command in block.commands:
                if command not in NOT_RUN:
                    printed += run_command(command, folder, installed=page.name == "README.md")
        elif block.language == "output":
            rules = ELLIPSIS | NORMALIZE_WHITESPACE
            same = OutputChecker().check_output(block.text, printed, rules)
            assert same, f"{page.name}, line {block.line}: what is printed is\n{printed}"
            printed = ""


def run_command(command, folder, *, installed=False):
    """Run one line ``rankwright ...`` in ``folder``; it must succeed. Returns what it prints.

    ``installed`` runs the script that a reader has, in a process of its own for each line.
    """
    program, *arguments = shlex.split(command)
    assert program == "rankwright", f"only rankwright is run, not '{command}'"
    if not installed:
        with chdir(folder):
            return run(*arguments, alone=any(option in arguments for option in OWN_PROCESS)).stdout
    script = Path(sys.executable).with_name("rankwright")
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [script, *arguments], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}{done.stdout}"
    return done.stdout

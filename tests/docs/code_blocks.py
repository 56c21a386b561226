"""The fenced blocks of a page of Markdown, and how to run them as a reader would."""

import re
import shlex
import subprocess
import sys
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from io import StringIO
from pathlib import Path

from command import run
from server_process import serving

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = ("console", "bash", "sh", "shell")
OWN_PROCESS = ("--dask",)
"""Options whose commands get a process of their own: workers are started."""

_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([\w.-]+)"')
_COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line of the page that it begins on.

    One with a ``file`` (its title) is a file that the reader saves, and is not run by itself.
    """

    language: str
    text: str
    line: int
    file: str = ""

    @property
    def commands(self):
        """The commands of a shell block, without a prompt or what a comment says.

        A command ends with its line, or where its last quotation mark closes.
        """
        found, begun = [], ""
        for line in self.text.splitlines():
            begun += _COMMENT.sub("", line).removeprefix("$ ")
            if begun.count("'") % 2:
                begun += "\n"
                continue
            if begun.strip():
                found.append(begun)
            begun = ""
        return found


def blocks(page):
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[3], text.count("\n", 0, match.start()) + 2, _title(match[2]))
        for match in _FENCE.finditer(text)
    ]


def _title(options):
    found = _TITLE.search(options)
    return found[1] if found else ""


def run_page(page, folder, names):
    """Run all Python and shell blocks of a page in ``folder``, Python in one namespace.

    A failing Python block shows the page's own line, as it is compiled under the page's name. An
    ``output`` block has what the blocks since the last one print, ``...`` standing for anything.
    ``rankwright serve MODEL &`` serves until the end of the page, for the lines of curl below it.
    """
    with ExitStack() as until_the_end:
        until_the_end.enter_context(modules_of(folder))
        _run_blocks(page, folder, names, until_the_end)


@contextmanager
def modules_of(folder):
    """Find modules in ``folder``, as Python does where it is started; forget them at the end."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


def _run_blocks(page, folder, names, until_the_end):
    printed, server = "", None
    for number, block in enumerate(blocks(page)):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            file = folder / f"block{number}.py"  # kernels are cached by the file they stand in
            file.write_text("\n" * (block.line - 1) + block.text, encoding="utf-8")
            with redirect_stdout(StringIO()) as said:
                exec(compile(file.read_text(), str(file), "exec"), names)  # noqa: S102
            printed += said.getvalue()
        elif block.language in SHELL:
            for command in block.commands:
                if command.startswith("rankwright serve ") and command.endswith(" &"):
                    server = until_the_end.enter_context(serving(*shlex.split(command)[2:-1]))
                elif command.startswith("curl "):
                    printed += run_curl(command, server)
                else:
                    printed += run_command(command, folder)
        elif block.language == "output":
            rules = ELLIPSIS | NORMALIZE_WHITESPACE
            same = OutputChecker().check_output(block.text, printed, rules)
            assert same, f"{page.name}, line {block.line}: what is printed is\n{printed}"
            printed = ""


def run_curl(command, server):
    """Run a line of curl against ``server``, which has a free port in place of 8000."""
    here = command.replace("localhost:8000", f"127.0.0.1:{server.port}")
    assert here != command, f"only the page's own server is asked, not '{command}'"
    done = subprocess.run(shlex.split(here), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def run_command(command, folder):
    """Run one line ``rankwright ...`` in ``folder``; it must succeed. Returns what it prints."""
    program, *arguments = shlex.split(command)
    assert program == "rankwright", f"only rankwright is run, not '{command}'"
    with chdir(folder):
        return run(*arguments, alone=any(option in arguments for option in OWN_PROCESS)).stdout

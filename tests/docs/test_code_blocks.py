"""Every code block of the README and of docs/ runs as it stands."""

import sys

import pytest
from cases import each
from code_blocks import PAGES, ROOT, SHELL, blocks, run_page
from prepared import of

RUNNABLE = [page for page in PAGES if any(b.language in ("python", *SHELL) for b in blocks(page))]


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWRIGHT_THREADS", "1")
    run_page(page, tmp_path, of(page, tmp_path))


@each("page", PAGES)
def test_a_block_that_could_run_says_its_language(page):
    for block in blocks(page):
        if block.language not in ("python", *SHELL):
            lines = block.text.splitlines()
            assert not any(line.startswith(("rankwright ", "import ")) for line in lines), block


def test_the_blocks_of_a_page_are_found_with_their_lines(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nx = 1\n```\n\n```console\n$ rankwright list  # all\n```\n")
    python, shell = blocks(page)
    assert (python.language, python.text, python.line) == ("python", "x = 1\n", 4)
    assert shell.commands == ["rankwright list"]


def test_a_block_with_a_title_is_a_file_that_later_blocks_import(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '```python title="mine_of_a_page.py"\nprint("not run by itself")\nanswer = 42\n```\n'
        "```python\nimport os\n```\n```output\n```\n"
        "```python\nimport mine_of_a_page\nfound.append(mine_of_a_page.answer)\n```\n"
    )
    found = []
    run_page(page, tmp_path, {"found": found})
    assert found == [42]
    assert "mine_of_a_page" not in sys.modules

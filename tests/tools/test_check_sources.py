"""The checks of ``make lint`` that no linter has: each finds what was put there to be found."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import check_sources

    return check_sources


@pytest.fixture
def tree(tmp_path):
    """A small project: write its files by their paths."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_a_test_that_names_no_module_and_a_module_without_a_test(tool, tree, monkeypatch):
    monkeypatch.setattr(tool, "UNTESTED", {})
    root = tree(
        rankwright__data__store_py="",
        rankwright__data__files_py="",
        tests__data__test_store_topic_py="",
        tests__data__test_odd_py="",
        tests__docs__test_anything_py="",
    )
    assert list(tool.names_of_tests(root)) == [
        "tests/data/test_odd.py names no module of rankwright/data",
        "rankwright/data/files.py has no tests/data/test_files.py",
    ]
    monkeypatch.setattr(tool, "UNTESTED", {"rankwright/data/gone.py": "it was there"})
    assert list(tool.names_of_tests(root))[-1].endswith("data/gone.py, which is not there")


def test_a_test_that_asserts_nothing(tool, tree):
    text = """
def holds(x): assert x
def shows(x): print(x)
def test_a(): assert True
def test_b(): holds(1)
def test_c():
    with pytest.raises(KeyError): {}[0]
def test_d(): np.testing.assert_allclose(1, 1)
def test_idle():
    def fail(): raise KeyError
    shows(1)
"""
    root = tree(tests__test_store_py=text)
    assert list(tool.idle_tests(root)) == ["tests/test_store.py:9: test_idle asserts nothing"]


def test_a_drawer_and_a_kernel_with_threads_of_its_own(tool, tree):
    root = tree(
        rankwright__utils_py="",
        rankwright__fast_py='"""No parallel=True."""\nf = jit(parallel=True)',
    )
    assert list(tool.odd_modules(root)) == [
        "rankwright/fast.py:2: parallel=True: see core/parallel.py for threads",
        "rankwright/utils.py: a name that says what is inside is needed",
    ]


def test_a_paper_without_an_entry_and_a_path_that_is_not_there(tool, tree):
    root = tree(rankwright__loss_py='"""By `cao2007listnet` and `noone2001paper`."""')
    (root / "rankwright" / "references.bib").write_text("@inproceedings{cao2007listnet,\n}\n")
    assert list(tool.citations(root)) == [
        "rankwright/loss.py:1: noone2001paper is not in rankwright/references.bib"
    ]
    (root / "Makefile").write_text("LOWEST := tests/gone.py rankwright/loss.py\n")
    (root / "pyproject.toml").write_text("")
    assert list(tool.named_paths(root)) == [
        "Makefile:1: there is no tests/gone.py",
        ".github/workflows: no job runs make test-lowest",
    ]


def test_a_private_word_is_answered_with_the_usual_one(tool, tree):
    word = "foot" + "print"
    root = tree(rankwright__store_py=f'"""The {word} of data."""\n\n\ndef its_{word}(): ...\n')
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    assert list(tool.private_words(root)) == [
        f"rankwright/store.py:{line}: '{word}': write memory_estimate, check_memory"
        for line in (1, 4)
    ]


def test_a_part_that_is_not_registered_under_the_name_of_its_file(tool, monkeypatch):
    losses = {**tool.registry.LOSSES, "listnet": "rankwright.losses.listmle:ListNet"}
    del losses["squared"]
    monkeypatch.setitem(tool.registry.KINDS, "losses", losses)
    assert list(tool.registered_files()) == [
        "rankwright/registry.py: listnet of losses must be in the module listnet",
        "rankwright/losses/squared.py is not in the registry, nor in SHARED of this tool",
    ]


def test_a_public_name_that_type_checkers_do_not_see(tool, monkeypatch):
    import rankwright.losses

    monkeypatch.setattr(rankwright.losses, "__all__", [*rankwright.losses.__all__, "Extra"])
    assert list(tool.static_names()) == [
        "rankwright/losses/__init__.py: Extra must be in both __all__ and the TYPE_CHECKING block"
    ]

"""Formats are found by their suffixes, and only the one that is used is imported."""

import ast
import inspect
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from command import run_json
from small_data import small_data

import rankwright.data
from rankwright import registry
from rankwright.data.files import Converted, save_parts
from rankwright.data.formats import format_named, format_of
from rankwright.errors import PluginError, UsageError

IMPORTED = """
import sys
from rankwright.data.files import load
print(load(sys.argv[1]).n_documents)
print(*sorted(name for name in sys.modules if name.startswith("rankwright.data.")))
"""


def test_reading_letor_text_imports_no_other_format_of_text_or_tables(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    command = [sys.executable, "-c", IMPORTED, str(file)]
    documents, names = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert documents == "2"
    imported = {name.removeprefix("rankwright.data.") for name in names.split()}
    assert "letor" in imported
    assert not imported & {"tables", "lightgbm", "trec"}


def test_a_suffix_belongs_to_one_format_alone():
    suffixes = [suffix for every in registry.EXTENSIONS.values() for suffix in every]
    assert len(suffixes) == len(set(suffixes))
    assert registry.EXTENSIONS.keys() == registry.FORMATS.keys()


@pytest.mark.parametrize("name", registry.FORMATS)
def test_a_format_has_the_suffixes_by_which_it_is_found(name):
    for suffix in format_named(name).extensions:
        assert format_of(f"data{suffix}", for_writing=True) == name
        assert format_of(f"data{suffix}.gz", for_writing=True) == name


@pytest.mark.parametrize("name", registry.FORMATS)
def test_a_format_declares_the_options_of_its_reader_and_writer(name):
    declared = format_named(name)
    assert declared.description
    for function, options in (
        (declared.read, declared.read_options),
        (declared.write, declared.write_options),
    ):
        parameters = inspect.signature(function).parameters.values() if function else ()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):  # a dataclass has the options
            assert options == tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def test_a_plug_in_that_is_not_a_format_is_refused_and_others_are_found(monkeypatch):
    entries = [EntryPoint("old", "json:JSONDecoder", "rankwright.formats")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    registry.plugins.cache_clear()
    try:
        with pytest.raises(
            PluginError, match=r"'old' of the package json is not a rankwright\.data"
        ):
            format_named("old")
        with pytest.raises(UsageError, match=r"unknown file extension '\.what'"):
            format_of("data.what", for_writing=True)
        listed = run_json("list", "formats")["formats"]
        assert listed["old"].startswith("broken: the format 'old'")
    finally:
        monkeypatch.undo()
        registry.plugins.cache_clear()


def test_an_unknown_suffix_lists_the_formats():
    with pytest.raises(UsageError, match=r"extension '\.what'.*letor \(\.txt \.letor"):
        format_of("data.what", for_writing=True)


def test_parts_that_are_written_are_counted_and_their_loss_is_warned_of_once(tmp_path):
    parts = [
        small_data(queries=n, documents=3, features=2, feature_names=("a", "b")) for n in (4, 1)
    ]
    target = tmp_path / "all.txt"
    with pytest.warns(UserWarning, match="'letor' cannot hold feature_names: left out") as warned:
        found = save_parts(iter(parts), target)
    assert found == Converted("parts", str(target), queries=5, documents=15, features=2)
    assert len(warned) == 1
    assert len(target.read_text().splitlines()) == 15


def test_no_function_of_this_package_imports_another_module_of_it():
    """Such an import would hide a cycle."""
    for path in Path(rankwright.data.__file__).parent.glob("*.py"):
        functions = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
        ]
        modules = [
            node.module
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom) and node.module
        ]
        assert not [name for name in modules if name.startswith("rankwright.data")], path.name

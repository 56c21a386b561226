"""Examples that ``make soak`` found: kept in tests/found/, and replayed by every later run.

A file there is JSON: the test, the arguments it failed on as Python literals, and what it said.
`keep` writes one when a property test fails under the profile "soak"; `replay` hands those of a
test to Hypothesis as explicit examples, as ``@example`` would. Arguments that are no literals
(arrays, ``st.data()``) cannot be kept; their failure is printed with its seed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example

FOLDER = Path(__file__).parent / "found"
_FAILING = re.compile(r"(?:Falsifying example|Failing test case): (.*)", re.DOTALL)


def keep(item: pytest.Item, error: BaseException, folder: Path = FOLDER) -> Path | None:
    """Write the example that a property test failed on; None where it cannot be written."""
    given = getattr(getattr(item, "obj", None), "hypothesis", None)
    if given is None:
        return None
    arguments = falsifying_arguments(getattr(error, "__notes__", ()), names=given._given_kwargs)
    if arguments is None:
        return None
    entry = {"test": _test(item), "arguments": arguments, "said": _said(error)}
    digest = hashlib.sha256(f"{entry['test']} {arguments}".encode()).hexdigest()[:12]
    path = folder / f"{item.obj.__name__}-{digest}.json"
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
    return path


def falsifying_arguments(notes: Iterable[str], names: Iterable[str]) -> dict[str, str] | None:
    """Return the sampled arguments in Hypothesis's note "Failing test case: test(a=1,)"."""
    call_of = next((found[1] for note in notes if (found := _FAILING.match(note))), "")
    try:
        call = ast.parse(call_of, mode="eval").body
        written = {one.arg: one.value for one in call.keywords}  # type: ignore[attr-defined]
        chosen = {name: ast.unparse(written[name]) for name in names}
        for literal in chosen.values():
            ast.literal_eval(literal)
    except (SyntaxError, ValueError, KeyError, AttributeError):
        return None
    return chosen


def replay(items: Iterable[pytest.Item], folder: Path = FOLDER) -> None:
    """Give each test the examples that were found for it."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    tests = {_test(item): item.obj for item in items if hasattr(item, "obj")}
    for entry in found:
        if entry["test"] in tests:
            example(**_values(entry["arguments"]))(tests[entry["test"]])


def _values(arguments: Mapping[str, str]) -> dict[str, Any]:
    return {name: ast.literal_eval(text) for name, text in arguments.items()}


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]

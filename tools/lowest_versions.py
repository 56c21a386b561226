"""Print the lowest versions of the dependencies as a constraints file for pip.

    python tools/lowest_versions.py > lowest.txt
    pip install --constraint lowest.txt --editable . pytest

They are the lower bounds of pyproject.toml: of the core dependencies, and of the extras that are
named as arguments.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?>=(?P<version>[0-9.]+)")


def lowest(*extras: str) -> list[str]:
    """Return a pin for each dependency of the core and of ``extras``."""
    path = Path(__file__).parent.parent / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    needed = list(project["dependencies"])
    for extra in extras:
        needed += project["optional-dependencies"][extra]
    pins = []
    for requirement in needed:
        found = _BOUND.fullmatch(requirement)
        if found is None:
            raise SystemExit(f"{requirement} has no lower bound, or more than one.")
        pins.append(f"{found['name']}=={found['version']}")
    return pins


if __name__ == "__main__":
    print("\n".join(lowest(*sys.argv[1:])))

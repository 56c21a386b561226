"""Run the benchmarks and hold them to their floors: ``python benchmarks/run.py [AREA ...]``.

Each area is a file beside this one with ``run() -> dict[str, float]``; every figure is a ratio
against a peer measured in the same run. ``floors.toml`` gives the least (or the most) allowed.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def main(areas: list[str]) -> int:
    """Run ``areas`` (all by default), print and save the figures; return the exit status."""
    floors = tomllib.loads((HERE / "floors.toml").read_text())
    unknown = [area for area in areas if area not in floors]
    if unknown:
        print(f"there is no area {unknown[0]}; known: {', '.join(floors)}", file=sys.stderr)
        return 2
    missed = 0
    for area in areas or floors:
        figures = _module(area).run()
        missed += _report(area, figures, floors[area])
        _save(area, figures)
    return 1 if missed else 0


def _module(area: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmarks.{area}", HERE / f"{area}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report(area: str, figures: dict[str, float], floors: dict[str, dict[str, float]]) -> int:
    missed = 0
    for name, value in figures.items():
        bounds = floors.get(name, {})
        ok = bounds.get("least", value) <= value <= bounds.get("most", value)
        missed += not ok
        bound = ", ".join(f"{kind} {limit}" for kind, limit in bounds.items()) or "reported"
        print(f"{area:10s} {name:36s} {value:10.2f}   ({bound}){'' if ok else '   SHORT'}")
    for name in floors.keys() - figures.keys():
        missed += 1
        print(f"{area:10s} {name:36s} was not measured   SHORT")
    return missed


def _save(area: str, figures: dict[str, float]) -> None:
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    about = {"python": platform.python_version(), "machine": platform.machine()}
    record = {"area": area, "when": time.strftime("%Y-%m-%dT%H:%M:%S"), **about, "figures": figures}
    (folder / f"{area}.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

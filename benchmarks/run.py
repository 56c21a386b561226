"""Run the benchmarks and hold them to their floors: ``python -m benchmarks [AREA ...]``.

Each area is a file beside this one with ``run()``, which returns `Findings`, or only its figures:
ratios against peers of the same run. Every area has a process of its own, so that one that crashes
ends alone. ``floors.toml`` gives the least (or the most) allowed; the run fails below a floor, and
where a peer or an area fails. A floor whose peer or data is not there is reported, and is no error.
Results go to a folder, a JSON file per area, and a page beside it is written from all of them.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import platform
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

from .contest import reason, version
from .data_sets import NotHereError
from .findings import Findings
from .timing import apart

HERE = Path(__file__).resolve().parent
WHOLE = "the whole area"


def main(areas: list[str], *, results: Path, folder: Path = HERE) -> int:
    """Run ``areas`` (all by default), print, save and make the page; return the exit status."""
    floors = tomllib.loads((folder / "floors.toml").read_text(encoding="utf-8"))
    unknown = [area for area in areas if area not in floors]
    if unknown:
        print(f"there is no area {unknown[0]}; known: {', '.join(floors)}", file=sys.stderr)
        return 2
    faults = []
    for area in areas or floors:
        print(f"--- {area}", flush=True)
        started = time.perf_counter()
        path = folder / f"{area}.py"
        found = measured(path)
        faults += report(area, found, floors[area])
        if WHOLE in found.absent and (results / f"{area}.json").exists():
            continue  # what another machine has found stays
        save(results, path, found, floors=floors[area], seconds=time.perf_counter() - started)
    from .page import write

    for path in [] if areas else results.glob("*.json"):
        if path.stem not in floors:
            path.unlink()  # of an area that is no more
    print(f"page: {write(results)}")
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


def measured(path: Path) -> Findings:
    """Return what the area at ``path`` finds in a process of its own."""
    try:
        return apart(_findings, path)
    except NotHereError as fault:
        return Findings(absent={WHOLE: str(fault)})
    except Exception as fault:  # a process that died is a BrokenProcessPool
        wanted = (getattr(fault, "name", None) or "").partition(".")[0]
        if isinstance(fault, ModuleNotFoundError) and wanted not in ("rankwright", "benchmarks"):
            return Findings(absent={WHOLE: f"{wanted} is not installed"})
        return Findings(failed={WHOLE: reason(fault)})


def report(area: str, found: Findings, floors: dict[str, dict[str, float]]) -> list[str]:
    """Print what was found beside its floors; return a sentence for each fault."""
    faults = []
    for one in found.records:
        print(f"{area:13s} {one.task}: {one.peer} {one.version}{_amounts(one)}  [{one.settings}]")
    for line in found.curves:
        print(f"{area:13s} {line.task} over {line.axis}: {line.peer} slope {line.slope:.2f}")
    for name, value in found.figures.items():
        bounds = floors.get(name, {})
        ok = bounds.get("least", value) <= value <= bounds.get("most", value)  # NaN: no
        if not ok:
            faults.append(f"{area}: {name} is {value:.4g}, allowed is {_bounds(bounds)}")
        allowed = _bounds(bounds) or "reported"
        print(f"{area:13s} {name:40s} {value:10.3f}   ({allowed}){'' if ok else '   SHORT'}")
    for name in sorted(floors.keys() - found.figures.keys()):
        print(f"{area:13s} {name:40s} was not measured")
        if not found.absent and not found.failed:
            faults.append(f"{area}: {name} has a floor and was not measured")
    for peer, why in found.absent.items():
        print(f"{area:13s} without {peer}: {why}")
    for peer, why in found.failed.items():
        print(f"{area:13s} {peer} FAILED: {why}")
        faults.append(f"{area}: {peer} failed: {why}")
    return faults


def save(
    folder: Path, path: Path, found: Findings, *, floors: dict[str, Any], seconds: float
) -> None:
    """Write the JSON file of the area at ``path``."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "area": path.stem,
        "about": ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "",
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds, 1),
        "machine": machine(),
        "rankwright": version("rankwright"),
        "floors": floors,
    }
    text = json.dumps({**about, **found.as_json()}, indent=1, allow_nan=True) + "\n"
    partial = folder / f"{path.stem}.json.part"
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, folder / f"{path.stem}.json")


def machine() -> dict[str, Any]:
    """Return what times depend on, in general words."""
    names = [
        line.partition(":")[2].strip()
        for line in _lines(Path("/proc/cpuinfo"))
        if line.startswith("model name")
    ]
    memory = next((line for line in _lines(Path("/proc/meminfo")) if "MemTotal" in line), "")
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gigabytes": round(int(memory.split()[1]) / 2**20) if memory else None,
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _findings(path: Path) -> Findings:
    found = _module(path).run()
    return found if isinstance(found, Findings) else Findings(found)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{__package__}.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # what it hands to processes is found by name
    spec.loader.exec_module(module)
    return module


def _bounds(bounds: dict[str, float]) -> str:
    return ", ".join(f"{kind} {limit}" for kind, limit in bounds.items())


def _amounts(one: Any) -> str:
    text = "" if one.seconds is None else f" {one.seconds:.4g} s"
    text += "" if one.quality is None else f", {one.quality:.4f} {one.measure}"
    return text + ("" if one.peak_megabytes is None else f", {one.peak_megabytes:.0f} MB")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []

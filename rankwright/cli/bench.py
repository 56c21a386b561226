"""``rankwright bench``: speed and quality against other tools, measured here."""

from __future__ import annotations

import json as text_of
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwright.cli import console
from rankwright.errors import UsageError
from rankwright.registry import unknown


def bench(
    areas: Annotated[
        list[str] | None,
        typer.Argument(metavar="AREA", help="Such as load, metrics, trees; all by default."),
    ] = None,
    results: Annotated[
        Path,
        typer.Option(metavar="DIR", help="A JSON file per area goes here, the page to DIR.md."),
    ] = Path("benchmark-results"),
    json: console.JsonOption = False,
) -> None:
    """Measure Rankwright beside LightGBM, XGBoost, CatBoost, scikit-learn, ranx and others.

    Whoever is installed takes part, in turns, on the same data; ``pip install rankwright[bench]``
    brings them. Exits with 1 where a figure misses its floor or a tool fails. All areas together
    take some thirty minutes on two cores.
    """
    package, known = _benchmarks()
    chosen = areas or known
    for area in chosen:
        if area not in known:
            raise UsageError(unknown("area", area, known))
    for area in chosen:  # what an earlier run found is not what this one does
        (results / f"{area}.json").unlink(missing_ok=True)
    # A process of its own: nothing that the command line has loaded weighs on what is measured.
    command = [sys.executable, "-m", package, *(areas or []), "--results", str(results)]
    status = subprocess.run(command, stdout=sys.stderr if json else None, check=False).returncode
    if json:
        found = {area: _result(results / f"{area}.json") for area in chosen}
        page = str(results.with_name(f"{results.name}.md"))
        console.print_json({"page": page, "passed": status == 0, "areas": found})
    if status:
        raise typer.Exit(status)


def _benchmarks() -> tuple[str, list[str]]:
    """Return the benchmarks' package, in the wheel or beside ours in a checkout; and its areas."""
    for name in ("rankwright.benchmarks", "benchmarks"):
        found = find_spec(name)
        if found is not None and found.origin is not None:
            floors = Path(found.origin).with_name("floors.toml")
            if floors.exists():  # someone else's package may have that name
                return name, list(tomllib.loads(floors.read_text(encoding="utf-8")))
    raise UsageError("the benchmarks are not here: install Rankwright from its wheel or checkout.")


def _result(path: Path) -> Any:
    return text_of.loads(path.read_text(encoding="utf-8")) if path.exists() else None

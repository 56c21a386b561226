"""Run the long checks one by one, keep what each says last, and make docs/checks.md of it.

    python tools/checks.py soak                     fuzzing, property tests, kills, a server
    python tools/checks.py acceptance FOLDER        every check in a folder of programs
    python tools/checks.py soak --only fuzz_letor   one of them, the others' results stay

A check is a program that prints its figure last and exits 0 where it holds. Results are kept in
docs/checks/, also of those that fall short; the exit status is the number of these.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/checks"
TITLES = {
    "acceptance": "Acceptance",
    "soak": "Soak",
}
COMMANDS = {
    "acceptance": "python tools/checks.py acceptance ../shared/acceptance",
    "soak": "make soak",
}


# --- running ---------------------------------------------------------------------------------


def soak_checks(options: argparse.Namespace) -> list[list[str]]:
    """Return the commands of `make soak`; ``SOAK_MINUTES`` (3) is for each kind of attack."""
    fuzzers = sorted(path.name for path in (ROOT / "fuzz").glob("fuzz_*.py"))
    return [
        *([f"fuzz/{name}", f"-max_total_time={options.seconds_each}"] for name in fuzzers),
        ["fuzz/attacks.py"],
        ["fuzz/properties.py", "--seconds", str(options.seconds_properties)],
        ["fuzz/kills.py", "--kills", str(options.kills)],
        ["fuzz/interruptions.py", "--kills", str(2 * options.kills)],
        ["benchmarks/serving.py", "--seconds", str(options.seconds_served)],
    ]


def acceptance_checks(folder: Path) -> list[list[str]]:
    """Return the programs of a folder whose names begin with a number."""
    return [[str(path)] for path in sorted(folder.glob("[0-9]*")) if os.access(path, os.X_OK)]


def run_check(command: list[str]) -> dict[str, Any]:
    """Run one check, showing what it prints; return what it said last and how it ended."""
    own = command[0].endswith(".py")
    began, said = time.monotonic(), ""
    with subprocess.Popen(
        [sys.executable, *command] if own else command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            said = line.strip() or said
    path = Path(command[0])
    return {
        "name": " ".join(command) if own else path.name,
        "about": first_line(ROOT / path),
        "said": said,
        "holds": process.returncode == 0,
        "seconds": round(time.monotonic() - began),
        "ran": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }


def first_line(path: Path) -> str:
    """Return the first line of the docstring of a program in Python."""
    _, _, doc = path.read_text(encoding="utf-8").partition('"""')
    return doc.partition("\n")[0].partition('"""')[0].strip()


def main() -> int:
    """Run the checks that are asked for; return how many do not hold."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("kind", choices=sorted(TITLES))
    options.add_argument("folder", nargs="?", type=Path, help="of the acceptance checks")
    options.add_argument("--only", default="", help="the checks with this in their name")
    options.add_argument("--seconds-each", type=int, default=60, help="for each fuzzer")
    options.add_argument(
        "--seconds-properties", type=int, default=300, help="for the property tests"
    )
    options.add_argument("--kills", type=int, default=20, help="over all solvers")
    options.add_argument("--seconds-served", type=int, default=300, help="of load on a server")
    given = options.parse_args()
    if (given.kind == "acceptance") != bool(given.folder):
        options.error("acceptance needs the folder of its programs, and soak none.")
    checks = acceptance_checks(given.folder) if given.folder else soak_checks(given)
    chosen = [command for command in checks if given.only in command[0]]
    if not chosen:
        options.error(f"there is no check with '{given.only}' in its name.")
    rows = [run_check(command) for command in chosen]
    keep(given.kind, rows, anew=not given.only)
    return sum(not row["holds"] for row in rows)


def keep(kind: str, rows: list[dict[str, Any]], *, anew: bool) -> None:
    """Write the results, ``anew`` or in the place of earlier ones of the same checks."""
    path = RESULTS / f"{kind}.json"
    there = [] if anew or not path.exists() else json.loads(path.read_text(encoding="utf-8"))
    merged = {row["name"]: row for row in (*there, *rows)}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(list(merged.values()), indent=1) + "\n", encoding="utf-8")


# --- the page --------------------------------------------------------------------------------


def checks_tables() -> str:
    """Return a table for each kind of check, and one of attacks, from what docs/checks/ holds."""
    return "\n\n".join([*(_table(kind) for kind in TITLES), _attacks_table()])


def _attacks_table() -> str:
    """Return the table that fuzz/attacks.py adds to."""
    lines = [
        "## Attacks",
        "",
        '`make soak SOAK_FLAGS="--only attacks"`; `SOAK_MINUTES=30` for each.',
    ]
    lines += ["Inputs are damaged at random, sealed again where they have a digest, and used in a"]
    lines += ["child process; the counts add up over runs, and begin anew after a fault.", ""]
    lines += ["| input | what is damaged | inputs | used | refused in a sentence | signals |"]
    lines[-1] += " hangs over 5 s | other exceptions | minutes | run on |"
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    numbers = ("inputs", "used", "refused", "signals", "hangs", "raw exceptions", "minutes")
    path = RESULTS / "attacks.json"
    if not path.exists():
        return "## Attacks\n\nNot run."
    for row in json.loads(path.read_text(encoding="utf-8")):
        cells = [row["name"], row["about"], *(f"{row[name]:,}" for name in numbers), row["ran"]]
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def _table(kind: str) -> str:
    path = RESULTS / f"{kind}.json"
    head = f"## {TITLES[kind]}\n\n`{COMMANDS[kind]}`"
    if not path.exists():
        return f"{head}: not run."
    rows = json.loads(path.read_text(encoding="utf-8"))
    short = [row["name"] for row in rows if not row["holds"]]
    reported = f"short: {', '.join(short)}" if short else "all hold"
    machines = " and ".join(sorted({row["machine"] for row in rows}))
    lines = [f"{head}: {len(rows)} checks on {machines}; {reported}.", ""]
    lines += ["| check | what it asks | what it said last | holds | seconds | run on |"]
    lines += ["|---|---|---|---|---:|---|"]
    for row in rows:
        cells = (f"`{row['name']}`", row["about"], row["said"], "yes" if row["holds"] else "**no**")
        lines.append(f"| {' | '.join(map(_cell, cells))} | {row['seconds']} | {row['ran']} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())

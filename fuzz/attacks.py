"""Damaged inputs of every kind, each used or refused in a sentence: no signal, hang or other error.

``python fuzz/attacks.py`` runs every kind for ``SOAK_MINUTES`` (3) or ``--minutes``, and
``python fuzz/attacks.py stores`` those with that in their name; ``--list`` names them. An input is
made from a seed and its number, so a run goes on where the last one stopped: seed, number and
counts are kept in docs/checks/attacks.json. A kind that had a fault is counted anew, from the next
number on.

Inputs are used in a child process. One that ends it by a signal, takes over 5 s of CPU time or a
minute, or raises anything but a `RankwrightError` is copied to tests/found/inputs/, where
tests/fuzz/test_attacks.py uses it again in every run of the tests.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests"), str(ROOT)]

from damage import Attack  # noqa: E402
from numba.core import event  # noqa: E402

from rankwright.errors import RankwrightError  # noqa: E402

RESULTS = ROOT / "docs/checks/attacks.json"
FOUND = ROOT / "tests/found/inputs"
ATTACKS = {
    "model files": "attack_models:ATTACK",
    "models of other libraries": "attack_imported_models:ATTACK",
    "checkpoints": "attack_checkpoints:ATTACK",
    "exports": "attack_exports:ATTACK",
    "stores": "attack_stores:ATTACK",
    "data formats": "attack_formats:ATTACK",
    "feature logs": "attack_feature_logs:ATTACK",
    "TREC runs": "attack_formats:RUNS",
    "click logs": "attack_clicks:LOGS",
    "click models": "attack_clicks:MODEL_FILES",
    "kernel cache": "attack_kernel_cache:ATTACK",
    "server bodies": "attack_server_bodies:ATTACK",
}
"""Every kind of input, and the `damage.Attack` on it."""
FAULTS = ("signals", "hangs", "raw exceptions")
SEED = 1
_HANG_SECONDS = 5.0  # of CPU time: other processes may have the cores
_WAIT_SECONDS = 60.0
_CLOCKS = (signal.ITIMER_PROF, signal.ITIMER_REAL)
_MOST_BYTES = 4 << 30
_MOST_FAULTS = 10  # in one run, after which it ends


def attack_at(where: str) -> Attack:
    """Return the attack that ``module:name`` stands for."""
    module, _, name = where.partition(":")
    found: Attack = getattr(importlib.import_module(module), name)
    return found


# --- in the child ------------------------------------------------------------------------------


def use_damaged(
    name: str, attack: Attack, folder: Path, found: Path, first: int, seconds: float, report: int
) -> None:
    """Use one damaged input after the other; report the number and the outcome of each."""
    warnings.simplefilter("ignore")  # of numbers that are too large for a sum
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    whole = [folder / line for line in (folder / "whole.txt").read_text().splitlines()]
    for path in whole:
        attack.use(path)  # which must succeed, and compiles kernels
    number, faults, ends = first, 0, time.monotonic() + seconds
    while time.monotonic() < ends and faults < _MOST_FAULTS:
        rng = random.Random(f"{SEED} {name} {number}")
        path = rng.choice(whole)
        for earlier in folder.glob("damaged*"):
            remove(earlier)
        target = folder / f"damaged{path.suffix}"
        attack.damage(path, target, rng)
        os.write(report, b"%d\n" % number)
        outcome = outcome_of(attack, target)
        os.write(report, f"{outcome}\n".encode())
        if outcome in FAULTS:
            faults += 1
            kept(folder, name, found, outcome)
        number += 1


class _Uncounted(event.Listener):
    """Stops the clocks of an input while a kernel is compiled, which others may wait for too."""

    def __init__(self) -> None:
        self._left: list[list[float]] = []

    def on_start(self, event: event.Event) -> None:  # noqa: ARG002
        self._left.append([signal.setitimer(clock, 0)[0] for clock in _CLOCKS])

    def on_end(self, event: event.Event) -> None:  # noqa: ARG002
        for clock, seconds in zip(_CLOCKS, self._left.pop(), strict=True):
            signal.setitimer(clock, seconds)


def outcome_of(attack: Attack, path: Path) -> str:
    """Return what became of an input; the process ends where it hangs."""
    signal.setitimer(signal.ITIMER_PROF, _HANG_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _WAIT_SECONDS)
    try:
        with event.install_listener("numba:compile", _Uncounted()):
            attack.use(path)
    except RankwrightError:
        return "refused"
    except Exception:
        traceback.print_exc()
        return "raw exceptions"
    else:
        return "used"
    finally:
        for clock in _CLOCKS:
            signal.setitimer(clock, 0)


def replayed(path: Path) -> str:
    """Return what becomes of a kept input."""
    attack = attack_at(ATTACKS[attack_of(path)])
    with tempfile.TemporaryDirectory(prefix="rankwright-soak-") as folder:
        whole = attack.write(Path(folder))
        copy(path, target := Path(folder) / f"damaged{path.suffix}")
        attack.use(next(one for one in whole if one.suffix == path.suffix))  # compiles kernels
        return outcome_of(attack, target)


def copy(path: Path, target: Path) -> None:
    """Copy a file or a folder."""
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copy(path, target)


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


# --- in the parent -----------------------------------------------------------------------------


def run_attack(
    name: str, where: str, first: int, seconds: float, found: Path = FOUND
) -> Counter[str]:
    """Attack for a while, in as many children as it takes; return counts, ``inputs`` in all."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="rankwright-soak-") as temporary:
        folder = Path(temporary)
        child = [sys.executable, __file__, "--in-child", name, where, str(folder)]
        subprocess.run([*child, "write"], cwd=ROOT, check=True)
        while seconds > 0 and sum(counts[fault] for fault in FAULTS) < _MOST_FAULTS:
            begun, outcomes, taken, status = _run_child(
                [*child, str(found), str(first + counts["inputs"]), str(seconds)]
            )
            seconds -= taken
            counts.update(outcomes)
            counts["inputs"] += begun
            if status == 0:
                break
            if begun == outcomes.total():
                raise SystemExit(f"{name}: the child ended with status {status} before an input.")
            hung = status in (-signal.SIGPROF, -signal.SIGALRM)
            counts["hangs" if hung else "signals"] += 1
            kept(folder, name, found, f"status {status}")
    return counts


def _run_child(command: list[str]) -> tuple[int, Counter[str], float, int]:
    """Return the inputs that a child began, their outcomes, the seconds they took, its status."""
    read, write = os.pipe()
    process = subprocess.Popen([*command, str(write)], cwd=ROOT, pass_fds=[write])
    os.close(write)
    begun, outcomes, first = 0, Counter[str](), None
    with os.fdopen(read) as lines:
        for line in lines:
            first = first or time.monotonic()
            said = line.strip()
            if said.isdecimal():
                begun += 1
            else:
                outcomes[said] += 1
    taken = 0.0 if first is None else time.monotonic() - first
    return begun, outcomes, taken, process.wait()


def kept(folder: Path, name: str, found: Path, why: str) -> None:
    """Copy the damaged input of ``folder`` to where tests use it."""
    (path,) = folder.glob("damaged*")
    number = len(list(found.glob(f"{_slug(name)}-*")))
    target = found / f"{_slug(name)}-{number}{path.suffix}"
    found.mkdir(parents=True, exist_ok=True)
    copy(path, target)
    print(f"{name}: {why}, kept in {target}", flush=True)


def attack_of(path: Path) -> str:
    """Return the name of the attack that a kept input belongs to."""
    slug = path.name.rpartition("-")[0]
    return next(name for name in ATTACKS if _slug(name) == slug)


def _slug(name: str) -> str:
    return name.replace(" ", "-")


# --- results -----------------------------------------------------------------------------------


def results() -> dict[str, dict[str, Any]]:
    """Return the rows of all kinds that were run, by name."""
    if not RESULTS.exists():
        return {}
    return {row["name"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))}


def added(
    before: dict[str, Any], name: str, counts: Counter[str], seconds: float
) -> dict[str, Any]:
    """Return the row of a kind after a run; a fault of an earlier run begins the counts anew."""
    clean = before if not any(before.get(fault, 0) for fault in FAULTS) else {}
    return {
        "name": name,
        "about": attack_at(ATTACKS[name]).about,
        "next": before.get("next", 0) + counts["inputs"],
        **{key: clean.get(key, 0) + counts[key] for key in ("inputs", "used", "refused", *FAULTS)},
        "minutes": round(clean.get("minutes", 0) + seconds / 60, 1),
        "ran": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }


def main() -> int:
    """Run the attacks that are asked for; return how many had a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="?", default="", help="the kinds with this in their name")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("SOAK_MINUTES", "3")))
    parser.add_argument("--list", action="store_true", help="name the kinds")
    parser.add_argument("--replay", type=Path, help="use one of tests/found/inputs again")
    given = parser.parse_args()
    if given.replay is not None:
        print(outcome := replayed(given.replay))
        return int(outcome in FAULTS)
    chosen = [name for name in ATTACKS if given.name in name]
    if given.list or not chosen:
        print(*ATTACKS, sep="\n")
        return int(not chosen)
    total, short = Counter[str](), []
    for name in chosen:
        seconds = 60 * given.minutes
        before = results().get(name, {})
        counts = run_attack(name, ATTACKS[name], before.get("next", 0), seconds)
        rows = {**results(), name: added(before, name, counts, seconds)}  # others may run beside
        in_order = [rows[kind] for kind in ATTACKS if kind in rows]
        RESULTS.write_text(json.dumps(in_order, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {dict(counts)}", flush=True)
        total.update(counts)
        if any(counts[fault] for fault in FAULTS):
            short.append(name)
    faults = ", ".join(f"{total[fault]} {fault}" for fault in FAULTS)
    print(f"{len(chosen)} kinds, {total['inputs']} inputs: {faults}")
    return len(short)


def main_in_child(name: str, where: str, given: str, what: str, *more: str) -> None:
    """Write whole inputs, or use damaged ones."""
    attack, folder = attack_at(where), Path(given)
    if what == "write":
        whole = attack.write(folder)
        lines = "".join(f"{path.relative_to(folder)}\n" for path in whole)
        (folder / "whole.txt").write_text(lines)
    else:
        first, seconds, report = more
        use_damaged(name, attack, folder, Path(what), int(first), float(seconds), int(report))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-child"]:
        main_in_child(*sys.argv[2:])
    else:
        sys.exit(main())

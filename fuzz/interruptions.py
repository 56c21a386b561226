"""Kill commands that write, run two at once, fill the disk: what is there is whole, old or new.

Every command of tests/writing_verbs.py on a full disk and in a read-only folder; then those of
`KILLED` with ``kill -9``, half of the time at the moment when a new file appears, and run again to
the same bytes with nothing left beside; then two at a time on the same target.
``python fuzz/interruptions.py --kills 40 --seed 0``. Part of ``make soak``.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/cli")]

from writing_verbs import OBSTACLES, commands, contents, prepare, run_all  # noqa: E402

KILLED = (
    *("train", "tune", "tune journal", "compare cache", "compare csv", "rank csv", "export json"),
    *("convert txt", "convert store", "convert parquet"),
)
TWICE = ("train", "compare cache", "rank csv", "export json", "convert txt", "convert store")
VARIES = ("tuning.log", "cache")  # which hold times


def whole(out: Path) -> dict[str, str | None]:
    """Return the digests of what must be equal after every run to the end."""
    return {name: digest for name, digest in contents(out).items() if name not in VARIES}


def started(words: tuple[object, ...], turn: int = 1) -> subprocess.Popen[str]:
    """Run a command in a process of its own."""
    given = [str(word).replace("TURN", str(turn)) for word in words]
    command = [sys.executable, "-m", "rankwright", "-q", *given]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end; return the exit status and what was said."""
    _, said = process.communicate()
    return process.returncode, said


def killed(words: tuple[object, ...], out: Path, seconds: float, rng: random.Random) -> bool:
    """Kill a command at some moment, or when it begins to write; return whether it was running."""
    process = started(words, turn=2)
    before, began = set(out.rglob("*")), time.monotonic()
    after = rng.uniform(0.3, 1.0) * seconds
    at_a_file = rng.random() < 0.5
    while process.poll() is None:
        if at_a_file and set(out.rglob("*")) - before:
            time.sleep(rng.choice([0, 0, 0.001, 0.01]))
            break
        if not at_a_file and time.monotonic() - began > after:
            break
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    finished(process)
    return process.returncode == -signal.SIGKILL


def kill_all(folder: Path, kills: int, rng: random.Random) -> tuple[int, list[str]]:
    """Kill and run again; return how many kills there were, and what was wrong."""
    every, out, count, wrong = commands(folder), folder / "out", 0, []
    for number, name in enumerate(KILLED):
        began = time.monotonic()
        status, said = finished(started(every[name], turn=2))
        if status:
            raise SystemExit(f"{name}: {said}")
        seconds, expected = time.monotonic() - began, whole(out)
        for _ in range(kills // len(KILLED) + (number < kills % len(KILLED))):
            count += killed(every[name], out, seconds, rng)
            left = whole(out)
            if any(left.get(path) != digest for path, digest in expected.items()):
                wrong.append(f"{name}: what was there was changed by a kill")
            status, said = finished(started(every[name], turn=2))
            if status:
                wrong.append(f"{name}: after a kill, {said.strip()}")
            elif (left := whole(out)) != expected:
                wrong.append(f"{name}: left or changed {sorted(set(left) ^ set(expected))}")
        print(f"{name}: {count} kills so far, {len(wrong)} wrong", flush=True)
    return count, wrong


def run_two(folder: Path) -> list[str]:
    """Run two commands at a time on the same target; return what was wrong."""
    every, out, wrong = commands(folder), folder / "out", []
    for name in TWICE:
        finished(started(every[name]))
        expected = whole(out)
        for status, said in map(finished, [started(every[name], turn=3) for _ in range(2)]):
            if status:
                wrong.append(f"{name}, two at a time: {said.strip()}")
        if whole(out) != expected:
            wrong.append(f"{name}, two at a time: left {sorted(set(whole(out)) ^ set(expected))}")
    words = every["checkpoint"]
    statuses = sorted(status for status, _ in map(finished, [started(words) for _ in range(2)]))
    if statuses not in ([0, 0], [0, 2]):  # the second finds the folder locked, or the run done
        wrong.append(f"checkpoint, two at a time: {statuses}")
    return wrong


def main() -> int:
    """Interrupt in every way; return how often something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=40, help="over all commands")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments")
    options = parser.parse_args()
    wrong, blocked = [], 0
    for kind in OBSTACLES:
        with tempfile.TemporaryDirectory() as name:
            found = run_all(kind, name)
        blocked += len(found)
        wrong += [f"{kind}, {command}: {why}" for command, why in found.items() if why]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, queries=300)
        count, found_wrong = kill_all(folder, options.kills, random.Random(options.seed))
        wrong += found_wrong + run_two(folder)
    print(*wrong, sep="\n")
    print(
        f"{blocked} commands without room or rights, {count} kills, {len(TWICE) + 1} commands run "
        f"twice at a time: {len(wrong) or 'none'} wrong"
    )
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Kill commands that write, run two at once, fill the disk: what is there is whole, old or new.

Every command of tests/writing_verbs.py on a full disk and in a read-only folder; then those of
`KILLED` with ``kill -9``, half of the time at the moment when a new file appears, and run again to
the same bytes with nothing left beside; then two at a time on the same target.
``python fuzz/interruptions.py --kills 40 --minutes 10 --seed 0``. Part of ``make soak``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import cycle, islice
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
_END_SECONDS = 120  # of a command that takes some


def whole(out: Path) -> dict[str, str | None]:
    """Return the digests of what must be equal after every run to the end."""
    return {name: digest for name, digest in contents(out).items() if name not in VARIES}


def started(words: tuple[object, ...], turn: int = 1) -> subprocess.Popen[str]:
    """Run a command in a process of its own."""
    given = [str(word).replace("TURN", str(turn)) for word in words]
    command = [sys.executable, "-m", "rankwright", "-q", *given]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes)


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end, not for ever; return the exit status and what was said."""
    late = ""
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        late = f"it did not end in {_END_SECONDS} seconds. "
    with suppress(ProcessLookupError):  # its workers outlive it for minutes, and keep the pipe open
        os.killpg(process.pid, signal.SIGKILL)
    _, said = process.communicate()
    return process.returncode, late + said


def killed(
    words: tuple[object, ...], out: Path, seconds: float, turn: int, rng: random.Random
) -> bool:
    """Kill a command at some moment, or when it begins to write; return whether it was running."""
    process = started(words, turn)
    before, began = set(out.rglob("*")), time.monotonic()
    after = rng.uniform(0.3, 1.0) * seconds
    at_a_file = rng.random() < 0.5
    while process.poll() is None:
        if at_a_file and set(out.rglob("*")) - before:
            time.sleep(rng.choice([0, 0, 0.001, 0.01]))
            break
        if time.monotonic() - began > (_END_SECONDS if at_a_file else after):
            break
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    finished(process)
    return process.returncode == -signal.SIGKILL


def kill_all(folder: Path, kills: int, seconds: float, rng: random.Random) -> tuple[int, list[str]]:
    """Kill and run again, for so many seconds at most; return the kills, and what was wrong."""
    every, out, count, wrong = commands(folder), folder / "out", 0, []
    takes, ends = {}, time.monotonic() + seconds
    for name in KILLED:
        began = time.monotonic()
        status, said = finished(started(every[name]))
        if status:
            raise SystemExit(f"{name}: {said}")
        takes[name] = time.monotonic() - began
    expected = whole(out)
    for number, name in enumerate(islice(cycle(KILLED), kills)):
        if time.monotonic() > ends:
            break
        turn = 2 + number // len(KILLED)
        count += killed(every[name], out, takes[name], turn, rng)
        left = whole(out)
        if any(left.get(path) != digest for path, digest in expected.items()):
            wrong.append(f"{name}: what was there was changed by a kill")
        status, said = finished(started(every[name], turn))
        if status:
            wrong.append(f"{name}: after a kill, {said.strip()}")
        elif changed := {path for path, _ in whole(out).items() ^ expected.items()}:
            wrong.append(f"{name}: left or changed {sorted(changed)}")
        print(f"{name}: {count} kills so far, {len(wrong)} wrong", flush=True)
    return count, wrong


def run_two(folder: Path) -> list[str]:
    """Run two commands at a time on the same target; return what was wrong."""
    every, out, wrong = commands(folder), folder / "out", []
    for name in TWICE:
        finished(started(every[name]))
        expected = whole(out)
        for status, said in map(finished, [started(every[name], turn=99) for _ in range(2)]):
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
    parser.add_argument("--minutes", type=float, default=10, help="for kills, at most")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments")
    options = parser.parse_args()
    wrong, blocked = [], 0
    for kind in OBSTACLES:
        with tempfile.TemporaryDirectory() as name:
            found = run_all([kind], name)[kind]
        blocked += len(found)
        wrong += [f"{kind}, {command}: {why}" for command, why in found.items() if why]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, queries=300)
        rng, seconds = random.Random(options.seed), 60 * options.minutes
        count, found_wrong = kill_all(folder, options.kills, seconds, rng)
        wrong += found_wrong + run_two(folder)
    print(*wrong, sep="\n")
    print(
        f"{blocked} commands without room or rights, {count} kills, {len(TWICE) + 1} commands run "
        f"twice at a time: {len(wrong) or 'none'} wrong"
    )
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""``kill -9`` at random moments: every run must go on to the same bytes. Part of ``make soak``.

Five solvers, each trained once to the end through the command line, then killed at moments drawn
over the whole run, resumed, perhaps killed again, and compared byte by byte with the first model.
``python fuzz/kills.py --kills 20 --seed 0``; the data is MQ2008 where ``RANKWRIGHT_DATA`` has it,
and made up otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rankwright.data import catalog
from rankwright.data.files import save
from rankwright.data.synthetic_data import synthetic

RUNS = {
    "boost": ("lambdamart", "n_estimators=100", "colsample_bytree=0.5"),
    "lbfgs": ("ranknet", "model=linear", "model.l2=auto"),
    "adam": ("ranknet", "epochs=20"),
    "line_search": ("coordinate_ascent", "n_restarts=2"),
    "bundle": ("ranksvm", "solver=bundle", "l2=auto"),
}

_TRIES = 20  # for one run that is killed after its first checkpoint


def write_data(folder: Path) -> list[str]:
    """Write train and valid data; return the options that name them."""
    if "RANKWRIGHT_DATA" in os.environ:
        train, valid = (catalog.load(f"mq2008/fold3/{part}") for part in ("train", "vali"))
    else:
        train, valid = (synthetic("mq2008", queries=n, seed=n) for n in (300, 80))
    save(train, folder / "train.store")
    save(valid, folder / "valid.store")
    return ["--train", str(folder / "train.store"), "--valid", str(folder / "valid.store")]


def command(name: str, *more: object) -> list[str]:
    """Return the command that trains ``name`` of `RUNS`."""
    kind, *settings = RUNS[name]
    given = [part for setting in settings for part in ("--set", setting)]
    return [sys.executable, "-m", "rankwright", "train", kind, *given, *map(str, more)]


def finished(arguments: list[str]) -> dict[str, object]:
    """Run to the end; return what ``--json`` tells."""
    done = subprocess.run([*arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}\n{done.stderr}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def timed(arguments: list[str]) -> float:
    """Run to the end; return how many seconds it took."""
    began = time.monotonic()
    finished(arguments)
    return time.monotonic() - began


def killed(arguments: list[str], after: float) -> bool:
    """Run and kill after so many seconds; return whether the run was still on its way."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(arguments, stdout=quiet, stderr=quiet)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def main() -> int:
    """Kill and resume; return how many models differ and how many solvers never went on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="kills over all solvers")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    wrong, counts = [], Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = write_data(folder)
        first, again, kept = folder / "first.rw", folder / "again.rw", folder / "kept"
        for number, run in enumerate(RUNS):
            whole = command(run, *data, "--save", first)
            seconds = min(timed(whole), timed(whole))  # the first may have kernels to compile
            left = options.kills // len(RUNS) + (number < options.kills % len(RUNS))
            tries = 0
            while left > 0 or (not counts[run] and tries < _TRIES):
                tries += 1
                shutil.rmtree(kept, ignore_errors=True)
                again.unlink(missing_ok=True)
                every = draw.randint(1, 10)
                go = command(run, *data, "--save", again, "--checkpoint", kept, "--every", every)
                moments = []
                for _ in range(min(max(left, 1), draw.randint(1, 2))):
                    after = draw.uniform(0.2, 1.0) * seconds
                    if not killed([*go, "--resume"], after):
                        seconds = after  # it was quicker than thought
                        break
                    moments.append(f"{after:.1f}")
                    left -= 1
                    counts["kills"] += 1
                found = finished([*go, "--resume"])
                same = again.read_bytes() == first.read_bytes()
                counts[run] += found["resumed_from"] is not None
                reported = "equal" if same else "DIFFERENT"
                at = ", ".join(moments) or "never"
                print(
                    f"{run}: {seconds:.1f} s whole, killed after {at} s, every {every}, resumed "
                    f"from round {found['resumed_from']}: {reported}",
                    flush=True,
                )
                if not same:
                    wrong.append(run)
    resumed = sum(counts[run] for run in RUNS)
    never = [run for run in RUNS if not counts[run]]  # which says nothing of their checkpoints
    print(
        f"{counts['kills']} kills over {len(RUNS)} solvers, {resumed} runs went on from a "
        f"checkpoint; models that differ: {', '.join(wrong) or 'none'}; never resumed: "
        f"{', '.join(never) or 'none'}"
    )
    return len(wrong) + len(never)


if __name__ == "__main__":
    sys.exit(main())

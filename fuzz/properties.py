"""The property tests on fresh examples, round after round; failures are kept in tests/found/.

``make test`` runs them on the same examples everywhere; here every round has a new seed, which is
printed. ``python fuzz/properties.py --seconds 300``; ``--seed N`` begins with the round of a seed
that failed before. Part of ``make soak``.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "tests/found"


def one_round(seed: int, tests: list[str]) -> int:
    """Run every property test once with the examples of a seed; return pytest's exit status."""
    flags = ["--hypothesis-profile=soak", f"--hypothesis-seed={seed}", "-m", "hypothesis"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", *flags, *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main() -> int:
    """Run rounds until the time is up; return 1 where a test failed."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("tests", nargs="*", default=["tests"], help="files of tests; all")
    options.add_argument("--seconds", type=float, default=300, help="begin no round after these")
    options.add_argument("--seed", type=int, help="of the first round")
    given = options.parse_args()
    before, ended = set(FOUND.glob("*.json")), time.monotonic() + given.seconds
    seeds, failed = [], []
    while not seeds or time.monotonic() < ended:
        first = not seeds and given.seed is not None
        seeds.append(given.seed if first else secrets.randbits(32))
        if one_round(seeds[-1], given.tests):
            failed.append(seeds[-1])
    new = sorted(path.name for path in set(FOUND.glob("*.json")) - before)
    if failed:
        kept = f"kept in tests/found: {', '.join(new)}" if new else "no example could be kept"
        print(f"{len(seeds)} rounds, failures with --seed {', '.join(map(str, failed))}; {kept}")
        return 1
    print(f"{len(seeds)} rounds of fresh examples, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())

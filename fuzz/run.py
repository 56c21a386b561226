"""Run every fuzz target beside this file for a while: ``python fuzz/run.py --seconds 60``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run the targets one after the other; return the number that found something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="time for each target")
    seconds = parser.parse_args().seconds
    found = 0
    for target in sorted(HERE.glob("fuzz_*.py")):
        print(f"{target.name}: {seconds} s", flush=True)
        command = [sys.executable, str(target), f"-max_total_time={seconds}"]
        found += subprocess.run(command, check=False).returncode != 0
    return found


if __name__ == "__main__":
    sys.exit(main())

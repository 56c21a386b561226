"""``python -m benchmarks [AREA ...] [--results DIR]``: see `benchmarks.run`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .run import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks", description="Benchmarks against peers.")
    parser.add_argument("areas", nargs="*", metavar="AREA", help="all by default")
    parser.add_argument("--results", type=Path, default=Path("build/benchmarks"), metavar="DIR")
    given = parser.parse_args()
    sys.exit(main(given.areas, results=given.results))

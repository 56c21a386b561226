"""Check that code, messages and docs keep to the field's words: a part of ``make lint``.

`docs/glossary.md` has the words that are used. Those below were private to this project and have no
ordinary meaning here; each stands with what to write.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRIVATE = {
    r"beyond luck|\bluck\b": "statistically significant, chance",
    r"\btold\b|\btell_of_\w+|\bis told\b": "reported, warned, warn_of_...",
    r"\blikeness(es)?\b": "kernel matrix",
    r"\bgive_back\b": "trim_memory",
    r"\bcome_to_round\b|\bnext_round\b": "set_iteration",
    r"\bfootprint\b|\bcheck_room\b": "memory_estimate, check_memory",
    r"\bnobody('s)?\b": "none, or name who does not",
    r"\bwhere somebody waits\b": "on an interactive terminal",
    r"\bput into words\b": "formatted",
    r"\bheld[ _]back\b": "holdout, validation set",
    r"\brivals?\b": "baselines",
    r"\bOver the budget\b": "nothing: files follow concepts, not line counts",
    r"\bmade-up data\b|\bmake up ranking data\b": "synthetic data, generate synthetic data",
    r"\bparted by\b": "separated by",
    r"\bnamed like a grade\b": "no label column found",
    r"\btells no format\b": "unknown file extension",
    r"\bthere is no parameter of\b": "X has no parameter 'y'",
    r"\bgo by most\b": "feature importance",
}
"""Pattern -> what to write in its place."""
SUFFIXES = (".py", ".md", ".toml", ".html", ".js", ".yml")
LEFT_OUT = (
    "CHANGELOG.md",
    "tools/check_words.py",
    "docs/reproduction",
    "docs/benchmarks",
    "reproducibility/tables/",  # results are bound to these files as they are
    "tests/found/",
)
_ANY = re.compile("|".join(f"(?:{pattern})" for pattern in PRIVATE), re.IGNORECASE)


def private_words(root: Path = ROOT) -> list[str]:
    """Return a line for each private word in a tracked file: where it is, and what to write."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    found = []
    for name in listed:
        if not name.endswith(SUFFIXES) or name.startswith(LEFT_OUT) or not (root / name).is_file():
            continue
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            found += [
                f"{name}:{number}: '{match[0]}': write {_instead(match[0])}"
                for match in _ANY.finditer(line)
            ]
    return found


def _instead(word: str) -> str:
    fitting = (write for one, write in PRIVATE.items() if re.fullmatch(one, word, re.IGNORECASE))
    return next(fitting)


def main() -> int:
    """Print what was found; return the exit status."""
    found = private_words()
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

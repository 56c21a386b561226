"""The table of docs/mistakes.md: what one did -> the words that one sees."""

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mistakes.md"
_ROW = re.compile(r"^\| (?P<did>[^|`]+) \| `(?P<seen>[^`]+)` \| [^|]+ \|$", re.MULTILINE)


@cache
def mistakes() -> dict[str, str]:
    """Return what one did -> what one sees, with … for what varies."""
    return {row["did"]: row["seen"] for row in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def pattern(did: str) -> str:
    """Return what one sees as a regular expression."""
    return ".*".join(re.escape(words) for words in mistakes()[did].split("…"))


def says(did: str, text: str) -> None:
    """Check that ``text`` has the words that the page promises."""
    assert re.search(pattern(did), text), f"{did}: the page says {mistakes()[did]!r}, not {text!r}"

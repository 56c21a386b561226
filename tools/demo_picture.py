"""Draw the table that ``rankwright demo`` prints, for the first page of docs: docs/demo.svg."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from rankwright.cli.compare import demo_table
from rankwright.comparison.demo import run_demo

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"


def main() -> None:
    """Run the demo and write the picture."""
    console = Console(record=True, width=110)
    with TemporaryDirectory() as cache:
        console.print(demo_table(*run_demo(cache)))
    picture = console.export_svg(title="rankwright demo")
    fonts = re.compile(r"@font-face \{.*?\}\s*", flags=re.DOTALL)  # they would load from elsewhere
    PICTURE.write_text(fonts.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()

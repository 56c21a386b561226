"""Files that appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rankwright.errors import DataError


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path``; rename it to ``path`` if the block succeeds."""
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as fault:
        raise DataError(f"{path} cannot be written: {fault.strerror or fault}.") from None
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_text(path: str | Path) -> Iterator[TextIO]:
    """Open ``path`` for writing text that appears whole or not at all."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream

"""LETOR's Fold folders: train.txt, vali.txt and test.txt, each plain or compressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.source import packed_or_plain
from rankwright.errors import UsageError

_PARTS = ("train", "vali", "test")


def fold_files(path: str | Path) -> dict[str, Path]:
    """Return the parts of a LETOR fold: a folder with train.txt, vali.txt and test.txt."""
    folder = Path(path)
    if str(path) == "-" or not folder.is_dir():
        return {}
    found = {part: packed_or_plain(folder / f"{part}.txt") for part in _PARTS}
    there = {part: file for part, file in found.items() if file is not None}
    return there if len(there) == len(found) else {}


def load_fold(folder: Path, *, part: str | None = None, **options: Any) -> RankingData:
    """Read one part of a fold, or all three as one."""
    from rankwright.data.split import load_alike

    files = fold_files(folder)
    if part not in (*files, "all"):
        raise UsageError(
            f"{folder} holds {', '.join(file.name for file in files.values())}; name one of them, "
            f"or say part='train', 'vali', 'test' or 'all'."
        )
    chosen = list(files.values()) if part == "all" else [files[str(part)]]
    parts = load_alike(chosen, **options)
    return concatenate(parts) if len(parts) > 1 else parts[0]

"""``--checkpoint FOLDER --every N --resume``: how a verb that trains keeps its run safe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwright.errors import UsageError

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="Save checkpoints to this folder, to resume a run that was killed."
    ),
]
EveryOption = Annotated[
    int | None, typer.Option("--every", help="Iterations between checkpoints; 10 by default.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Resume from the last checkpoint in the folder.")
]


def checkpoint_of(folder: Path | None, every: int | None, resume: bool) -> Checkpoint | None:
    """Return the checkpoint that the options ask for, its folder looked at."""
    if folder is None:
        if every is not None or resume:
            option = "--resume" if resume else "--every"
            raise UsageError(f"{option} needs --checkpoint FOLDER, the folder for the checkpoints.")
        return None
    from rankwright.persist.checkpoint import EVERY, Checkpoint

    made = Checkpoint(folder, every=EVERY if every is None else every, resume=resume)
    made.check()
    return made

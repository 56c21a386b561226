"""Write checkpoints during a fit, and resume the fit from the last one.

A checkpoint has the state of the model's run, the curves of the metric and the best model so far.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.checks import without_prefix
from rankwright.core.parameters import part_name
from rankwright.core.types import AnyArray, FittedModel, Round
from rankwright.errors import DataError, RankwrightError, UsageError
from rankwright.rankers.fitting import EvaluationHistory, Result, run

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint

Resume = Mapping[str, AnyArray] | None
"""State of a model's run in a checkpoint, or None for a new run."""

_STATE, _BEST, _TEXTS = "state.", "best.", "best_texts"


def as_checkpoint(
    checkpoint: Checkpoint | str | Path | None, model: Any, random_state: Any
) -> Checkpoint | None:
    """Return the checkpoint of a fit; a path is a folder with the default options."""
    if checkpoint is None:
        return None
    if not getattr(model, "resumable", False):
        raise UsageError(
            f"a model '{part_name('models', model)}' cannot be resumed, so a checkpoint would "
            "be of no use; leave checkpoint out. Trees, forests, rules, networks, adarank, "
            "coordinate_ascent and rankgp can be resumed."
        )
    if not isinstance(random_state, Integral):
        raise UsageError(
            "a checkpoint needs a whole number as random_state, so that a resumed run samples "
            f"as before; it is {random_state!r}."
        )
    from rankwright.persist.checkpoint import Checkpoint

    return checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)


def run_with_checkpoints(
    checkpoint: Checkpoint,
    receipt: Mapping[str, Any],
    rounds: Callable[[Resume], Iterator[Round]],
    restore: Callable[[dict[str, AnyArray], dict[str, str]], FittedModel],
    history: EvaluationHistory,
    callbacks: Sequence[Callable[[Round], bool]],
) -> Result:
    """Run ``rounds`` with checkpoints, from the last one in the folder if there is one.

    Parameters
    ----------
    checkpoint : Checkpoint
    receipt : mapping
        Identifies the run; the folder of another run is refused.
    rounds : function
        Returns the rounds of the model from the state in a checkpoint.
    restore : function
        Returns a fitted model from its arrays and texts.
    history, callbacks
        As for `rankwright.rankers.fitting.run`.
    """
    try:
        last = checkpoint.begin(receipt)
        if last is None:
            return run(rounds(None), history, callbacks, Checkpointing(history, checkpoint))
        number, arrays = last
        history.load_state(arrays)
        rounds_before = history.last
        best = {name: x for name, x in arrays.items() if name.startswith(_BEST) or name == _TEXTS}
        checkpointing = Checkpointing(history, checkpoint, best)
        try:
            model = restore(without_prefix(_BEST, arrays), json.loads(arrays[_TEXTS].tobytes()))
            resumed = rounds(without_prefix(_STATE, arrays))
            result = run(resumed, history, callbacks, checkpointing, model)
        except Exception as error:  # arrays that this run cannot have written may raise any error
            if history.last > rounds_before or isinstance(error, RankwrightError):
                raise
            raise DataError(
                f"the checkpoint is not from this run or damaged ({type(error).__name__}: "
                f"{error}); start again in another folder."
            ) from error
        return replace(result, resumed_from=number)
    finally:
        checkpoint.end()


@dataclass
class Checkpointing:
    """Callback that writes a checkpoint after every round that is due.

    Parameters
    ----------
    history : EvaluationHistory
    checkpoint : Checkpoint
    best_arrays : dict of arrays
        Best model of the run before a resume, as in the checkpoint.
    """

    history: EvaluationHistory
    checkpoint: Checkpoint
    best_arrays: dict[str, AnyArray] = field(default_factory=dict)
    _best: int = 0

    def __call__(self, round_: Round) -> None:
        """Write the state if it is due."""
        if self.history.best == round_.number != self._best:
            self._best, self._build = round_.number, round_.model
        if self.checkpoint.due(round_.number) and round_.state is not None:
            arrays = {f"{_STATE}{name}": array for name, array in round_.state().items()}
            arrays |= {**self.history.state(), **self._best_model()}
            self.checkpoint.write(round_.number, arrays)

    def _best_model(self) -> dict[str, AnyArray]:
        if self._best == 0:  # the best round was before the resume
            return self.best_arrays
        model = self._build()
        arrays = {f"{_BEST}{name}": array for name, array in model.arrays().items()}
        return {**arrays, _TEXTS: np.frombuffer(json.dumps(model.texts()).encode(), np.uint8)}

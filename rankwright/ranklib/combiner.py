"""RankLib's Combiner: the models of a folder, of Random Forests each, joined to one forest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rankwright.errors import UsageError
from rankwright.ranklib.model_text import ModelText, read_model_text, write_model_text
from rankwright.ranklib.model_trees import Ensembles, Tree

_USAGE = "combine FOLDER OUTPUT [--strict]"


def combine(words: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Join the models of a folder, in the order of their names; return notices.

    RankLib takes the first ensemble of each file, which is all that a file holds when it comes from
    ``-bag 1``; ``--strict`` does so. By default all ensembles are taken.
    """
    strict = "--strict" in words
    places = [word for word in words if word != "--strict"]
    if len(places) != 2 or not Path(places[0]).is_dir():
        raise UsageError(f"a folder of models and a file to write are needed: {_USAGE}.")
    folder, target = Path(places[0]), Path(places[1])
    files = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and ".progress" not in path.name and path.resolve() != target.resolve()
    ]
    ensembles: list[tuple[Tree, ...]] = []
    cut_off = 0
    for path in files:
        body = read_model_text(path).body
        if not (isinstance(body, Ensembles) and body.forest):
            raise UsageError(f"{path} is no model of Random Forests, which alone are joined.")
        ensembles += body.ensembles[: 1 if strict else None]
        cut_off += len(body.ensembles) > 1
    if not ensembles:
        raise UsageError(f"{folder} holds no models to join.")
    write_model_text(
        ModelText("Random Forests", (), Ensembles(tuple(ensembles), forest=True)), target
    )
    say(f"{len(ensembles)} ensembles of {len(files)} files saved to: {target}")
    if strict or not cut_off:
        return []
    return [
        f"all ensembles of each file are taken; RankLib takes the first, which would leave out "
        f"some of {cut_off} files (--strict does so)."
    ]

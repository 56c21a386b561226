"""Damage the checkpoints of fits, under names with the right digests: resumed, or refused."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attack_models import DATA, array_changes
from damage import Attack, mutated
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from small_data import small_data

import rankwright as rw
from rankwright.persist.checkpoint import Checkpoint

VALID = small_data(queries=3, documents=8, features=4, seed=1, feature_names=list("abcd"))
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "trees": ("lambdamart", {"n_estimators": 6, "num_leaves": 4, "min_child_samples": 2}),
    "lbfgs-trees": ("intervalrank", {"n_estimators": 6, "model__direction": "lbfgs"}),
    "forest": ("random_forest", {"n_bags": 5, "num_leaves": 4}),
    "additive": ("rankboost", {"n_rounds": 8}),
    "feature_sum": ("adarank", {"n_rounds": 5}),
    "coordinate_ascent": ("coordinate_ascent", {"n_restarts": 1, "n_passes": 2}),
    "expression": ("rankgp", {"population": 20, "n_generations": 4}),
    "linear": ("ranknet", {"model": rw.models.Linear()}),
    "noisy": ("xendcg", {"model": rw.models.Linear()}),
    "network": ("listnet", {"model": rw.models.Network(hidden_layer_sizes=(3,), epochs=4)}),
    "prank": ("prank", {"n_passes": 5}),
    "passive_aggressive": ("pamir", {"n_steps": 50}),
    "factorization": ("cofirank", {"n_factors": 2}),
}


def write(folder: Path) -> Sequence[Path]:
    """Write the checkpoint of a fit of each kind, with its first states alone."""
    paths = []
    for name in RUNS:
        paths.append(folder / f"{name}.checkpoint")
        _fit(paths[-1], name, resume=False)
        for file in sorted(paths[-1].glob("state-*"))[1:]:
            file.unlink()
    return paths


def _fit(folder: Path, name: str, *, resume: bool) -> None:
    ranker, settings = RUNS[name]
    made = rw.ranker(ranker, **settings)
    made.fit(DATA, eval_set=VALID, checkpoint=Checkpoint(folder, every=2, resume=resume))
    made.predict(DATA)


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy in which one or two files are changed, and named by what they hold."""
    shutil.copytree(path, target)
    (target / "whose").write_text(path.stem, encoding="utf-8")
    for _ in range(rng.randint(1, 2)):
        file = rng.choice([*sorted(target.glob("*-*.safetensors")), target / "receipt.json"])
        content = file.read_bytes()
        if file.suffix == ".json" or rng.random() < 0.1:
            file.write_bytes(mutated(content, rng))
            continue
        with suppress(Exception):  # of arrays that are damaged already
            _, arrays = rng.choice(list(array_changes(load_arrays(content), rng)))
            content = save_arrays(arrays)
        kind, number, _ = file.name.split("-")
        digest = hashlib.sha256(content).hexdigest()[:16]
        file.unlink()
        (target / f"{kind}-{number}-{digest}.safetensors").write_bytes(content)


def use(path: Path) -> None:
    """Resume the fit in a copy of the folder."""
    whose = path / "whose"
    name = whose.read_text(encoding="utf-8") if whose.exists() else path.stem
    copy = path.parent / "in-use"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    (copy / "whose").unlink(missing_ok=True)
    _fit(copy, name, resume=True)


ATTACK = Attack("checkpoints of fits, named anew by their digests", write, damage, use)

"""Damage exports of every format under right digests: verified, or refused in a sentence."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from attack_models import DATA
from damage import Attack, mutated

import rankwright as rw
from rankwright import registry
from rankwright.errors import RankwrightError
from rankwright.export import export_model, verify_export
from rankwright.export.folder import ABOUT


def write(folder: Path) -> Sequence[Path]:
    """Export trees, and a linear model, to every format that takes them."""
    trees = rw.LambdaMART(n_estimators=2, num_leaves=4, min_child_samples=2).fit(DATA)
    linear = rw.RankSVM().fit(DATA)
    paths = []
    for name, ranker in (("trees", trees), ("linear", linear)):
        for to in registry.EXPORTS:
            path = folder / f"{name}-{to}.export"
            with suppress(RankwrightError):  # not every format takes both, or is installed
                export_model(ranker, to, path)
                verify_export(path)
                paths.append(path)
    return paths


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy in which one or two files are changed, and the digests that they then have."""
    shutil.copytree(path, target)
    about = json.loads((target / ABOUT).read_bytes())
    for _ in range(rng.randint(1, 2)):
        file = rng.choice(sorted(one for one in target.iterdir() if one.is_file()))
        file.write_bytes(mutated(file.read_bytes(), rng))
        if file.name in about["files"]:
            about["files"][file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        if file.name != ABOUT:
            (target / ABOUT).write_text(json.dumps(about), encoding="utf-8")


def use(path: Path) -> None:
    """Verify an export; one whose model is LightGBM's or XGBoost's is also loaded and used."""
    verify_export(path)
    for file in path.iterdir():
        if file.name in ("model.txt", "model.json"):
            with suppress(RankwrightError):
                rw.load_model(file).predict(DATA.X)


ATTACK = Attack("exports of every format under right digests", write, damage, use)

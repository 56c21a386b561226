"""What pages take as given: files that a reader has, names that stand for a reader's own data."""

from dataclasses import replace

import numpy as np
import pandas as pd
from code_blocks import run_command

import rankwright
from rankwright.data.catalog import digits
from rankwright.data.files import save


def of(page, folder):
    """Return the names that a page's Python takes as given, after making its files."""
    make = {
        "README.md": _readme,
        "add-a-loss.md": _letor_files,
        "metric-conventions.md": _scores,
        "coming-from-ranklib.md": _ranklib_model,
    }.get(page.name)
    return make(folder) if make else {}


def _letor_files(folder):
    fold = digits(queries=8, documents=15)
    for name, part in zip(("train", "vali", "test"), fold, strict=True):
        save(replace(part, feature_names=None), folder / f"{name}.txt")
    return {}


def _readme(folder):
    _letor_files(folder)
    data = rankwright.load("digits/train", queries=8, documents=15)
    frame = pd.DataFrame(data.X, columns=[f"pixel{i}" for i in range(data.n_features)])
    query_ids = np.repeat(data.qid, np.diff(data.indptr))
    frame["grade"], frame["query"] = data.y, query_ids
    rng = np.random.default_rng(0)
    pairs = [(user, item) for user in ("ann", "bob", "cal", "dee") for item in range(12)]
    ratings = pd.DataFrame(pairs, columns=["user", "item"])
    ratings["rating"] = rng.integers(1, 6, len(ratings))
    return {
        "X": data.X,
        "y": data.y,
        "query_ids": query_ids,
        "frame": frame,
        "ratings": ratings[rng.random(len(ratings)) < 0.8],
    }


def _scores(folder):
    _letor_files(folder)
    data = rankwright.load(folder / "test.txt")
    scores = data.X.sum(axis=1)
    np.savetxt(folder / "scores.txt", scores)
    return {"data": data, "scores": scores}


def _ranklib_model(folder):
    _letor_files(folder)
    flags = "-ranker 6 -tree 3 -leaf 4 -metric2t NDCG@10 -silent"
    run_command(f"rankwright ranklib -train train.txt {flags} -save mymodel.txt", folder)
    return {}

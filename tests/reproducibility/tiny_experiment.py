"""A table and a figure so small that they run in a moment, and three folds of data for them."""

from small_data import small_data

from rankwright.data.files import save
from reproducibility.experiment_file import experiment
from reproducibility.figure import run_curves
from reproducibility.folds_run import load_folds

TABLE = """
title = "Tiny, Table 0"
paper = "author2010"
kind = "table"
baseline = "GBDT"

[printed]
columns = ["ndcg@1", "map"]
[printed.rows]
Oracle = [0.9, 0.8]
IntervalRank = [0.7, 0.6]

[shared.trees]
fixed = { n_estimators = 4, learning_rate = 0.3, min_child_samples = 5 }
grid = { num_leaves = [2, 5] }

[[rows]]
name = "GBDT"
ranker = "gbdt"
use = "trees"

[[rows]]
name = "IntervalRank"
ranker = "intervalrank"
use = "trees"
fixed = { targets = [0.0, 1.0, 3.0] }
grid = { num_leaves = [3], lambda1 = [0.1, 1.0] }

[[studies]]
name = "tiny"
folds = "TINY"
select = "ndcg@5"

[[studies.columns]]
metrics = "ndcg@1:2,map"
convention = "letor3"

[[studies.columns]]
metrics = "ndcg@3"
name = "{metric} standard"
scale = 100
"""

FIGURE = """
title = "Tiny, Figure 0"
paper = "author2010"
kind = "figure"

[shared.trees]
fixed = { "model.learning_rate" = 0.3, "model.min_child_samples" = 5, "model.num_leaves" = 3 }

[[rows]]
name = "GBDT"
ranker = "gbdt"
use = "trees"

[[rows]]
name = "ListMLE"
ranker = "listmle"
use = "trees"
fixed = { model = "trees" }

[[rows]]
name = "ListMLE calibrated"
family = "ListMLE"
ranker = "listmle"
use = "trees"
fixed = { model = "trees", calibration = 0.1 }

[[studies]]
name = "tiny"
folds = "TINY"
select = "ndcg@5"
trees = [1, 3, 6]
fixed = { "model.n_estimators" = 6 }
[[studies.columns]]
metrics = "ndcg@1,ndcg@5"

[[studies]]
name = "web"
synthetic = { shape = "web", queries = 40, sizes = [0.5, 0.25, 0.25] }
select = "ndcg(max_per_group=2)@5"
trees = [2, 4]
fixed = { "model.n_estimators" = 4 }
[[studies.columns]]
metrics = "ndcg(max_per_group=2)@5"
name = "{metric} of hosts"
"""


def write_folds(folder, folds=3):
    """Write LETOR folds below ``folder / "TINY"``; every part has queries of its own."""
    for fold in range(1, folds + 1):
        target = folder / "TINY" / f"Fold{fold}"
        target.mkdir(parents=True)
        for part, queries in (("train", 12), ("vali", 5), ("test", 6)):
            seed = 10 * fold + len(part)
            save(small_data(queries=queries, documents=10, seed=seed), target / f"{part}.txt")
    return folder


def write_toml(path, text=TABLE, **replaced):
    """Write an experiment file, with texts replaced: ``{"old": "new"}``."""
    for old, new in replaced.get("changes", {}).items():
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)
    return path


def drawn_curves(folder, figure):
    """Run a figure of the tiny data; return its result, the folds and the lines reported."""
    made = experiment(write_toml(folder / "figure0.toml", figure))
    folds = load_folds(made, write_folds(folder))
    lines = []
    return run_curves(made, folds, report=lines.append), folds, lines

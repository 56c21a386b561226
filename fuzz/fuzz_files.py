"""Damage files of every kind that is read: each is read or refused in a sentence, nothing else.

Model files (bytes, and parts under a receipt that is right again), models of LightGBM, XGBoost,
CatBoost and RankLib, runs, judgments, ratings, tables and feature logs with judgment lists.
``python fuzz/fuzz_files.py -max_total_time=60``, or ``--runs N``.
A file that raises another error is kept beside where the run began, and its name is reported.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from small_data import small_data  # noqa: E402

import rankwright  # noqa: E402
from rankwright.data.files import load, save  # noqa: E402
from rankwright.errors import RankwrightError  # noqa: E402
from rankwright.persist.container import read_parts, write_parts  # noqa: E402
from rankwright.persist.model_file import load_model  # noqa: E402
from rankwright.ranklib.conversion import load_ranklib, save_ranklib  # noqa: E402

DATA = small_data(queries=8, documents=6, features=3)
RANKERS: dict[str, dict[str, Any]] = {
    "lambdamart": {"n_estimators": 2, "num_leaves": 4},
    "random_forest": {"n_bags": 2, "n_estimators": 1},
    "memr": {},
    "prank": {},
    "rankboost": {"n_rounds": 3},
    "adarank": {"n_rounds": 3},
    "coordinate_ascent": {"n_restarts": 1},
    "linear_regression": {},
}
IN_RANKLIB = set(RANKERS) - {"memr", "prank"}
PIECES = [b"", b" ", b"\n", b"\t", b",", b":", b"#", b"<split>", b"</split>", b"0", b"-1", b"1e999"]
PIECES += [b"nan", b"9" * 20, b"\0", b"\xff", b'"', b"{", b"}", b"null", b"-0.5", b"1 2 3"]

Reader = Callable[[Path], Any]


def seeds(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """Write a file of each kind; yield its kind, its place and what reads it."""
    for name, settings in RANKERS.items():
        ranker = rankwright.ranker(name, **settings).fit(DATA)
        path = folder / f"{name}.rw"
        ranker.save(path)
        yield "model", path, _scores
        if name in IN_RANKLIB:
            text = folder / f"{name}.txt"
            save_ranklib(ranker, text)
            yield "RankLib model", text, _ranklib_scores
    for path in _of_other_libraries(folder):
        yield "model of another library", path, _scores
    for ending in ("csv", "tsv", "txt"):
        save(DATA, folder / f"table.{ending}")
        yield ending, folder / f"table.{ending}", load
    run, qrels, ratings = (folder / name for name in ("run.trec", "qrels.txt", "taste.ratings"))
    run.write_bytes(b"".join(b"q%d Q0 d%d %d %f me\n" % (i // 4, i, i % 4, -i) for i in range(12)))
    qrels.write_bytes(b"".join(b"q%d 0 d%d %d\n" % (i // 4, i, i % 3) for i in range(12)))
    ratings.write_bytes(b"".join(b"%d %d %d\n" % (i % 5, i // 5, i % 4) for i in range(25)))
    yield "run", run, lambda path: load(path, format="trec", qrels=qrels)
    yield "judgments", qrels, lambda path: load(run, format="trec", qrels=path)
    yield "ratings", ratings, lambda path: load(path, format="ratings")
    yield from _logs(folder)


def _logs(folder: Path) -> Iterator[tuple[str, Path, Reader]]:
    """Write a feature log of each kind of engine, and a judgment list."""
    judged = folder / "judged.txt"
    judged.write_bytes(b"# qid:1: rambo*2\n\n3 qid:1 # d1 rambo\n0 qid:1 1:0.5 # d2\n")
    features = b'[{"name":"a","value":1.5},{"name":"b"}]'
    hit = b'{"_id":"%s","fields":{"_ltrlog":[{"qid:1":' + features + b"}]}}"
    hits = b'{"hits":{"hits":[%s,%s]}}' % (hit % b"d1", hit % b"d2")
    docs = b'{"id":"d1","[features]":"a=1.5,b=0.0"},{"id":"d2","[features]":"b=2.0"}'
    child = b'{"id":"id:n:t::d1","fields":{"matchfeatures":{"a":1.5,"b":0}}}'
    logs = {
        "plugin": hits + b"\n" + hits,
        "msearch": b'{"responses":[' + hits + b"]}",
        "solr": b'{"responseHeader":{"params":{"q":"rambo"}},"response":{"docs":[' + docs + b"]}}",
        "vespa": b'{"qid":1,"root":{"children":[' + child + b"]}}",
    }
    for name, content in logs.items():
        path = folder / f"{name}.jsonl"
        path.write_bytes(content)
        yield "feature log", path, lambda path: load(path, judgments=judged)
    log = folder / "plugin.jsonl"
    yield "judgment list", judged, lambda path: load(log, judgments=path)


def _of_other_libraries(folder: Path) -> Iterator[Path]:
    """Write models of LightGBM, XGBoost and CatBoost, the first two with categories."""
    import catboost
    import lightgbm
    import pandas
    import xgboost

    frame = pandas.DataFrame(DATA.X, columns=list("abc"))
    towns = pandas.Categorical([f"town {row % 3}" for row in range(len(frame))])
    frame["c"] = pandas.Series(towns)
    params = {"min_data_in_leaf": 1, "min_data_per_group": 1, "cat_smooth": 0, "verbosity": -1}
    lightgbm.train(params, lightgbm.Dataset(frame, DATA.y), 3).save_model(folder / "lightgbm.txt")
    yield folder / "lightgbm.txt"
    forest = {**params, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    lightgbm.train(forest, lightgbm.Dataset(frame, DATA.y), 3).save_model(folder / "forest.txt")
    yield folder / "forest.txt"
    matrix = xgboost.DMatrix(frame, DATA.y, enable_categorical=True)
    for ending, kind in (("json", "gbtree"), ("ubj", "dart")):
        booster = xgboost.train({"booster": kind, "max_cat_to_onehot": 1}, matrix, 3)
        booster.save_model(folder / f"xgboost.{ending}")
        yield folder / f"xgboost.{ending}"
    for policy in ("SymmetricTree", "Lossguide"):
        quiet = {"verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoost({"iterations": 3, "depth": 3, "grow_policy": policy, **quiet})
        path = folder / f"catboost-{policy}.json"
        model.fit(DATA.X, DATA.y).save_model(str(path), format="json")
        yield path


def _scores(path: Path) -> None:
    load_model(path).predict(DATA.X)


def _ranklib_scores(path: Path) -> None:
    load_ranklib(path, n_features=3).predict(DATA.X)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return ``content`` with pieces put in, taken out, replaced, moved or cut off."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(changed) + 1), rng.choice([0, 1, 1, 2, 9, 60])
        piece = rng.choice([rng.choice(PIECES), rng.randbytes(1), bytes(changed[:length])])
        changed[at : at + length] = piece
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)


def damaged(kind: str, path: Path, target: Path, rng: random.Random) -> None:
    """Write a damaged copy; of a model file, half of the time one whose digests are right."""
    if kind != "model" or rng.random() < 0.5:
        target.write_bytes(mutated(path.read_bytes(), rng))
        return
    receipt, parts = read_parts(path)
    if rng.random() < 0.3:
        key = rng.choice(sorted(receipt))
        receipt[key] = rng.choice([None, -1, 1e300, "x", [], {}, receipt.get("n_features"), True])
    else:
        name = rng.choice(sorted(parts))
        parts[name] = mutated(parts[name], rng)
    for own in ("format", "parts"):
        receipt.pop(own, None)
    write_parts(target, receipt, parts)


def fuzzed(rng: random.Random, runs: int | None, seconds: float, folder: Path) -> Counter[str]:
    """Read damaged files until the time or the runs are over; count what became of them."""
    warnings.simplefilter("ignore")  # of numbers that are too large for a sum
    found = Counter[str]()
    kinds = list(seeds(folder))
    ends = time.monotonic() + seconds
    while found.total() < runs if runs else time.monotonic() < ends:
        kind, path, read = rng.choice(kinds)
        target = folder / f"damaged{path.suffix}"
        damaged(kind, path, target, rng)
        try:
            read(target)
        except RankwrightError:
            found["refused"] += 1
        except Exception:
            kept = Path(f"damaged-{found.total()}{path.suffix}").resolve()
            kept.write_bytes(target.read_bytes())
            print(f"{kind} after {path.name}: {kept}")
            raise
        else:
            found["read"] += 1
    return found


def main() -> None:
    """Fuzz for a while and tell how many files were read and refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-max_total_time", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--runs", type=int, help="so many files instead")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="of the damage")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="rankwright-fuzz-") as folder:
        found = fuzzed(rng, options.runs, options.max_total_time, Path(folder))
    print(f"{found.total()} files: {found['read']} read, {found['refused']} refused in a sentence")


if __name__ == "__main__":
    main()

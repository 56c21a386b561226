"""Compile the kernels ahead, for a wheel: an archive for each baseline CPU of this machine.

    python tools/compile_kernels.py FOLDER                        what a wheel carries
    python tools/compile_kernels.py FOLDER --cpus x86-64-v3 --rankers lambdamart,dorm

Kernels are compiled by being used, in a fresh process for each CPU: files are read and written,
every ranker is trained, evaluated and saved as a user would on the command line and from Python.
What is not reached is compiled on first use, as in a checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SMALL: dict[str, dict[str, Any]] = {
    "early_stopping_rounds": {},
    "n_estimators": {"n_estimators": 3},
    "n_bags": {"n_bags": 2},
    "epochs": {"epochs": 2},
    "max_iter": {"max_iter": 5},
    "n_rounds": {"n_rounds": 3},
    "generations": {"generations": 2},
}
"""Settings that keep a fit short, by the name of the parameter."""


def compile_for(cpu: str, target: Path, rankers: str) -> None:
    """Use the kernels in a process that compiles for ``cpu``; write their archive."""
    from rankwright.core.kernel_cache import kernel_hash, versions, write_archive

    made_of = versions()["kernels"]
    with tempfile.TemporaryDirectory() as scratch:
        settings = {
            "NUMBA_CPU_NAME": cpu,
            "NUMBA_CPU_FEATURES": "",  # those of the named CPU, and no others
            "NUMBA_DISABLE_INTEL_SVML": "1",  # a library that users need not have
            "RANKWRIGHT_CACHE": scratch,
            "RANKWRIGHT_COMPILE": "1",
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, __file__, "--tour", "--rankers", rankers]
        subprocess.run(command, env={**os.environ, **settings}, check=True, cwd=scratch)
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"{cpu}.zip"
        n = write_archive(Path(scratch), path)
    if kernel_hash() != made_of:
        raise SystemExit("the sources were changed while kernels were compiled; start again.")
    if n == 0:
        raise SystemExit(f"no kernel was compiled for {cpu}.")
    print(f"{path.name}: {n} kernels, {path.stat().st_size / 1e6:.1f} MB", flush=True)


# --- the tour --------------------------------------------------------------------------------


def tour(rankers: list[str]) -> None:
    """Use everything once; a part that cannot run here (an extra that is missing) is named."""
    from rankwright import registry

    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        files()
        for name in rankers or list(registry.RANKERS):
            attempt(f"train {name}", lambda name=name: train(name))
        for name in rankers or list(registry.RANKERS):
            attempt(f"fit {name}", lambda name=name: fit(name))
        if not rankers:
            attempt("metrics", metrics)
            attempt("clicks", clicks)
            attempt("interleaving", interleaving)
            attempt("requests to a server", requests)
            attempt("compare", compare)
            attempt("demo", demo)


def attempt(what: str, call: Callable[[], object]) -> None:
    """Do one thing; say what went wrong and go on."""
    from rankwright.errors import MissingExtraError, RankwrightError

    try:
        call()
    except MissingExtraError as error:
        print(f"not compiled ahead: {what}: {error}", flush=True)
    except RankwrightError:
        return  # it does not take such data, and says so
    except Exception as error:  # the wheel is whole without it
        print(f"not compiled ahead: {what}: {error}", flush=True)


def cli(line: str) -> None:
    """Run a line of the program in this process."""
    from rankwright.cli.main import app

    with suppress(SystemExit):
        app(line.split(), standalone_mode=False)


def files() -> None:
    """Write and read files: dense, sparse, with and without names of documents."""
    import numpy as np

    import rankwright as rw
    from rankwright.data.normalize import NORMALIZERS

    for part in ("train", "valid", "test"):
        cli(f"convert digits/{part} {part}.txt --read queries=12 --read documents=12")
        lines = Path(f"{part}.txt").read_text(encoding="utf-8").splitlines()
        named = [f"{line.partition('#')[0]} #docid = D{i}" for i, line in enumerate(lines)]
        Path(f"{part}.txt").write_text("\n".join(named) + "\n", encoding="utf-8")
    wide = np.random.default_rng(0).integers(1, 60_000, (60, 5))
    rows = [
        f"{i % 3} qid:{i // 6} " + " ".join(f"{k}:0.5" for k in sorted(set(row.tolist())))
        for i, row in enumerate(wide)
    ]
    Path("sparse.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    attempt("sparse", lambda: rw.load("sparse.txt"))
    attempt("float64", lambda: rw.load("train.txt", dtype="float64"))
    for line in (
        "synthetic mslr10k long.txt --queries 6",
        "inspect train.txt",
        "convert train.txt data.store",
        "convert sparse.txt sparse-again.txt",
    ):
        attempt(line, lambda line=line: cli(line))
    keeping_zeros = [name for name in NORMALIZERS if name in ("minmax", "sum", "log")]
    for path, names in (("train.txt", NORMALIZERS), ("sparse.txt", keeping_zeros)):
        for name in names:
            attempt(f"{name} of {path}", lambda path=path, name=name: normalize(path, name))


def normalize(path: str, name: str) -> None:
    """Normalise one file."""
    from rankwright.data.files import load
    from rankwright.data.normalize import normalizer

    data = load(path)
    normalizer(name).fit(data).transform(data)


def small_settings(ranker: Any) -> dict[str, Any]:
    """Return settings that keep a fit short."""
    known = ranker.get_params()
    return {k: v for name, own in SMALL.items() if name in known for k, v in own.items()}


def train(name: str) -> None:
    """Train, save, evaluate and rank on the command line, as in the README."""
    import rankwright as rw

    own = "".join(f" --set {k}={v}" for k, v in small_settings(rw.ranker(name)).items())
    parts = "--train train.txt --valid valid.txt --test test.txt"
    cli(f"train {name} {parts} --save model.rw{own}")
    for data in ("long.txt", "train.txt"):  # some losses have code of their own for long lists
        cli(f"train {name} --train {data} --save model.rw{own}")
    cli("evaluate test.txt --load model.rw")
    cli("rank model.rw test.txt -o run.txt")


def fit(name: str) -> None:
    """Fit on arrays of float64, as from NumPy and pandas."""
    import numpy as np

    import rankwright as rw

    data = rw.load("train.txt", dtype="float64")
    ranker = rw.ranker(name)
    ranker.set_params(**small_settings(ranker))
    ranker.fit(np.asarray(data.X), data.y, qid=data.query_of_row())
    ranker.predict(np.asarray(data.X))


def metrics() -> None:
    """Evaluate every metric."""
    from rankwright import registry

    for name in registry.METRICS:
        name = "err(max=9)" if name == "err" else name  # grades of the digits
        for text in (name, f"{name}@5"):
            line = f"evaluate test.txt --load model.rw --metrics {text}"
            attempt(text, lambda line=line: cli(line))


def clicks() -> None:
    """Inspect a click log, and fit every click model to it."""
    from rankwright.clicks import ClickLog, save_log
    from rankwright.clicks.models import MODELS

    shown, clicked = ["a", "b", "c", "c", "a", "b"], [0, 1, 0, 1, 0, 1]
    log = ClickLog.from_arrays(["q", "r"], shown, clicked, session_sizes=[3, 3])
    save_log(log, "log.csv")
    cli("clicks inspect log.csv")
    for name in MODELS:
        cli(f"clicks fit {name} log.csv --save click-model.rw")


def interleaving() -> None:
    """Interleave two rankings by every method, and score the lists."""
    from rankwright import clicks
    from rankwright.clicks.interleaving import METHODS

    for name in METHODS:
        shown = clicks.interleave_scores([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]], name)
        line = shown.to_json("q", ["a", "b", "c"]) | {"clicks": [0, 1, 0]}
        Path("lists.jsonl").write_text(json.dumps(line), encoding="utf-8")
        cli("interleave score lists.jsonl")


def requests() -> None:
    """Read the body of a request."""
    from rankwright.serve.json_bodies import prepare_kernels

    prepare_kernels()


def compare() -> None:
    """Compare rankers, with tests of significance and a report."""
    cli("compare train.txt --rankers gbdt,linear_regression --folds 3 -o report.html")


def demo() -> None:
    """Run the demo, which is what many run first."""
    cli("demo -o demo.html")


def main() -> None:
    """Compile for every CPU that is asked for, one after the other."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--cpus", default="", help="comma-separated; all of this machine's kind")
    options.add_argument("--rankers", default="", help="comma-separated; all")
    options.add_argument("--tour", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.tour:
        tour([name for name in given.rankers.split(",") if name])
        return
    if given.folder is None:
        options.error("name the folder that the archives go to.")
    from rankwright.core.kernel_cache import BASELINES, machine

    known = BASELINES.get(machine(), {})
    for cpu in given.cpus.split(",") if given.cpus else known:
        if cpu not in known:
            options.error(f"there is no CPU {cpu} here: {', '.join(known) or 'none is known'}.")
        compile_for(cpu, given.folder.resolve(), given.rankers)


if __name__ == "__main__":
    main()

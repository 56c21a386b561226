"""Click models on the Yandex sample and on simulated sessions: PyClick, CLAX.

PyClick (EM in Python, one thread) gets every tenth session and ten iterations, as all of it would
take hours; ours do the same there. It is no package of an index (``pyclick`` there is another
project), so recorded seconds are beside it: those of an iteration of PyClick as it is (commit
98e7e46) by CPython 3.11.7 on a shared machine of two cores, which ours do again with the sessions
of the record. CLAX fits by gradient descent: 50 epochs of AdamW over all
sessions, against 50 iterations of EM; the log-likelihood on the test sessions is beside it. There
are figures of clax-models 0.1.1 with one thread, recorded on the same machine, too;
``..._recorded`` is a ratio to such a record.

The simulated log has a million sessions of ten documents, or as many as RANKWRIGHT_SESSIONS says,
of 10,000 queries, clicked by a position-based model. Memory is what a fit of PBM to a log in a
Parquet file, of a quarter of these sessions, adds to a process of its own, and how that grows where
the same sessions come four times.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import clicks

from .contest import Contender, contest
from .data_sets import data_folder
from .findings import OURS, Findings, Record
from .timing import apart, memory_in_use, peak_memory

ITERATIONS, BATCH = 50, 512
FEW_ITERATIONS, EVERY = 10, 10
QUERIES, DOCUMENTS, LENGTH = 10_000, 30, 10
MEASURE = "log-likelihood per impression on test sessions"
PYCLICK = {"pbm": "PBM", "ubm": "UBM"}
PYCLICK_RECORDED = {  # every which session, seconds of an iteration
    "pbm": (1, 11.22),
    "ubm": (1, 12.31),
    "dbn": (20, 22.95),
}
CLAX_RECORDED = {  # seconds of 50 epochs, log-likelihood on the test sessions
    "pbm": (32.8, -0.352704316378),
    "ubm": (87.4, -0.324478119612),
    "dbn": (45.6, -0.329998672009),
    "ccm": (46.1, -0.329632043839),
}
CLAX = {
    "pbm": "PositionBasedModel",
    "ubm": "UserBrowsingModel",
    "dbn": "DynamicBayesianNetwork",
    "ccm": "ClickChainModel",
}


def run() -> Findings:
    found = Findings()
    folder = data_folder() / "Yandex_clicks"
    train, test = (clicks.load_log(folder / f"{part}.tsv.xz") for part in ("train", "test"))
    some = train.select(np.arange(0, train.n_sessions, EVERY))
    for name in PYCLICK:
        one = found.add(_against_pyclick(name, some))
        found.note_figure(f"{name}_vs_pyclick", one.ratio("PyClick", OURS))
    for name in PYCLICK_RECORDED:
        one = found.add(_against_recorded_pyclick(name, train))
        found.note_figure(f"{name}_vs_pyclick_recorded", one.ratio("PyClick, recorded", OURS))
    for name in CLAX:
        one = found.add(_against_clax(name, train, test))
        found.note_figure(f"{name}_vs_clax", one.ratio("CLAX", OURS))
        found.note_figure(f"{name}_vs_clax_recorded", one.ratio("CLAX, recorded", OURS))
    sessions = int(os.environ.get("RANKWRIGHT_SESSIONS", "1_000_000"))
    found.add(_simulated(sessions))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log.parquet"
        clicks.save_log(simulated_log(sessions // 4), path)
        once, four_times = apart(_memory, path, 1), apart(_memory, path, 4)
        found.figures["memory_of_a_fit_megabytes"] = once / 2**20
        found.figures["memory_of_a_log_4_times_as_long"] = four_times / once
    return found


# --- the Yandex sample -------------------------------------------------------------------------


def _against_pyclick(name: str, log: clicks.ClickLog) -> Findings:
    return contest(
        f"{name.upper()}, {log.n_sessions:,} sessions, {FEW_ITERATIONS} iterations",
        [
            Contender(
                OURS, "rankwright", "EM, all cores", lambda: _ours(name, log, FEW_ITERATIONS)
            ),
            Contender(
                "PyClick",
                "pyclick",
                "EM, one thread",
                lambda: _pyclick(name, log),
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=5,
    )


def _against_recorded_pyclick(name: str, train: clicks.ClickLog) -> Findings:
    every, seconds = PYCLICK_RECORDED[name]
    log = train.select(np.arange(0, train.n_sessions, every))
    task = f"{name.upper()}, {log.n_sessions:,} sessions, {FEW_ITERATIONS} iterations"
    ours = Contender(OURS, "rankwright", "EM, all cores", lambda: _ours(name, log, FEW_ITERATIONS))
    found = contest(task, [ours], rounds=5)
    recorded = f"EM, one thread, recorded: {seconds} s an iteration"
    found.records.append(
        Record(task, "PyClick, recorded", "98e7e46", recorded, FEW_ITERATIONS * seconds)
    )
    return found


def _against_clax(name: str, train: clicks.ClickLog, test: clicks.ClickLog) -> Findings:
    task = f"{name.upper()}, {train.n_sessions:,} sessions"
    found = contest(
        task,
        [
            Contender(
                OURS,
                "rankwright",
                f"{ITERATIONS} iterations of EM, all cores",
                lambda: _ours(name, train, ITERATIONS),
                lambda model: model.evaluate(test).log_likelihood,
            ),
            Contender(
                "CLAX",
                "clax-models",
                f"{ITERATIONS} epochs of AdamW, rate .003, batches of {BATCH}, all cores",
                lambda: _clax(name, train, test),
                lambda value: value,
                rounds=1,
                warm_up=False,
            ),
        ],
        rounds=3,
        measure=MEASURE,
    )
    seconds, quality = CLAX_RECORDED[name]
    settings = f"{ITERATIONS} epochs of AdamW, batches of {BATCH}, one thread, recorded"
    found.records.append(
        Record(task, "CLAX, recorded", "0.1.1", settings, seconds, quality, MEASURE)
    )
    return found


def _ours(name: str, log: clicks.ClickLog, iterations: int) -> Callable[[], Any]:
    return lambda: clicks.model(name, max_iter=iterations, tol=0.0).fit(log)


def _pyclick(name: str, log: clicks.ClickLog) -> Callable[[], Any]:
    from importlib import import_module

    kind = getattr(import_module(f"pyclick.click_models.{PYCLICK[name]}"), PYCLICK[name])
    result = import_module("pyclick.search_session.SearchResult").SearchResult
    session = import_module("pyclick.search_session.SearchSession").SearchSession
    sessions = []
    for s in range(log.n_sessions):
        one = session(str(log.query[s]))
        here = slice(int(log.indptr[s]), int(log.indptr[s + 1]))
        one.web_results = [
            result(str(document), int(click))
            for document, click in zip(log.document[here], log.click[here], strict=True)
        ]
        sessions.append(one)

    def fit() -> Any:
        model = kind()
        model._inference.iter_num = FEW_ITERATIONS
        with redirect_stdout(io.StringIO()):
            model.train(sessions)
        return model

    return fit


def _clax(name: str, train: clicks.ClickLog, test: clicks.ClickLog) -> Callable[[], float]:
    import clax
    import optax
    from flax import nnx
    from flax.training.early_stopping import EarlyStopping

    both = clicks.concatenate_logs([train, test])
    pairs = both.pairs()
    batches = [
        _batches(pairs.code[lo:hi].reshape(-1, LENGTH), log.click.reshape(-1, LENGTH))
        for log, lo, hi in (
            (train, 0, train.n_impressions),
            (test, train.n_impressions, both.n_impressions),
        )
    ]

    def fit() -> float:
        kind = getattr(clax, CLAX[name])
        sizes = {"positions": LENGTH} if name in ("pbm", "ubm") else {}
        model = kind(**sizes, query_doc_pairs=len(pairs.query), rngs=nnx.Rngs(42))
        trainer = clax.Trainer(
            optax.adamw(0.003, weight_decay=1e-4),
            epochs=ITERATIONS,
            early_stopping=EarlyStopping(patience=ITERATIONS),
        )
        with redirect_stdout(io.StringIO()):
            trainer.train(model, batches[0], batches[1][:1])
            return float(trainer.test_clicks(model, batches[1])["test_ll"].iloc[0])

    return fit


def _batches(code: np.ndarray, click: np.ndarray) -> list[dict[str, Any]]:
    """Return sessions as CLAX takes them."""
    import jax.numpy as jnp

    found = []
    for lo in range(0, len(code), BATCH):
        shape = code[lo : lo + BATCH].shape
        found.append(
            {
                "query_doc_ids": jnp.asarray(code[lo : lo + BATCH]),
                "positions": jnp.asarray(np.broadcast_to(np.arange(1, LENGTH + 1), shape)),
                "clicks": jnp.asarray(click[lo : lo + BATCH], jnp.float32),
                "mask": jnp.ones(shape, bool),
            }
        )
    return found


# --- simulated sessions ------------------------------------------------------------------------


def simulated_log(sessions: int, seed: int = 0) -> clicks.ClickLog:
    """Return lists in which good documents are shown on top, with noise, and clicks by a PBM."""
    rng = np.random.default_rng(seed)
    query = np.minimum(rng.zipf(1.3, sessions) - 1, QUERIES - 1).astype(np.int32)
    attraction = rng.random((QUERIES, DOCUMENTS)).astype(np.float32) ** 2
    document = np.empty((sessions, LENGTH), np.int32)
    click = np.empty((sessions, LENGTH), bool)
    examined = 1.0 / np.arange(1, LENGTH + 1)
    for lo in range(0, sessions, 1 << 16):
        here = query[lo : lo + (1 << 16)]
        noisy = attraction[here] + rng.random((len(here), DOCUMENTS), np.float32)
        top = np.argsort(-noisy, axis=1)[:, :LENGTH]
        p = np.take_along_axis(attraction[here], top, axis=1) * examined
        document[lo : lo + len(here)] = top + here[:, None] * DOCUMENTS
        click[lo : lo + len(here)] = rng.random(p.shape) < p
    return clicks.ClickLog(
        indptr=np.arange(0, sessions * LENGTH + 1, LENGTH, dtype=np.int64),
        query=query,
        document=document.ravel(),
        position=np.tile(np.arange(1, LENGTH + 1, dtype=np.int32), sessions),
        click=click.ravel(),
        query_ids=np.arange(QUERIES),
        document_ids=np.arange(QUERIES * DOCUMENTS),
    )


def _simulated(sessions: int) -> Findings:
    log, found = simulated_log(sessions), Findings()
    for name in ("sdbn", *CLAX):
        settings = {} if name == "sdbn" else {"max_iter": ITERATIONS, "tol": 0.0}
        how = f"{ITERATIONS} iterations of EM" if settings else "counts"
        one = found.add(
            contest(
                f"{name.upper()}, {sessions:,} simulated sessions",
                [
                    Contender(
                        OURS,
                        "rankwright",
                        f"{how}, all cores",
                        lambda name=name, settings=settings: (
                            lambda: clicks.model(name, **settings).fit(log)
                        ),
                    )
                ],
                rounds=1,
            )
        )
        seconds = one.seconds(OURS)
        if seconds is not None:
            found.figures[f"{name}_sessions_per_second"] = sessions / seconds
    return found


class _Repeated:
    """A log in a file whose sessions come several times over."""

    def __init__(self, path: Path, times: int) -> None:
        self.log, self.times = clicks.open_log(path), times

    def parts(self) -> Iterator[clicks.ClickLog]:
        for _ in range(self.times):
            yield from self.log.parts()


def _memory(path: Path, times: int) -> int:
    """Return the bytes that a fit adds to the process."""
    few = path.with_name("few.parquet")
    clicks.save_log(simulated_log(1000), few)
    clicks.PBM(max_iter=2).fit(clicks.open_log(few))  # what is imported and compiled once
    before = memory_in_use()
    clicks.PBM(max_iter=2).fit(_Repeated(path, times))
    return peak_memory() - before

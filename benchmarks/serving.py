"""A server beside the one that people write first, and under a load that goes wrong.

LambdaMART of 500 trees of 31 leaves. *Speed*: lists of 100 documents of 136 features, and short
ones of 10 documents of 20, to our server and to a plain one (FastAPI, pydantic and LightGBM's
predict, `plain_server.py`), both over uvicorn with httptools. The client is a process of its own
that sends prepared bytes (`http_load.py`), on the same cores. Servers take turns, and of each the
best of three turns counts. ``json_vs_plain``, ``npy_vs_plain`` and ``arrow_vs_plain`` are ratios of
requests per second with eight clients; figures ``..._cpu_milliseconds`` are the processor time of a
server for a request, which a busy machine changes less.

*Interleaving*: the same lists as JSON to a server that interleaves two models by team draft and
logs what it shows; ``interleaving_milliseconds`` is the processor time to interleave the scores of
two models for 100 documents and to write the line, without HTTP and scoring.

*Failures*: while four connections send JSON the model file is replaced ten times and one request in
fifty is malformed; at the end the server is asked to stop under load. Whatever is not answered as
it should be counts as a failure. ``python benchmarks/serving.py --seconds 300`` is the long run of
``make soak``.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SECONDS, CONNECTIONS, TREES, FEATURES, DOCUMENTS = 20.0, 4, 500, 136, 100
SHORT = (10, 20)  # documents and features of short lists
CLIENTS, MAIN, TURNS, TURN_SECONDS = (1, 8, 64), 8, 3, 1.0
MALFORMED = [b"{", b"[" * 5000, b'{"documents": [{"features": [NaN]}]}', b'{"documents": 7}']
HEADERS = {"content-type": "application/json"}
HERE = Path(__file__).resolve().parent


def run(seconds: float = SECONDS) -> dict[str, float]:
    """Return the figures of both parts; the second takes so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder)
        return {**speed(own), **interleaving(own), **failures(own, seconds)}


# --- speed -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A server's process and port, and the file of a request to it."""

    name: str
    process: int
    port: int
    request: Path


def speed(folder: Path) -> dict[str, float]:
    """Return requests per second, latencies and processor times, and ratios to the plain server."""
    web, short = folder / "web.rw", folder / "short.rw"
    saved_model(web, 0)
    saved_model(short, 0, SHORT[1])
    command = [sys.executable, "-m", "rankwright", "serve", f"web={web}", f"short={short}"]
    plain = [sys.executable, str(HERE / "plain_server.py")]
    figures: dict[str, float] = {}
    with (
        serving([*command, "--port", "0"]) as ours,
        serving([*plain, text_of(web)]) as long_plain,
        serving([*plain, text_of(short)]) as short_plain,
    ):
        for name, size, theirs in (
            ("web", (DOCUMENTS, FEATURES), long_plain),
            ("short", SHORT, short_plain),
        ):
            contenders = [Contender("plain", *theirs, folder / f"{name}-plain")]
            bodies = requests(name, *size)
            contenders[0].request.write_bytes(bodies.pop("plain"))
            for kind, content in bodies.items():
                contenders.append(Contender(kind, *ours, folder / f"{name}-{kind}"))
                contenders[-1].request.write_bytes(content)
            prefix = "" if name == "web" else "short_"
            for clients in CLIENTS if name == "web" else (MAIN,):
                figures |= {
                    prefix + figure: value for figure, value in contest(contenders, clients).items()
                }
    return figures


def interleaving(folder: Path) -> dict[str, float]:
    """Return what it costs to interleave two models, beside ranking with one of them."""
    for seed, name in enumerate("ab"):
        saved_model(folder / f"{name}.rw", seed)
    models = [f"{name}={folder / name}.rw" for name in "ab"]
    shown = ["--interleave", "team_draft", "--impressions", str(folder / "shown.jsonl")]
    command = [sys.executable, "-m", "rankwright", "serve", *models, *shown, "--port", "0"]
    one = requests("a", DOCUMENTS, FEATURES)["json"]
    both = one.replace(b"/v1/models/a/rank", b"/v1/interleave/rank").replace(b', "top": 10', b"")
    size = len(both.partition(b"\r\n\r\n")[2])
    both = re.sub(rb"content-length: \d+", b"content-length: %d" % size, both)
    (folder / "one").write_bytes(one)
    (folder / "both").write_bytes(both)
    with serving(command) as server:
        contenders = [
            Contender(name, *server, folder / file)
            for name, file in (("one_model", "one"), ("interleaved", "both"))
        ]
        found = contest(contenders, MAIN)
    found["interleaved_vs_one_model"] = (
        found[f"interleaved_requests_per_second_{MAIN}"]
        / found[f"one_model_requests_per_second_{MAIN}"]
    )
    seconds = seconds_of_a_list(folder / "alone.jsonl")
    return {
        **found,
        "interleaving_milliseconds": 1000 * seconds,
        "interleaved_lists_per_second": 1 / seconds,
    }


def seconds_of_a_list(path: Path, lists: int = 2000) -> float:
    """Return the processor time to interleave two arrays of scores and log the list."""
    from rankwright.clicks import TeamDraft, interleave_scores
    from rankwright.serve.impressions import ImpressionLog

    scores = np.random.default_rng(0).normal(size=(2, DOCUMENTS))
    ids = [f"d{row}" for row in range(DOCUMENTS)]
    method, log = TeamDraft(10), ImpressionLog(path, 1 << 30, lambda *_: None)
    interleave_scores(scores, method)
    began = time.process_time()  # the thread that writes included
    for number in range(lists):
        shown = interleave_scores(scores, method, session=f"s{number}")
        log.append({"session": number, **shown.to_json("q", ids)})
    log.close()
    return (time.process_time() - began) / lists


def contest(contenders: list[Contender], clients: int) -> dict[str, float]:
    """Return what each contender does with so many clients, and the ratios with ``MAIN``."""
    found: dict[str, dict[str, float]] = {}
    for turn in range(TURNS):
        for one in contenders:
            before = processor_seconds(one.process)
            got = load(one, clients, TURN_SECONDS if turn else TURN_SECONDS / 2)
            if got["failed"] or not got["answered"]:
                raise RuntimeError(f"{one.name}: {got['failed']:.0f} requests failed")
            got["rate"] = got["answered"] / got["seconds"]
            got["cpu"] = 1000 * (processor_seconds(one.process) - before) / got["answered"]
            best = found.setdefault(one.name, got)
            for figure in ("rate", "p50", "p99", "cpu"):  # each at its best: others use the cores
                least = -1 if figure == "rate" else 1
                best[figure] = least * min(least * best[figure], least * got[figure])
    figures = {}
    for name, got in found.items():
        figures[f"{name}_requests_per_second_{clients}"] = got["rate"]
        figures[f"{name}_p50_milliseconds_{clients}"] = got["p50"]
        figures[f"{name}_p99_milliseconds_{clients}"] = got["p99"]
        if clients == MAIN:
            figures[f"{name}_cpu_milliseconds"] = got["cpu"]
            if name != "plain" and "plain" in found:
                figures[f"{name}_vs_plain"] = got["rate"] / found["plain"]["rate"]
    return figures


def load(one: Contender, clients: int, seconds: float) -> dict[str, float]:
    """Return what a load from a process of its own reports."""
    command = [sys.executable, str(HERE / "http_load.py"), str(one.port), str(one.request)]
    sized = ["--clients", str(clients), "--seconds", str(seconds)]
    reported = subprocess.run([*command, *sized], stdout=subprocess.PIPE, check=True)
    return dict(json.loads(reported.stdout))


@contextmanager
def serving(command: list[str]) -> Iterator[tuple[int, int]]:
    """Run a server; yield its process and its port, which it says first."""
    quiet = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}  # spinning threads slow both servers
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=quiet
    )
    try:
        line = json.loads(server.stdout.readline())
        threading.Thread(target=server.stdout.read, daemon=True).start()
        port = line if isinstance(line, int) else int(line["address"].rpartition(":")[2])
        yield server.pid, port
    finally:
        server.kill()
        server.wait()


def requests(model: str, documents: int, features: int) -> dict[str, bytes]:
    """Return a request for each encoding, headers included: the same list in each."""
    import pyarrow as pa

    X = np.random.default_rng(0).normal(size=(documents, features)).round(6)
    ids = [f"d{row}" for row in range(documents)]
    listed = [{"id": own, "features": row} for own, row in zip(ids, X.tolist(), strict=True)]
    named = [
        {"id": own, "features": {str(k + 1): x for k, x in enumerate(row)}}
        for own, row in zip(ids, X.tolist(), strict=True)
    ]
    body = {"query": 0, "documents": listed, "top": 10}
    matrix, stream = io.BytesIO(), io.BytesIO()
    np.save(matrix, X)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), features)
    table = pa.table({"id": ids, "features": vectors})
    with pa.ipc.new_stream(stream, table.schema) as sink:
        sink.write_table(table)
    rank = f"/v1/models/{model}/rank"
    as_json, arrow = "application/json", "application/vnd.apache.arrow.stream"
    asked = {
        "plain": ("/rank", as_json, json.dumps(body).encode()),
        "json": (rank, as_json, json.dumps(body).encode()),
        "json_by_name": (rank, as_json, json.dumps({**body, "documents": named}).encode()),
        "npy": (f"{rank}?query=0&top=10", "application/x-npy", matrix.getvalue()),
        "arrow": (f"{rank}?query=0&top=10", arrow, stream.getvalue()),
    }
    return {
        kind: f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {encoding}\r\n"
        f"content-length: {len(content)}\r\n\r\n".encode()
        + content
        for kind, (path, encoding, content) in asked.items()
    }


def text_of(model: Path) -> str:
    """Return the path of LightGBM's text of a model."""
    path = model.with_suffix(".txt")
    path.write_bytes(zipfile.ZipFile(model).read("lightgbm.txt"))
    return str(path)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- failures --------------------------------------------------------------------------------


def failures(folder: Path, seconds: float) -> dict[str, float]:
    """Return the figures of a load of so many seconds during which much goes wrong."""
    models = [saved_model(folder / f"{seed}.rw", seed) for seed in (0, 1)]
    served = folder / "served.rw"
    served.write_bytes(models[0])
    server, port = started(served)
    try:
        loaded(port, 2)  # kernels, imports and pools are there before memory is looked at
        before = memory(server.pid)
        load = subprocess.Popen(
            [sys.executable, __file__, "--load", str(port), "--seconds", str(seconds + 1)],
            stdout=subprocess.PIPE,
        )
        for turn in range(10):
            time.sleep(seconds / 10)
            fresh = folder / "fresh.rw"
            fresh.write_bytes(models[(turn + 1) % 2])
            os.replace(fresh, served)
        after = memory(server.pid)
        server.send_signal(signal.SIGTERM)  # the load goes on for a second
        reported = json.loads(load.communicate(timeout=seconds + 60)[0])
        status = server.wait(60)
    finally:
        server.kill()
    return {
        "requests_per_second": reported["answered"] / reported["seconds"],
        "p50_milliseconds": reported["p50"],
        "p99_milliseconds": reported["p99"],
        "failed_requests": reported["failed"],
        "exit_status": status,
        "memory_megabytes_before": before,
        "memory_after_vs_before": after / before,
    }


def saved_model(path: Path, seed: int, features: int = FEATURES) -> bytes:
    import rankwright

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6000, features)).astype(np.float32)
    y = np.clip((X[:, :6].sum(1) * 0.5 + 1 + rng.normal(size=len(X))).round(), 0, 4)
    model = rankwright.LambdaMART(n_estimators=TREES, num_leaves=31, learning_rate=0.05)
    model.fit(X, y, group_sizes=[100] * 60).save(path)
    return path.read_bytes()


def started(model: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "rankwright", "serve", f"web={model}", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--reload-seconds", "0.2"], stderr=subprocess.PIPE, text=True
    )
    line = json.loads(server.stderr.readline())
    threading.Thread(target=server.stderr.read, daemon=True).start()
    return server, int(line["address"].rpartition(":")[2])


def memory(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


# --- the load, in its own process ------------------------------------------------------------


def loaded(port: int, seconds: float) -> dict[str, float]:
    """Send requests for so many seconds, or until the server takes no more."""
    ends = time.monotonic() + seconds
    times: list[list[float]] = [[] for _ in range(CONNECTIONS)]
    failed = [0] * CONNECTIONS
    threads = [
        threading.Thread(target=client, args=(port, ends, k, times[k], failed))
        for k in range(CONNECTIONS)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = np.concatenate(times) * 1000
    return {
        "answered": len(taken),
        "failed": sum(failed),
        "seconds": time.monotonic() - began,
        "p50": float(np.percentile(taken, 50)),
        "p99": float(np.percentile(taken, 99)),
    }


def client(port: int, ends: float, number: int, times: list[float], failed: list[int]) -> None:
    rng = np.random.default_rng(number)
    rows = rng.normal(size=(DOCUMENTS, FEATURES)).round(6).tolist()
    documents = [{"id": f"d{row}", "features": values} for row, values in enumerate(rows)]
    body = json.dumps({"query": number, "documents": documents, "top": 10}).encode()
    sent = 0
    while time.monotonic() < ends:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            link.connect()
        except OSError:
            return  # the server takes no more connections
        try:
            while link.sock is not None and time.monotonic() < ends:
                sent += 1
                bad = sent % 50 == 0
                content = MALFORMED[sent // 50 % len(MALFORMED)] if bad else body
                began = time.perf_counter()
                link.request("POST", "/v1/models/web/rank", content, HEADERS)
                answer = link.getresponse()
                reported = json.loads(answer.read())
                if not bad:
                    times.append(time.perf_counter() - began)
                right = "error" in reported if bad else len(reported.get("ranking", [])) == 10
                failed[number] += not right or (answer.status // 100 != (4 if bad else 2))
        except (OSError, http.client.HTTPException, ValueError):
            failed[number] += 1
        finally:
            link.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of the load")
    parser.add_argument("--load", type=int, metavar="PORT", help="be the load on a server there")
    options = parser.parse_args()
    if options.load:
        print(json.dumps(loaded(options.load, options.seconds)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = failures(Path(folder), options.seconds)
    for name, value in figures.items():
        print(f"{name:40s} {value:.3f}")
    print(
        f"{figures['requests_per_second']:.0f} requests a second, p50 "
        f"{figures['p50_milliseconds']:.1f} ms, p99 {figures['p99_milliseconds']:.1f} ms, "
        f"{figures['failed_requests']:.0f} failed, memory x{figures['memory_after_vs_before']:.2f}"
    )
    return int(figures["failed_requests"] > 0 or figures["exit_status"] != 0)


if __name__ == "__main__":
    sys.exit(main())

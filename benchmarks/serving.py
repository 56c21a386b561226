"""A server under load from another process: latency, requests per second, memory, failures.

LambdaMART of 500 trees over 136 features, lists of 100 documents, four connections. While the load
runs the model file is replaced ten times and one request in fifty is malformed; at the end the
server is reported to stop under load. Whatever is not answered as it should be counts as a failure.
``python benchmarks/serving.py --seconds 300`` is the long run of ``make soak``.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

SECONDS, CONNECTIONS, TREES, FEATURES, DOCUMENTS = 20.0, 4, 500, 136, 100
MALFORMED = [b"{", b"[" * 5000, b'{"documents": [{"features": [NaN]}]}', b'{"documents": 7}']
HEADERS = {"content-type": "application/json"}


def run(seconds: float = SECONDS) -> dict[str, float]:
    """Return the figures of a load of so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        models = [saved_model(Path(folder) / f"{seed}.rw", seed) for seed in (0, 1)]
        served = Path(folder) / "web.rw"
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
                fresh = Path(folder) / "fresh.rw"
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


def saved_model(path: Path, seed: int) -> bytes:
    import rankwright

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6000, FEATURES)).astype(np.float32)
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
    figures = run(options.seconds)
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

"""Send a server what its OpenAPI document allows and forbids: never a 500, never a crash.

Run ``python fuzz/fuzz_serve.py -max_total_time=60``; schemathesis makes the requests.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from small_data import small_data  # noqa: E402

import rankwright  # noqa: E402

# What a schema allows may not go with the model, such as a feature that it does not have.
LEFT_OUT = "positive_data_acceptance"
EXAMPLES = 1_000_000  # the time is what ends a run


def main() -> int:
    """Fuzz a server for a while; return 0 where nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-max_total_time", type=int, default=60, metavar="SECONDS")
    seconds = parser.parse_args().max_total_time
    with tempfile.TemporaryDirectory(prefix="rankwright-fuzz-") as folder:
        model = Path(folder) / "web.rw"
        names = list("abcdef")
        rankwright.LambdaMART(n_estimators=5).fit(small_data(feature_names=names)).save(model)
        command = [sys.executable, "-m", "rankwright", "serve", str(model), "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            address = json.loads(server.stderr.readline())["address"]
            threading.Thread(target=server.stderr.read, daemon=True).start()
            found = requests(address, seconds, folder)
            server.send_signal(signal.SIGTERM)
            return int(found != 0 or server.wait(60) != 0)


def requests(address: str, seconds: int, folder: str) -> int:
    """Return the exit status of schemathesis."""
    program = [str(Path(sys.executable).with_name("schemathesis")), "run", "--no-color"]
    limits = ["--max-time", str(seconds), "--max-examples", str(EXAMPLES)]
    command = [*program, f"{address}/openapi.json", *limits, "--exclude-checks", LEFT_OUT]
    reported = subprocess.run(command, check=False, cwd=folder, stdout=subprocess.PIPE, text=True)
    print(reported.stdout)
    print(*re.findall(r"\d+ generated.*", reported.stdout)[-1:])
    return reported.returncode


if __name__ == "__main__":
    sys.exit(main())

"""Coverage-guided fuzzing of the LETOR reader, and requests made from the server's schema."""

import subprocess
import sys

import pytest
from served import save_model
from server_process import serving
from soak import SECONDS, SEED, run_program

pytestmark = pytest.mark.soak

SCHEMATHESIS = [sys.executable, "-m", "schemathesis.cli"]
# What a schema allows may not go with the model, such as a feature that it does not have.
LEFT_OUT = "positive_data_acceptance"


def test_any_bytes_are_read_or_refused_as_by_the_twin(tmp_path):
    pytest.importorskip("atheris")
    done = run_program(
        "fuzz_letor", f"-max_total_time={SECONDS:.0f}", f"-seed={SEED}", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_what_the_schema_allows_and_forbids_is_answered_as_it_promises(tmp_path):
    pytest.importorskip("schemathesis")
    save_model(tmp_path / "web.rw", "lambdamart", n_estimators=5)
    limits = ["--max-time", f"{SECONDS:.0f}", "--max-examples", "1000000", "--seed", str(SEED)]
    with serving(tmp_path / "web.rw") as server:
        address = f"http://127.0.0.1:{server.port}/openapi.json"
        command = [
            *SCHEMATHESIS,
            "run",
            "--no-color",
            address,
            *limits,
            "--exclude-checks",
            LEFT_OUT,
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:]
        server.process.terminate()
        assert server.end() == 0

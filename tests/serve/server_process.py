"""``rankwright serve`` in its own process, for tests that talk to a real server."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager


class Server:
    """``rankwright serve`` on a free port; ``lines`` are what it logs.

    ``descriptors`` is how many files it may open.
    """

    def __init__(self, *arguments, descriptors=None):
        command = [sys.executable, "-m", "rankwright", "serve", *map(str, arguments)]
        if descriptors is not None:
            command = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            [*command, "--port", "0"], stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        address = self.wait_for("listening")["address"]
        self.port = int(address.rpartition(":")[2])

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def wait_for(self, event, seconds=120):
        """Return the first line about ``event``."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for line in list(self.lines):
                if line["event"] == event:
                    return line
            assert self.process.poll() is None or event == "stopped", self.lines
            time.sleep(0.02)
        raise AssertionError(f"no line about {event}: {self.lines[-5:]}")

    def count(self, event):
        """Return the number of lines about ``event``."""
        return sum(line["event"] == event for line in list(self.lines))

    def end(self):
        """Wait for the end; return the exit status."""
        status = self.process.wait(60)
        self._reader.join(10)
        self.process.stderr.close()
        return status


@contextmanager
def serving(*arguments, **limits):
    server = Server(*arguments, **limits)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.end()


def certificate(folder):
    """Return the files of a key and of a certificate for 127.0.0.1, made in ``folder``."""
    if shutil.which("openssl") is None:
        import pytest  # the wheel's check uses the rest without it

        pytest.skip("there is no openssl to make a certificate with")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    command += f"-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return key, cert

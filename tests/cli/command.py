"""Run the command line as a user does, in its own process."""

import json
import os
import subprocess
import sys


def run(*arguments, code=0, stdin=None, **environment):
    """Run ``rankwright`` with these arguments; its exit status must be ``code``."""
    done = subprocess.run(
        [sys.executable, "-m", "rankwright", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, "NO_COLOR": "1", **environment},
        timeout=300,
    )
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}{done.stdout}"
    return done


def run_json(*arguments, **more):
    """Run with ``--json`` and return the object printed."""
    return json.loads(run(*arguments, "--json", **more).stdout)


def sentence(*arguments, **more):
    """Run what must fail with exit 2 and one sentence on standard error, which is returned."""
    done = run(*arguments, code=2, **more)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("rankwright: ")
    return lines[0].removeprefix("rankwright: ")

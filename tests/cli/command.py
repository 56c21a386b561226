"""Run the command line as a user does: by its entry point, here or in a process of its own."""

import io
import json
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from unittest.mock import patch

from rankwright.cli import main


def run(*arguments, code=0, stdin="", alone=False, module="rankwright", **environment):
    """Run ``rankwright`` with these arguments; its exit status must be ``code``.

    It runs in this process, which has imported what takes a second or two in each new one.
    ``alone`` gives it a process of its own: one test of each verb, and where memory, threads,
    signals or imports are looked at. ``module`` is another command line in place of ours.
    """
    words, environment = [str(word) for word in arguments], {"NO_COLOR": "1", **environment}
    done = (_own_process if alone else _this_process)(module, words, stdin, environment)
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}{done.stdout}"
    return done


def _own_process(module, words, stdin, environment):
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, **environment},
        timeout=1800,  # a guard against hanging, not a test of speed
    )


def _this_process(module, words, stdin, environment):
    given, out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(3))
    given.write(stdin)
    given.seek(0)
    status, app = 0, main.app if module == "rankwright" else import_module(f"{module}.__main__").app
    with (
        patch.dict(os.environ, environment),
        patch.multiple(sys, argv=[module, *words], stdin=given),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # each once, as in a process of its own
        try:
            main.run(app)
        except SystemExit as ended:
            status = ended.code or 0
    printed = [stream.seek(0) or stream.read() for stream in (out, err)]
    return subprocess.CompletedProcess(words, status, *printed)


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

"""Build the wheel and the sdist, check them, and use the wheel in empty environments.

    python tools/check_wheel.py                          the wheel alone, in this Python
    python tools/check_wheel.py --extras neural,onnx     and with each of these extras alone; or all
    python tools/check_wheel.py --pythons python3.12,python3.13
    python tools/check_wheel.py --demo                   and `rankwright demo`

Without an extra, its feature must answer with the sentence that names the extra; with it, the
feature must work. `uv` installs where it is found, else pip.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"rankwright"}
NEEDED = {
    "rankwright/py.typed",
    "rankwright/references.bib",
    "rankwright/comparison/templates/report.html",
    "rankwright/comparison/templates/report.css",
    "rankwright/comparison/templates/report.js",
}
ENDINGS = (".py", "/py.typed", ".bib", ".toml", ".html", ".css", ".js")


# --- what is in the files --------------------------------------------------------------------


def wheel_faults(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return what a wheel with these files lacks, and what is foreign to it."""
    names = set(names)
    sources = {p.relative_to(root).as_posix() for p in root.glob("rankwright/**/*.py")}
    own = {name for name in names if ".dist-info/" not in name}
    faults = [f"{name} is missing" for name in sorted((NEEDED | sources) - own)]
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        faults.append("the licence is missing")
    foreign = {n for n in own if n.partition("/")[0] not in FOLDERS or not n.endswith(ENDINGS)}
    return faults + [f"{name} does not belong there" for name in sorted(foreign)]


def sdist_faults(names: Iterable[str]) -> list[str]:
    """Return what an sdist with these files lacks to build and test from it."""
    inside = {name.partition("/")[2] for name in names}
    needed = ("LICENSE", "README.md", "pyproject.toml", "tests/conftest.py", "rankwright/py.typed")
    return [f"{name} is missing" for name in needed if name not in inside]


def build(target: Path) -> Path:
    """Build both files into ``target``, check them, and return the wheel."""
    _run(sys.executable, "-m", "build", "--outdir", target, ROOT)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    _run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    _run(sys.executable, "-m", "check_wheel_contents", wheel)
    with zipfile.ZipFile(wheel) as file:
        faults = wheel_faults(file.namelist())
    with tarfile.open(sdist) as file:
        faults += [f"sdist: {fault}" for fault in sdist_faults(file.getnames())]
    if faults:
        raise SystemExit("\n".join(faults))
    sizes = [f"{file.name}: {file.stat().st_size / 1000:.0f} kB" for file in (wheel, sdist)]
    print("\n".join(sizes))
    return wheel


# --- an environment and a folder to work in --------------------------------------------------


class Environment:
    """A fresh environment that holds the wheel, and an empty folder."""

    def __init__(self, python: str, wheel: Path, folder: Path, extra: str = "") -> None:
        self.folder, self.bin = folder / "work", folder / "env" / "bin"
        self.folder.mkdir(parents=True)
        _run(python, "-m", "venv", folder / "env")
        what = f"{wheel}[{extra}]" if extra else str(wheel)
        if uv := shutil.which("uv"):
            _run(uv, "pip", "install", "--quiet", "--python", self.bin / "python", what)
        else:
            _run(self.bin / "python", "-m", "pip", "install", "--quiet", what)

    def run(self, line: str, *, missing: str = "") -> None:
        """Run a line of the program, or of Python; ``missing`` is the extra it must ask for."""
        program, _, rest = line.partition(" ")
        arguments = [rest.removeprefix("-c ")] if program == "python" else rest.split()
        command = [self.bin / program, *(["-c"] if program == "python" else []), *arguments]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        said = done.stderr + done.stdout
        if missing and (done.returncode == 0 or f"'rankwright[{missing}]'" not in said):
            raise SystemExit(f"without the extra {missing}: {line}\n{said}")
        if not missing and done.returncode:
            raise SystemExit(f"{line}\n{said}")
        print(f"  {'asks for ' + missing if missing else 'works'}: {line.partition(chr(10))[0]}")


START = (
    "rankwright convert digits/train train.txt --read queries=8 --read documents=15",
    "rankwright convert digits/valid vali.txt --read queries=8 --read documents=15",
    "rankwright train gbdt --train train.txt --valid vali.txt --set n_estimators=5 --save model.rw",
    "rankwright export model.rw --to xgboost-json -o xgboost",
)
BASE = (
    "python -c import rankwright",
    "rankwright --version",
    "rankwright --help",
    "ranklib",
    *START,
    "rankwright evaluate vali.txt --load model.rw",
    "rankwright rank model.rw vali.txt -o run.txt",
    "rankwright export model.rw --to json -o exported",
    "rankwright verify exported",
    "rankwright compare train.txt --rankers gbdt,linear_regression --folds 3 -o report.html",
    "rankwright compare train.txt --rankers gbdt,first=column:1 --folds 3 -o table.tex",
    "rankwright cite intervalrank",
)

_PLOT = """python -c import rankwright as rw
found = rw.compare("train.txt", "gbdt,linear_regression", folds=3)
try:
    found.plot("metrics")
except rw.errors.RankwrightError as error:
    raise SystemExit(f"rankwright: {error}")"""
_DASK = """python -c import sys
from rankwright.distributed import executor
from rankwright.errors import RankwrightError
try:
    executor()
except RankwrightError as error:
    if "no Dask client" not in str(error):
        sys.exit(str(error))
else:
    sys.exit("there is a client already")
from distributed import Client
with Client(processes=False, dashboard_address=None) as client:
    assert executor(client).submit(abs, -1).result() == 1"""

EXTRAS: dict[str, tuple[str, ...]] = {
    "neural": ("rankwright train ranknet --train train.txt --set epochs=1 --save net.rw",),
    "dask": (_DASK,),
    "tune": (
        "rankwright tune gbdt --train train.txt --valid vali.txt --trials 2 --set n_estimators=3",
    ),
    "plot": (_PLOT,),
    "serve": ("rankwright serve model.rw --port 0",),
    "onnx": (
        "rankwright export model.rw --to onnx -o onnx",
        "rankwright verify onnx",
    ),
    "parquet": (
        "rankwright convert train.txt train.parquet",
        "rankwright evaluate train.parquet --load model.rw",
    ),
    "xgboost": ("rankwright verify xgboost",),
}
"""The lines that need each extra; the first must ask for it where it is not installed."""


def serve_once(environment: Environment) -> None:
    """Serve a model, ask for its health, and end it."""
    command = [environment.bin / "rankwright", "serve", "model.rw", "--port", "0"]
    with subprocess.Popen(
        command, cwd=environment.folder, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        line = ""
        try:
            for line in server.stderr:
                if "listening" in line:
                    address = json.loads(line)["address"]
                    with urllib.request.urlopen(f"{address}/v1/models", timeout=60) as answer:
                        assert "model" in answer.read().decode()
                    break
            else:
                raise SystemExit(f"rankwright serve did not start: {line}")
        finally:
            server.terminate()
    print("  works: rankwright serve")


SPECIAL: dict[str, Callable[[Environment], None]] = {"serve": serve_once}


def check_base(environment: Environment, demo: bool) -> None:
    """Use everything that needs no extra, and see every extra asked for."""
    for line in (*BASE, *(["rankwright demo"] if demo else [])):
        environment.run(line)
    for extra, lines in EXTRAS.items():
        environment.run(lines[0], missing=extra)


def check_extra(environment: Environment, extra: str) -> None:
    """Use what one extra brings."""
    for line in START:
        environment.run(line)
    if extra in SPECIAL:
        SPECIAL[extra](environment)
        return
    for line in EXTRAS[extra]:
        environment.run(line)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def main() -> None:
    """Check what the options ask for; ends at the first fault, with what was said."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--extras", default="", help="comma-separated, or all")
    options.add_argument("--pythons", default=sys.executable, help="comma-separated")
    options.add_argument("--demo", action="store_true", help="run the demo too: minutes")
    options.add_argument("--wheel", type=Path, help="use this wheel and build none")
    given = options.parse_args()
    extras = list(EXTRAS) if given.extras == "all" else [e for e in given.extras.split(",") if e]
    if unknown := set(extras) - set(EXTRAS):
        options.error(f"there is no extra {', '.join(sorted(unknown))}: {', '.join(EXTRAS)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = given.wheel.resolve() if given.wheel else build(folder / "dist")
        for number, python in enumerate(given.pythons.split(",")):
            print(f"{python}, no extra")
            check_base(Environment(python, wheel, folder / f"base{number}"), given.demo)
        for extra in extras:
            print(f"{given.pythons.partition(',')[0]}, {extra}")
            python = given.pythons.partition(",")[0]
            check_extra(Environment(python, wheel, folder / extra, extra), extra)
            shutil.rmtree(folder / extra)


if __name__ == "__main__":
    main()

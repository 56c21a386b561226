"""Build the wheels and the sdist, check them, and use the wheels in empty environments.

    python tools/check_wheel.py                          with every Python from 3.11 that is found
    python tools/check_wheel.py --pythons python3.12,python3.13
    python tools/check_wheel.py --extras neural,onnx     and with each of these extras alone; or all
    python tools/check_wheel.py --pure                   the wheel without compiled kernels
    python tools/check_wheel.py --demo                   and `rankwright demo`
    python tools/check_wheel.py --walks only             the pages of docs/walks alone; or none
    python tools/check_wheel.py --keep dist              and keep what was built

A wheel for a platform carries kernels compiled ahead (``tools/compile_kernels.py``), minutes for
each Python; rankers must then train from an empty cache without compiling, with the instructions
of this CPU and with those of an old one.

Without an extra, its feature must answer with the sentence that names the extra; with it, the
feature must work. Each page of docs/walks is run outside the checkout, in an environment that holds
what its `pip install` names and no more, and must print what it shows. `uv` installs where it is
found, else pip.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
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
    "rankwright/templates/page.css",
    "rankwright/comparison/templates/report.js",
    "rankwright/templates/page.html",
    "rankwright/templates/page.js",
    "rankwright/clicks/templates/clicks.html",
    "rankwright/clicks/templates/clicks.css",
}
_PIP = "pip install "
ENDINGS = (".py", "/py.typed", ".bib", ".toml", ".html", ".css", ".js")
COMPILED = "rankwright/compiled/"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
OLD_CPU = {  # no AVX
    "NUMBA_CPU_NAME": "nehalem",
    "NUMBA_CPU_FEATURES": "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3",
}


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
    foreign -= {n for n in own if n.startswith(COMPILED) and n.endswith(".zip")}
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
    for file_of in (wheel, sdist):
        print(f"{file_of.name}: {file_of.stat().st_size / 1000:.0f} kB")
    return wheel


def build_compiled(python: str, pure: Path, folder: Path) -> Path:
    """Build the wheel with kernels for ``python``, where the dependencies of ``pure`` are."""
    builder = Environment(python, pure, folder)
    builder.install("build", "hatchling")
    # The sources are those of the checkout; the environment is there for what they need.
    command = [builder.bin / "python", "-m", "build", "--wheel", "--no-isolation"]
    done = subprocess.run(
        [*command, "--outdir", folder / "dist", ROOT],
        env={**_environment(), "RANKWRIGHT_KERNELS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}")
    (wheel,) = (folder / "dist").glob("*.whl")
    _run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    faults = wheel_faults(names)
    if not any(name.startswith(COMPILED) for name in names):
        faults.append(f"{wheel.name} has no compiled kernels")
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB")
    return wheel


def found_pythons() -> list[str]:
    """Return the Pythons of `VERSIONS` that are on the path or that pyenv has, and that start."""
    found = []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        named = [f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
        for python in named:
            command = [python, "-c", "import ensurepip, sys; print(sys.version_info[:2])"]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except FileNotFoundError:
                continue
            if done.returncode == 0 and done.stdout.strip() == str(
                tuple(map(int, version.split(".")))
            ):
                found.append(python)
                break
    return found


# --- an environment and a folder to work in --------------------------------------------------


class Environment:
    """A fresh environment that holds the wheel, and an empty folder."""

    def __init__(
        self, python: str, wheel: Path, folder: Path, extra: str = "", packages: Iterable[str] = ()
    ) -> None:
        self.folder, self.bin = folder / "work", folder / "env" / "bin"
        self.folder.mkdir(parents=True)
        _run(python, "-m", "venv", folder / "env")
        self.install(f"{wheel}[{extra}]" if extra else str(wheel), *packages)

    def install(self, *what: str) -> None:
        """Install packages."""
        if uv := shutil.which("uv"):
            _run(uv, "pip", "install", "--quiet", "--python", self.bin / "python", *what)
        else:
            _run(self.bin / "python", "-m", "pip", "install", "--quiet", *what)

    def run(self, line: str, *, missing: str = "", **settings: str) -> None:
        """Run a line of the program, or of Python; ``missing`` is the extra it must ask for."""
        program, _, rest = line.partition(" ")
        arguments = [rest.removeprefix("-c ")] if program == "python" else rest.split()
        command = [self.bin / program, *(["-c"] if program == "python" else []), *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**_environment(), **settings},
            capture_output=True,
            text=True,
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
_LOGS = """python -c import rankwright as rw
with open("log.jsonl", "w") as log:
    log.write('{"qid": 1, "response": {"docs": [{"id": "a", "[features]": "bm25=1.5"}]}}')
try:
    assert rw.load("log.jsonl", judgments={1: {"a": 1}}).X == 1.5
except rw.errors.RankwrightError as error:
    raise SystemExit(f"rankwright: {error}")"""

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
    "logs": (_LOGS,),
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


def check_kernels(environment: Environment) -> None:
    """Train from an empty cache: nothing is compiled, unless that is asked for; models are equal.

    The sums of DORM's linear model may be added in another order on another CPU, so its last bit
    may differ.
    """
    models = set()
    for what, settings, compiles in (
        ("the instructions of this CPU", {}, False),
        (
            "those of an old CPU",
            OLD_CPU if platform.machine() in ("x86_64", "AMD64") else {},
            False,
        ),
        ("RANKWRIGHT_COMPILE=1", {"RANKWRIGHT_COMPILE": "1"}, True),
    ):
        with tempfile.TemporaryDirectory() as cache:
            for ranker in ("lambdamart", "dorm"):
                line = f"rankwright train {ranker} --train train.txt --save model.rw"
                environment.run(line, RANKWRIGHT_CACHE=cache, **settings)
                if ranker == "lambdamart":
                    models.add((environment.folder / "model.rw").read_bytes())
            compiled = sorted(path.name for path in Path(cache).rglob("*.kernel"))
        if bool(compiled) != compiles:
            raise SystemExit(f"with {what} these kernels were compiled: {compiled}")
        if len(models) > 1:
            raise SystemExit(f"the model of lambdamart has other bytes with {what}.")


def check_extra(environment: Environment, extra: str) -> None:
    """Use what one extra brings."""
    for line in START:
        environment.run(line)
    if extra in SPECIAL:
        SPECIAL[extra](environment)
        return
    for line in EXTRAS[extra]:
        environment.run(line)


# --- the pages of docs/walks -----------------------------------------------------------------


def walks() -> list[Path]:
    """Return the pages that a new user follows from `pip install` on."""
    return sorted((ROOT / "docs" / "walks").glob("*.md"))


def installed_by(page: Path) -> tuple[str, list[str]]:
    """Return the extras and the other packages that the `pip install` line of a page names."""
    line = next((one for one in page.read_text("utf-8").splitlines() if one.startswith(_PIP)), "")
    names = shlex.split(line, comments=True)[len(_PIP.split()) :]
    ours = [name for name in names if name.partition("[")[0] == "rankwright"]
    if len(ours) != 1:
        raise SystemExit(f"{page.name} has no line '{_PIP}rankwright' to begin with")
    return ours[0].partition("[")[2].rstrip("]"), [name for name in names if name not in ours]


def check_walk(page: Path, python: str, wheel: Path, folder: Path) -> None:
    """Run a page outside the checkout with the wheel and what the page installs."""
    extras, packages = installed_by(page)
    environment = Environment(python, wheel, folder, extras, packages)
    tests = [str(ROOT / "tests" / part) for part in ("docs", "cli", "serve")]
    command = [environment.bin / "python", ROOT / "tests/docs/code_blocks.py"]
    began = time.monotonic()
    done = subprocess.run(
        [*command, page, environment.folder],
        cwd=environment.folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(tests)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{page.name}\n{done.stderr}{done.stdout}")
    print(f"  works: {page.name}, {time.monotonic() - began:.0f} s")


def _environment() -> dict[str, str]:
    """Return the variables of this process without what would find the checkout."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def main() -> None:
    """Check what the options ask for; ends at the first fault, with what was said."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--extras", default="", help="comma-separated, or all")
    options.add_argument("--pythons", default="", help="comma-separated; all that are found")
    options.add_argument("--pure", action="store_true", help="build no wheel with kernels")
    options.add_argument("--keep", type=Path, help="a folder for what was built")
    options.add_argument("--demo", action="store_true", help="run the demo too: minutes")
    options.add_argument("--wheel", type=Path, help="use this wheel and build none")
    options.add_argument("--walks", choices=("all", "none", "only"), default="all")
    given = options.parse_args()
    extras = list(EXTRAS) if given.extras == "all" else [e for e in given.extras.split(",") if e]
    if unknown := set(extras) - set(EXTRAS):
        options.error(f"there is no extra {', '.join(sorted(unknown))}: {', '.join(EXTRAS)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = given.wheel.resolve() if given.wheel else build(folder / "dist")
        pythons = given.pythons.split(",") if given.pythons else found_pythons()
        first = pythons[0]
        for number, python in enumerate([] if given.walks == "only" else pythons):
            own = wheel
            if not (given.pure or given.wheel):
                print(f"{python}: building the wheel with kernels")
                own = build_compiled(python, wheel, folder / f"build{number}")
                shutil.copy(own, folder / "dist")
                shutil.rmtree(folder / f"build{number}" / "env")
            print(f"{python}, no extra")
            environment = Environment(python, own, folder / f"base{number}")
            check_base(environment, given.demo)
            if COMPILED in " ".join(zipfile.ZipFile(own).namelist()):
                check_kernels(environment)
        if given.keep is not None:
            shutil.copytree(folder / "dist", given.keep, dirs_exist_ok=True)
        for extra in extras:
            print(f"{first}, {extra}")
            check_extra(Environment(first, wheel, folder / extra, extra), extra)
            shutil.rmtree(folder / extra)
        for page in [] if given.walks == "none" else walks():
            print(f"{first}, docs/walks/{page.name}")
            check_walk(page, first, wheel, folder / page.stem)
            shutil.rmtree(folder / page.stem)


if __name__ == "__main__":
    main()

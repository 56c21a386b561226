"""The wheel holds the package with the files that it reads, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENDINGS = (".py", ".pyi", "/py.typed", ".bib", ".toml", ".html", ".css", ".js")


def test_the_wheel_holds_the_package_and_the_licence_and_is_for_every_platform(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    package = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("rankwright/**/*") if p.is_file()}
    assert names - metadata == {name for name in package if "__pycache__" not in name}
    assert [name for name in names - metadata if not name.endswith(ENDINGS)] == []
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in metadata)

"""Hatchling's hook: a wheel for a platform carries kernels that were compiled ahead.

``RANKWRIGHT_KERNELS=1`` compiles them with the Python that builds, which needs the dependencies of
the package (``python -m build --wheel --no-isolation``); ``RANKWRIGHT_KERNELS=FOLDER`` takes those
that ``tools/compile_kernels.py`` wrote there. Without it the wheel is the same for all platforms
and kernels are compiled on first use; so is an editable checkout.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the archives to the wheel, and says which Python and platform it is for."""

    PLUGIN_NAME = "custom"
    _made: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or take what was compiled."""
        wanted = os.environ.get("RANKWRIGHT_KERNELS", "")
        if self.target_name != "wheel" or version == "editable" or wanted in ("", "0"):
            return
        if wanted == "1":
            wanted = self._made = tempfile.mkdtemp(prefix="rankwright-kernels-")
            tool = Path(self.root) / "tools" / "compile_kernels.py"
            subprocess.run([sys.executable, str(tool), wanted], check=True)
        archives = sorted(Path(wanted).glob("*.zip"))
        if not archives:
            raise FileNotFoundError(f"RANKWRIGHT_KERNELS: there is no archive in {wanted}.")
        build_data["pure_python"] = False
        build_data["tag"] = wheel_tag()
        for path in archives:
            build_data["force_include"][str(path)] = f"rankwright/compiled/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled for this wheel."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)


def wheel_tag() -> str:
    """Return the tag of a wheel with machine code; no library of the system is linked to."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = platform.machine()
    platforms = {
        "linux": f"manylinux_2_17_{machine}.manylinux2014_{machine}",
        "darwin": f"macosx_11_0_{machine}",
        "win32": f"win_{machine.lower()}",
    }
    return f"{python}-{python}-{platforms[sys.platform]}"

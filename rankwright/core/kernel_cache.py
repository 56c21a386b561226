"""The user's cache of compiled kernels.

A kernel is compiled on first use and kept in the user's cache, `cache_root`, in a folder named by a
hash of all kernel sources (`kernel_hash`): edit a kernel and all are compiled again.

**What is trusted.** Entries are unpickled and run, so they are read only from folders that belong
to this user and that no other user may write to. Folders are made with mode 0700; one that is
another user's, a link, or open to others is passed over for a private temporary folder, which lasts
as long as the process. An entry that is truncated or damaged
is dropped, and where nothing can be written kernels are compiled in memory; both are said once, to
the logger ``rankwright.core.jit``.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import logging
import os
import pickle
import platform
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

_LOG = logging.getLogger("rankwright.core.jit")
_PACKAGE = Path(__file__).resolve().parents[1]
_KEEP_SECONDS = 30 * 86_400
_HEAD = b"rankwright kernel 2\n"
_DIGEST_BYTES = 32

# --- what code depends on --------------------------------------------------------------------


def kernel_hash(package: Path = _PACKAGE) -> str:
    """Return a digest of every source file below ``package`` that defines a kernel."""
    digest = hashlib.sha256(_HEAD)
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source or b"@quick_kernel" in source:
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(source)
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Return what machine code depends on beside its sources and the CPU."""
    return {
        "kernels": _own_hash(),
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "machine": f"{sys.platform}-{platform.machine()}",
    }


@cache
def _own_hash() -> str:
    return kernel_hash()


# --- where entries lie -----------------------------------------------------------------------


class Folder:
    """Entries as files of a folder; a damaged one is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, name: str) -> bytes | None:
        """Return an entry, None where there is none or it is damaged."""
        path = self.path / name
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        body = text[len(_HEAD) + _DIGEST_BYTES :]
        digest = text[len(_HEAD) : len(_HEAD) + _DIGEST_BYTES]
        if text.startswith(_HEAD) and _digest(name, body) == digest:
            return body
        self.drop(name)
        warn_once(f"the compiled kernel {path} was damaged; it is compiled anew.")
        return None

    def save(self, name: str, body: bytes) -> None:
        """Write an entry so that no reader sees half of it."""
        partial = self.path / f"{name}.{uuid.uuid4().hex[:12]}.part"
        try:
            partial.write_bytes(_HEAD + _digest(name, body) + body)
            os.replace(partial, self.path / name)
        except OSError:
            with suppress(OSError):
                partial.unlink()
            raise

    def drop(self, name: str) -> None:
        """Remove an entry."""
        with suppress(OSError):
            (self.path / name).unlink()


def _digest(name: str, body: bytes) -> bytes:
    """Return the digest of an entry, which under another name is not the same."""
    return hashlib.sha256(name.encode() + b"\n" + body).digest()


@cache
def _folder(target: str) -> Folder:
    """Return the folder for code of one target; ``target`` says CPU, features and versions."""
    name = f"kernels-{_own_hash()}"
    _close_own_root()
    for root in (cache_root().resolve(), _temporary_root()):
        try:
            path = private_folder(root / name)
            path = private_folder(path / target)
            os.utime(path.parent)  # in use
        except OSError as error:
            _LOG.debug("kernels are not kept in %s: %s", root, error)
            continue
        _drop_old_folders(path.parent)
        return Folder(path)
    path = Path(tempfile.mkdtemp(prefix="rankwright-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    warn_once(
        f"{cache_root()} is not yours alone to write to, so compiled kernels are not kept after "
        "this run; name a folder of your own with RANKWRIGHT_CACHE."
    )
    return Folder(path)


def private_folder(path: Path) -> Path:
    """Make a folder and the one above it with mode 0700; refuse those that others may write to."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "geteuid"):
        for level in (path.parent, path):
            found = os.lstat(level)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                raise PermissionError(f"{level} is not a folder of this user.")
            if stat.S_IMODE(found.st_mode) & 0o022:
                raise PermissionError(f"{level} may be written to by others.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} is not writable.")
    return path


def cache_root() -> Path:
    """Return the user's folder for what can be computed again."""
    if chosen := os.environ.get("RANKWRIGHT_CACHE"):
        return Path(chosen)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "rankwright"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwright"


def _close_own_root() -> None:
    """Take back what a generous umask gave: the default root is for this user alone."""
    if os.name != "nt" and not os.environ.get("RANKWRIGHT_CACHE"):
        with suppress(OSError):
            root = cache_root()
            if stat.S_IMODE(os.lstat(root).st_mode) & 0o022:
                root.chmod(0o700)  # refused where it is another user's


def _temporary_root() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"rankwright-{user}"


def _drop_old_folders(current: Path) -> None:
    now = time.time()
    for other in current.parent.glob("kernels-*"):
        with suppress(FileNotFoundError):  # another process may drop it at the same time
            if other != current and now - other.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


@cache
def warn_once(sentence: str) -> None:
    """Say to the log what went wrong with kept code; nothing else is affected by it."""
    _LOG.warning(sentence)


# --- the cache of one kernel -----------------------------------------------------------------


class KernelCache:
    """What Numba asks for compiled code of one function, and gives it to."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = f"{function.__module__}.{function.__qualname__}".removeprefix("rankwright.")

    @property
    def cache_path(self) -> str:
        """The folder that code is written to."""
        from numba.core.registry import cpu_target

        return str(self._stored(cpu_target.target_context.codegen()).path)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the compiled function for a signature, None where it is to be compiled."""
        target_context.refresh()  # Numba's own types are registered now at the latest
        name, folder = self._entry(sig), self._stored(target_context.codegen())
        try:
            body = folder.load(name)
            if body is not None:
                # From a folder that only this user can write to: see above.
                parts = pickle.loads(body)  # noqa: S301
                return CompileResult._rebuild(target_context, *parts)
        except Exception as error:  # whatever is wrong with it: the sources are still here
            folder.drop(name)
            warn_once(f"a compiled kernel could not be loaded ({error}); it is compiled anew.")
        return None

    def save_overload(self, sig: Any, result: CompileResult) -> None:
        """Keep a compiled function, unless addresses of this process are in its code."""
        if result.library.has_dynamic_globals:
            return
        try:
            self._stored(result.codegen).save(self._entry(sig), dumps(_parts(result)))
        except (OSError, pickle.PicklingError, TypeError) as error:
            warn_once(f"compiled kernels cannot be kept ({error}); they are compiled in each run.")

    def flush(self) -> None:
        """Keep what there is: code is found by what it was made of, so it is never stale."""

    def _entry(self, sig: Any) -> str:
        """Return the name of the file for a signature; the same on every machine."""
        args = getattr(sig, "args", sig)
        made_of = [*map(str, args), *_stamp(self._function)]
        digest = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:24]
        safe = "".join(c if c.isalnum() or c in "._" else "-" for c in self._name)
        return f"{safe[:100]}-{digest}.kernel"

    def _stored(self, codegen: Any) -> Folder:
        """Return the folder for code of this CPU."""
        return _folder(_target(tuple(map(str, codegen.magic_tuple()))))


@cache
def _target(cpu: tuple[str, ...]) -> str:
    text = "\n".join((*cpu, *versions().values()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _stamp(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return what tells a kernel of another package from its earlier versions."""
    path = Path(inspect.getfile(function)).resolve()
    if path.is_relative_to(_PACKAGE):
        return ()  # the hash in the name of the folder covers all of ours
    code = function.__code__
    try:
        source = path.read_bytes()
    except OSError:  # in a zip file, or gone
        source = code.co_code + repr(code.co_consts).encode()
    return hashlib.sha256(source).hexdigest(), str(code.co_firstlineno)


def _parts(result: CompileResult) -> tuple[Any, ...]:
    """Return what Numba builds a function from again, without what only a linker would need.

    Kernels that call this one compile it into themselves (see `rankwright.core.jit`), so of its
    LLVM code nothing but the name of its entry point is kept.
    """
    library, *others = result._replace(type_annotation="")._reduce()
    name, kind, (code, _) = library
    entry = result.fndesc.llvm_cpython_wrapper_name
    stub = llvmlite.binding.parse_assembly(f'define void @"{entry}"() {{ ret void }}')
    return ((name, kind, (code, stub.as_bitcode())), *others)

"""``@kernel``: a Numba function whose cache can never be stale, and that is quick to compile.

Write kernels as plain module-level functions that call other kernels by name; no closures, no
function arguments, no jitclasses, since those do not load from the cache. ``NUMBA_DISABLE_JIT=1``
runs them as Python. Machine code is kept as `rankwright.core.kernel_cache` describes.

Numba compiles a function that another one calls twice: for callers in Python, to machine code with
a wrapper; and again inside its caller. A kernel that is called by kernels is compiled here into its
callers alone, and optimised once with them; the code for Python is made when Python calls it. That
needs Numba's inner parts, which change: with a version that was not tried (`INLINES`) kernels are
compiled as Numba does it, to the same results.

To leave out a part of a kernel that a run does not use, pass None for an argument and test it with
``is None``: Numba drops such a branch before it compiles it.

That kernels are being compiled is said once, to the logger ``rankwright.core.jit``, and how far
each is at level DEBUG, in records with ``kernel``, ``done`` and ``total``. A `Stopwatch` tells the
seconds of a fit from those of compiling.
"""

from __future__ import annotations

import gc
import importlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba.core import codegen, compiler, config, errors, event, sigutils, types, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler
from numba.core.registry import CPUDispatcher

from rankwright.core.kernel_cache import KernelCache, cache_root, kernel_hash

__all__ = [
    "Stopwatch",
    "cache_root",
    "compile_seconds",
    "duration",
    "kernel",
    "kernel_hash",
    "quick_kernel",
]

_LOG = logging.getLogger(__name__)
INLINES = numba.__version__.startswith("0.68.")
"""Whether `Kernel` knows this Numba from within; with another kernels take longer to compile."""
_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "boundscheck": None,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # for callers in C: there are none, and it takes time to compile
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call, without the GIL, and keep the machine code on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright.losses import kernel
    >>> @kernel
    ... def total(lo, hi, values):
    ...     s = 0.0
    ...     for i in range(lo, hi):
    ...         s += values[i]
    ...     return s
    >>> total(0, 2, np.array([1.0, 2.0, 3.0]))
    3.0
    """
    return _compiled(function, fastmath=False)


def quick_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, and sums may be added in another order: several at a time, alike each time."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Callable[..., Any], fastmath: bool | set[str]) -> Callable[..., Any]:
    if config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # hashes wrap around, as compiled ones do
    made = Kernel if INLINES else CachedKernel
    return made(function, targetoptions={**_OPTIONS, "fastmath": fastmath})


# --- how long it takes, and how far it is ----------------------------------------------------

_of_thread = threading.local()


def compile_seconds() -> float:
    """Return the seconds that this thread has waited for kernels to be compiled or loaded."""
    return float(getattr(_of_thread, "seconds", 0.0))


class Stopwatch:
    """Seconds since it was made, without those in which this thread waited for the compiler."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), compile_seconds()

    @property
    def compile_seconds(self) -> float:
        """Seconds in which kernels were compiled or loaded."""
        return compile_seconds() - self._compiled

    @property
    def seconds(self) -> float:
        """Seconds in which the work itself was done."""
        return max(0.0, time.perf_counter() - self._began - self.compile_seconds)


def duration(seconds: float, compiling: float) -> str:
    """Return the seconds of a fit, with those of compiling where there are any to speak of."""
    more = f", and {compiling:.2f} s of compiling" if compiling >= 0.05 else ""
    return f"{seconds:.2f} s{more}"


@contextmanager
def _timed() -> Iterator[None]:
    if getattr(_of_thread, "inside", False):  # a kernel within a kernel
        yield
        return
    _of_thread.inside, began = True, time.perf_counter()
    try:
        yield
    finally:
        _of_thread.inside = False
        _of_thread.seconds = compile_seconds() + time.perf_counter() - began


class _Compiling:
    """The kernel that is being compiled, for those who wait: one at a time has Numba's lock."""

    def __init__(self) -> None:
        self._name, self._done, self._total, self._said = "", 0, 0, False

    @contextmanager
    def outermost(self, one: Kernel) -> Iterator[None]:
        """Tell of a kernel that Python called."""
        if not self._said:
            self._said = True
            _LOG.info("Compiling for this machine, once for each kind of work.")
        module = one.py_func.__module__ or ""  # none where code was executed
        self._name = f"{module}.{one.py_func.__name__}".removeprefix("rankwright.")
        self._done, self._total = 0, len(_reached(one))
        self._tell()
        try:
            yield
        finally:
            self._done = self._total
            self._tell()

    def count(self) -> None:
        """Tell of a function that is done."""
        self._done = min(self._done + 1, self._total - 1)  # one may be compiled for several types
        self._tell()

    def _tell(self) -> None:
        step = {"kernel": self._name, "done": self._done, "total": self._total}
        _LOG.debug("Compiling %s: %d of %d.", *step.values(), extra=step)


_compiling = _Compiling()


def _reached(one: Kernel, found: set[Kernel] | None = None) -> set[Kernel]:
    """Return a kernel and those that it calls, and they call, that are not compiled yet."""
    found = set() if found is None else found
    if one in found:
        return found
    found.add(one)
    for name in one.py_func.__code__.co_names:
        called = one.py_func.__globals__.get(name)
        if isinstance(called, Kernel) and not called.inner:
            _reached(called, found)
    return found


# --- Numba's parts, as kernels need them -----------------------------------------------------


class _Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's flags, compared quickly: they are part of the key of each function that it types."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, _Flags) and self._values == other._values:
            return True
        return bool(super().__eq__(other))

    def __hash__(self) -> int:
        return _HASH_OF_FLAGS


_HASH_OF_FLAGS = hash(compiler.Flags())  # Numba's: of the names of flags alone


class _Colourless:
    """Marks of Numba's error messages, left out."""

    def __getattr__(self, name: str) -> Callable[[str], str]:
        return str


_resolve = types.BaseFunction.get_call_type
_resolved: dict[tuple[Any, ...], tuple[Any, Any]] = {}


def _resolve_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call of one of Numba's own functions, which is found only once.

    Numba asks ten times for each, and tries every template that it has for the function.
    """
    key = (id(function), id(context), tuple(args), tuple(sorted(kws.items())))
    if key not in _resolved:  # the function is kept, so that its id stays its own
        _resolved[key] = function, _resolve(function, context, args, kws)
    return _resolved[key][1]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Numba compile a third quicker.

    It looks up the same signatures again and again, colours thousands of errors that it then throws
    away, and makes millions of objects that the garbage collector would look at: they are put with
    the old ones, which it looks at now and then.
    """
    with global_compiler_lock:
        before, collecting = getattr(errors, "_termcolor_inst", None), gc.isenabled()
        errors._termcolor_inst = _Colourless()
        types.BaseFunction.get_call_type = _resolve_once if INLINES else _resolve
        gc.disable()
        try:
            yield
        finally:
            errors._termcolor_inst = before
            types.BaseFunction.get_call_type = _resolve
            if collecting:
                if gc.get_freeze_count() == 0:  # else the user froze objects, and they stay so
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()


class _Inlined(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel for other kernels: it is linked into them, and optimised there."""

    def finalize(self) -> None:
        """Link what the kernel calls; make no machine code."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class _KernelCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Numba's compiler, for callers in Python or, ``inlined``, in other kernels."""

    def __init__(self, one: Kernel, *, inlined: bool) -> None:
        super().__init__(
            one.py_func, one.targetdescr, one.targetoptions, one.locals, compiler.Compiler
        )
        self._kernel, self._inlined = one, inlined

    def compile(self, args: Any, return_type: Any) -> Any:
        """Return the compiled function."""
        if self._inlined:
            return super().compile(args, return_type)
        with _compiling.outermost(self._kernel):
            return super().compile(args, return_type)

    def _compile_core(self, args: tuple[Any, ...], return_type: Any) -> Any:
        flags, library = _Flags(), None
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        target = self.targetdescr.target_context
        if self._inlined:
            flags.no_cpython_wrapper, flags.no_compile = True, True
            library = _Inlined(target.codegen(), self.py_func.__qualname__)
        result = compiler.compile_extra(
            self.targetdescr.typing_context,
            target,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )
        if result.typing_error is not None:
            raise result.typing_error
        return result


class CachedKernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function whose code is kept on disk; what Numba calls a dispatcher."""

    def __init__(
        self,
        function: Callable[..., Any],
        locals: dict[str, Any] | None = None,  # noqa: A002 (Numba's name)
        targetoptions: dict[str, Any] | None = None,
        pipeline_class: type = compiler.Compiler,
    ) -> None:
        super().__init__(function, locals or {}, targetoptions, pipeline_class)
        if (
            function.__code__.co_filename.endswith(".py")
            and "<locals>" not in function.__qualname__
        ):
            self._cache = KernelCache(function)

    def __reduce__(self) -> Any:
        """Pickle by name: the process that loads it has its own cache."""
        if "<locals>" in self.py_func.__qualname__:
            return super().__reduce__()
        return _by_name, (self.py_func.__module__, self.py_func.__qualname__)

    def compile(self, sig: Any) -> Any:
        """Return the machine code for a signature, from a cache or compiled now."""
        with _timed(), _undisturbed():
            return super().compile(sig)


class Kernel(CachedKernel):
    """A compiled function that is compiled into its callers alone, where these are kernels."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self._compiler = _KernelCompiler(self, inlined=False)
        self._inner_compiler = _KernelCompiler(self, inlined=True)
        self.inner: dict[tuple[Any, ...], Any] = {}
        self._templates: dict[tuple[Any, ...], Any] = {}

    # --- for callers in Python

    def add_overload(self, cres: Any) -> None:
        """Take over code; what kernels within it refer to at run time is filled in."""
        super().add_overload(cres)
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)

    # --- for callers in other kernels

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the type of a call in another kernel, which has the code compiled into it.

        Code for 0 and code for any other integer is the same; constants reach it by inlining.
        """
        pysig, folded = self._compiler.fold_argument_types(args, kws)
        args = tuple(
            types.unliteral(a) if isinstance(a, types.IntegerLiteral) else a for a in folded
        )
        self._compile_inner(args)
        return self._templates[args], pysig, args, {}

    def get_overload(self, sig: Any) -> Any:
        """Return the key under which Numba finds the code for a call in another kernel."""
        args, _ = sigutils.normalize_signature(sig)
        return _key(self, tuple(args))

    def _compile_inner(self, args: tuple[Any, ...]) -> None:
        with global_compiler_lock:
            if args in self.inner:
                return
            details = {"dispatcher": self, "args": args, "return_type": None}
            with self._compiling_counter, event.trigger_event("numba:compile", data=details):
                result = self._inner_compiler.compile(args, None)
            key = _key(self, args)
            result.target_context.insert_user_function(key, result.fndesc, [result.library])
            self.inner[args] = result
            self._templates[args] = typing.make_concrete_template(
                f"CallTemplate({self.py_func.__name__})", key, [result.signature]
            )
            _compiling.count()


def _key(one: Kernel, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return "rankwright kernel", id(one), args


def _by_name(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found

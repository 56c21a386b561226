"""``rankwright``: parses the command line and calls the command's function."""

from __future__ import annotations

import logging
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any

import typer

from rankwright import __version__
from rankwright.cli import clicks, console, interleave
from rankwright.cli.compare import OptionalMargin, compare, demo
from rankwright.cli.convert import convert, synthetic
from rankwright.cli.evaluate import evaluate
from rankwright.cli.explain import explain
from rankwright.cli.export import export, verify
from rankwright.cli.features import features
from rankwright.cli.inspect import inspect
from rankwright.cli.list import list_names
from rankwright.cli.options import OncePerOption
from rankwright.cli.rank import rank
from rankwright.cli.serve import serve
from rankwright.cli.train import train
from rankwright.cli.tune import tune
from rankwright.cli.warmup import warmup
from rankwright.data.streams import FULL
from rankwright.errors import RankwrightError, printable

app = typer.Typer(
    name="rankwright",
    help="Learning to rank: any loss with any model, and metrics whose convention is named.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # paragraphs are filled, and brackets stay
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command("list")(list_names)
app.command()(inspect)
app.command()(train)
app.command()(tune)
app.command()(evaluate)
app.command(cls=OptionalMargin)(compare)
app.command()(rank)
app.command()(explain)
app.command()(convert)
app.command()(synthetic)
app.command()(features)
app.command()(export)
app.command()(verify)
app.command()(serve)
app.command()(warmup)
app.add_typer(clicks.app)
app.add_typer(interleave.app)
for commands in (app, clicks.app, interleave.app):
    for registered in commands.registered_commands:
        if not (registered.cls and issubclass(registered.cls, OncePerOption)):
            registered.cls = OncePerOption


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": [],
    }
)
def ranklib(context: typer.Context) -> None:
    """Run a line of RankLib flags as it stands; without flags, list them."""
    from rankwright.ranklib.command import run as run_flags

    run_flags(context.args)


_verbose = False


def _version(wanted: bool) -> None:
    if wanted:
        console.out.print(f"rankwright {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the traceback of an error too.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print results and errors only.")
    ] = False,
) -> None:
    global _verbose
    _verbose = verbose
    console.err.quiet = quiet


def run(command: typer.Typer = app) -> None:
    """Run the command line; an error in the input is one sentence on standard error and exit 2."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    if console.err.is_terminal:  # an interactive terminal
        _report_compiling()
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except RankwrightError as error:
        _fail(str(error), 2)
    except SystemExit as ended:
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
            _fail("interrupted; what was not finished is not written.", 130)
        raise
    except BrokenPipeError:  # the reader of our output went away, as in `... | head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno not in FULL:
            raise
        with suppress(OSError):
            sys.stdout.close()  # or Python would write what is left of it at the end
        why = f"{error.strerror}; free some space, or write elsewhere."
        _fail(f"the output cannot be written: {why}", 2)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Print our own warnings as a sentence; those of other packages are for programmers."""
    if category is UserWarning:
        console.say(f"warning: {printable(str(message))}")


def _report_compiling() -> None:
    handler = logging.Handler()
    handler.emit = lambda record: console.say(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("rankwright.core.jit")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def _fail(sentence: str, code: int) -> None:
    if _verbose:
        import traceback

        traceback.print_exc()
    with suppress(OSError):  # the disk behind standard error is full as well
        sys.stderr.write(f"rankwright: {sentence}\n")
    sys.exit(code)

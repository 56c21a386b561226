"""``rankwright ranklib``: RankLib's own command line; `rankwright.ranklib` reads the flags."""

from __future__ import annotations

import typer

ANY_WORDS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


def ranklib(context: typer.Context) -> None:
    """Run a line of RankLib flags as it stands; without flags, list them."""
    from rankwright.ranklib.command import run

    run(context.args)

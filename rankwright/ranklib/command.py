"""``rankwright ranklib`` and ``ranklib``: RankLib's command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rankwright.errors import RankwrightError
from rankwright.ranklib.flags import flags_help, parse_flags

_HELP = {"-h", "--help", "-help"}


def run(args: Sequence[str]) -> None:
    """Do what RankLib's flags ask for, or its Analyzer, FeatureManager or Combiner."""
    args = list(args)
    if not args or args[0] in _HELP:
        _say(flags_help())
        return
    program, *rest = args
    if program == "analyze":
        from rankwright.ranklib.programs import analyze

        _notices(analyze(rest, _say))
    elif program == "features":
        from rankwright.ranklib.programs import manage_features

        manage_features(rest, _say)
    elif program == "combine":
        from rankwright.ranklib.programs import combine

        _notices(combine(rest, _say))
    else:
        flags = parse_flags(args)
        from rankwright.ranklib.session import Session

        Session(flags, _say, _notice).run()


def main() -> None:
    """Be the ``ranklib`` command: an error in the input is one sentence and exit 2."""
    try:
        run(sys.argv[1:])
    except RankwrightError as error:
        sys.stderr.write(f"ranklib: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("ranklib: interrupted; what was not finished is not written.\n")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, as in `... | head`
        sys.stderr.close()
        sys.exit(1)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _notice(sentence: str) -> None:
    sys.stderr.write(f"note: {sentence}\n")


def _notices(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        _notice(sentence)

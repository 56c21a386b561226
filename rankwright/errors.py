"""Errors for users: one sentence with the place of the error and the next step.

Also the text functions of messages, which quote text and count things.
"""

from __future__ import annotations

_MOST_QUOTED = 64
_LONGEST = 4000  # characters of a message


def printable(text: str) -> str:
    """Return ``text`` on one line, with escape sequences for unprintable characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(text: object) -> str:
    """Return ``text`` in quotes, on one line, shortened if it is long."""
    shown = printable(str(text))
    return f"'{shown if len(shown) <= _MOST_QUOTED else shown[: _MOST_QUOTED - 3] + '...'}'"


def brief(value: object) -> str:
    """Return the ``repr`` of a value on one line, shortened if it is long."""
    if isinstance(value, str):
        return quoted(value)
    text = printable(repr(value))
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 3]}..."


def _bounded(text: str) -> str:
    """Return a message, without its middle if it is very long; its end has the advice."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 query", "2,500 queries"."""
    if plural is None:
        plural = "queries" if singular == "query" else f"{singular}s"
    return f"{number:,} {singular if number == 1 else plural}"


class RankwrightError(Exception):
    """Base of all errors raised on purpose; the command line prints it and exits with 2.

    The message is one line of at most 4,000 characters.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_bounded(printable(a)) if isinstance(a, str) else a for a in args))


class DataError(RankwrightError, ValueError):
    """Invalid input data; the message names the file, line, row, query or column."""


class DataTypeError(DataError, TypeError):
    """A value of a type that cannot be converted to a number."""


class UsageError(RankwrightError, ValueError):
    """Invalid name or option; the message names similar valid ones."""


class IncompatibleError(RankwrightError, TypeError):
    """Two parts that cannot be combined, such as a solver and a loss that it cannot minimise."""


class PluginError(RankwrightError, ImportError):
    """A part of another package cannot be loaded; the message has the package and the reason."""


class ContractError(RankwrightError, AssertionError):
    """A part breaks the contract of its kind; the message names the property and the case.

    Examples
    --------
    >>> import rankwright as rw
    >>> def backwards(scores, grades):
    ...     return ((scores - grades) ** 2).sum(), 2 * (grades - scores)  # the sign is wrong
    >>> try:
    ...     rw.testing.check_loss(rw.losses.from_function(backwards, shift_invariant=False))
    ... except rw.testing.ContractError as error:
    ...     print(error)
    loss 'backwards' breaks the contract 'The gradient is the derivative of the ...
    """


class MissingExtraError(RankwrightError, ImportError):
    """An optional package is not installed; the message has the pip command to install it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install 'rankwright[{extra}]'"
        )
        self._arguments = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), self._arguments  # to be pickled in a worker process

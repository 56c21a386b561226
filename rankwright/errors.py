"""The errors a user meets: one sentence each, saying where the error is and what to do next.

Beside them stand the words that messages share: quoted text, and numbers with what they count.
"""

from __future__ import annotations

_MOST_QUOTED = 64
_LONGEST = 4000  # characters of a message


def printable(text: str) -> str:
    """Return ``text`` on one line: what is not printable is escaped as Python does."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(text: object) -> str:
    """Return ``text`` in quotes as a message shows it: on one line, shortened where it is long."""
    shown = printable(str(text))
    return f"'{shown if len(shown) <= _MOST_QUOTED else shown[: _MOST_QUOTED - 3] + '...'}'"


def brief(value: object) -> str:
    """Return a value as a message shows it: as Python writes it, shortened if it is long."""
    if isinstance(value, str):
        return quoted(value)
    text = printable(repr(value))
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 3]}..."


def _bounded(text: str) -> str:
    """Return a message without the middle if it is very long; its end says what to do."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with the word for what it counts: "1 query", "2,500 queries"."""
    if many is None:
        many = "queries" if one == "query" else f"{one}s"
    return f"{number:,} {one if number == 1 else many}"


class RankwrightError(Exception):
    """Base of all errors raised on purpose; the command line prints it and exits with 2.

    Its message is one line of at most some thousand characters, whatever text it quotes.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_bounded(printable(a)) if isinstance(a, str) else a for a in args))


class DataError(RankwrightError, ValueError):
    """The input data is not what it should be; names the file, line, row, query or column."""


class DataTypeError(DataError, TypeError):
    """A value is of a type that cannot be a number; a `DataError` and a TypeError at once."""


class UsageError(RankwrightError, ValueError):
    """A name or an option is wrong; names the nearest right ones."""


class IncompatibleError(RankwrightError, TypeError):
    """Two parts that do not fit together, such as a solver and a loss it cannot minimise."""


class PluginError(RankwrightError, ImportError):
    """A part that another package announces cannot be loaded; names the package and the reason."""


class ContractError(RankwrightError, AssertionError):
    """A part does not keep what its kind promises; names the property and where it fails.

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
    """An optional package is not installed; names the pip command that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install 'rankwright[{extra}]'"
        )
        self._arguments = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), self._arguments  # so that it comes through from a worker process

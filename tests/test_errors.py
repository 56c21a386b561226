"""An error is one line that a terminal can print, whatever text of the user's it quotes."""

import inspect
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwright import errors
from rankwright.cli.main import _show_warning
from rankwright.data.ranking_data import PartsDifferError
from rankwright.distributed.cluster import ClusterError
from rankwright.errors import (
    DataError,
    MissingExtraError,
    RankwrightError,
    counted,
    printable,
    quoted,
)
from rankwright.export.target import ParityError
from rankwright.persist.container import ModelFileError
from rankwright.rankers.base import NoPartialFitError, NotFittedError
from rankwright.serve.schemas import RequestError

OURS = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, RankwrightError)
]
ELSEWHERE = [ClusterError, ModelFileError, NoPartialFitError, NotFittedError, ParityError]


def made(kind, text):
    if kind is MissingExtraError:
        return kind(text, "extra", "this")
    return kind(422, text) if kind is RequestError else kind(text)


@pytest.mark.parametrize("kind", [*OURS, *ELSEWHERE, PartsDifferError, RequestError])
@example(text="column ',\n' and \r\x1b[31m\x85\u2028")
@given(text=st.text())
def test_a_message_is_one_printable_line(kind, text):
    message = str(made(kind, f"there is no '{text}'."))
    assert len(message.splitlines()) == 1
    assert message.isprintable()


@given(text=st.text())
def test_a_quoted_text_is_short_and_on_one_line(text):
    shown = quoted(text)
    assert shown.isprintable()
    assert len(shown) <= 66
    assert shown[0] == shown[-1] == "'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("price", "'price'"),
        ("naïve 価格", "'naïve 価格'"),
        ("a\nb\tc", r"'a\nb\tc'"),
        ("\x1b[31m\x85", r"'\x1b[31m\x85'"),
        ("\u2028\udc80", r"'\u2028\udc80'"),
        (3.5, "'3.5'"),
        ("x" * 64, f"'{'x' * 64}'"),
        ("x" * 65, f"'{'x' * 61}...'"),
    ],
)
def test_what_a_quoted_text_looks_like(text, shown):
    assert quoted(text) == shown


@given(text=st.text())
def test_escaping_twice_changes_nothing(text):
    assert printable(printable(text)) == printable(text)


def test_an_error_from_a_worker_process_says_the_same():
    error = DataError("the column name 'a\nb' is used twice; rename one.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


def test_a_warning_is_printed_as_one_line(capsys):
    _show_warning(UserWarning("feature 'a\nb' will be left out."), UserWarning)
    assert capsys.readouterr().err == "warning: feature 'a\\nb' will be left out.\n"


def test_a_number_stands_with_the_word_for_what_it_counts():
    assert [counted(n, "query") for n in (0, 1, 2500)] == ["0 queries", "1 query", "2,500 queries"]
    assert counted(1, "tree") == "1 tree"
    assert counted(2, "is a category", "are categories") == "2 are categories"

"""Many cases in one test: for properties that take milliseconds, with the failing case named."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def each(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Any], Any]:
    """Run a test for each value, as ``pytest.mark.parametrize`` does, but as one test."""
    several = not isinstance(names, str)
    cases = [
        dict(zip(names, value, strict=True)) if several else {names: value} for value in values
    ]
    assert cases, f"no value of {names}"

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def run(**given: Any) -> None:
            for one in cases:
                with case(one):
                    test(**given, **one)

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in cases[0]]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate


@contextmanager
def case(*what: Any) -> Iterator[None]:
    """Add to any failure inside what was tried: ``with case(name, convention): assert ...``."""
    try:
        yield
    except BaseException as failure:
        failure.add_note("case: " + ", ".join(map(str, what)))
        raise

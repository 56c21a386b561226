"""The look of plots: lines that differ, Axes of the caller, the extra with matplotlib."""

import sys

import pytest

from rankwright.clicks.figures import (
    COLOURS,
    DASHES,
    import_matplotlib,
    line_style,
    new_axes,
    plain_axes,
)
from rankwright.errors import MissingExtraError


def test_lines_differ_by_colour_mark_or_dashes():
    styles = [line_style(number) for number in range(len(COLOURS) * len(DASHES))]
    assert len({(one["color"], str(one["linestyle"]), one["marker"]) for one in styles}) == len(
        styles
    )
    dashes = [str(one["linestyle"]) for one in styles]  # change where the colours begin again
    assert dashes == [str(dash) for dash in DASHES for _ in COLOURS]
    bare = [line_style(number, mark=False) for number in range(len(DASHES))]
    assert len({str(one["linestyle"]) for one in bare}) == len(DASHES)
    assert "marker" not in bare[0]


def test_axes_are_the_callers_or_new():
    ax = new_axes(None, height=2.0)
    assert new_axes(ax) is ax
    assert ax.figure.get_size_inches()[1] == 2.0
    assert not plain_axes(ax).spines["top"].get_visible()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="plot"):
        import_matplotlib()

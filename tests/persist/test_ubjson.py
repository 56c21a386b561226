"""UBJSON byte by byte: every type, and what is cut short."""

import struct

import numpy as np
import pytest

from rankwright.persist.ubjson import read_ubjson


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"Z", None),
        (b"T", True),
        (b"F", False),
        (b"i\xff", -1),
        (b"U\xff", 255),
        (b"I\x01\x00", 256),
        (b"l" + struct.pack(">i", -70_000), -70_000),
        (b"L" + struct.pack(">q", 2**40), 2**40),
        (b"d" + struct.pack(">f", 0.5), 0.5),
        (b"D" + struct.pack(">d", 0.1), 0.1),
        (b"CA", "A"),
        (b"Si\x03\xc3\xa9!", "é!"),
        (b"[i\x01T]", [1, True]),
        (b"[#i\x02i\x01i\x02", [1, 2]),
        (b"{i\x01ai\x05}", {"a": 5}),
        (b"{$U#i\x02i\x01a\x05i\x01b\x06", {"a": 5, "b": 6}),
    ],
)
def test_every_type_is_read(content, value):
    assert read_ubjson(content) == value


def test_a_typed_list_is_an_array_in_the_order_of_this_machine():
    found = read_ubjson(b"[$d#i\x02" + struct.pack(">ff", 0.5, -2.0))
    assert found.dtype == np.float32
    assert found.dtype.isnative
    assert found.tolist() == [0.5, -2.0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "ends too early"),
        (b"l\x00", "ends too early"),
        (b"[i\x01", "ends too early"),
        (b"TT", "more follows"),
        (b"x", "no UBJSON type"),
        (b"S" + b"d" + struct.pack(">f", 1.0), "no whole number"),
        (b"Si\xff", "beyond the end"),
        (b"Si\x7fabc", "beyond the end"),
        (b"[$i]", "a type and no length"),
        (b"[" * 200, "nested too deeply"),
    ],
)
def test_what_is_not_whole_is_refused(content, why):
    with pytest.raises(ValueError, match=why):
        read_ubjson(content)

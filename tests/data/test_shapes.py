"""The preset shapes are those of the real sets, and impossible ones are refused."""

from dataclasses import replace

import pytest

from rankwright.data.synthetic_data import SHAPES, Shape, descriptions
from rankwright.errors import UsageError

SMALL = Shape("small", 300, 6_000, 20, (0.6, 0.25, 0.1, 0.05), shortest=3, longest=60)


def test_large_presets_declare_the_size_of_the_real_sets():
    sizes = {name: (s.documents, s.features, s.queries) for name, s in SHAPES.items()}
    assert sizes["mslr10k"] == (1_200_192, 136, 10_000)
    assert sizes["mslr30k"] == (3_771_125, 136, 31_531)
    assert sizes["rcv1"][:2] == (781_265, 47_236)
    assert descriptions()["mslr30k"].startswith("31,531 queries, 3,771,125 documents, 136 features")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"documents": 100}, "cannot hold 100"),
        ({"documents": 100_000}, "cannot hold 100000"),
        ({"grades": (1.0,)}, "two or more grades"),
        ({"noise": 1.0}, "shares from 0 to below 1"),
        ({"features": 0}, "at least one query"),
    ],
)
def test_impossible_shapes_are_refused(changes, sentence):
    with pytest.raises(UsageError, match=sentence):
        replace(SMALL, **changes)

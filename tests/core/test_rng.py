import numpy as np
import pytest

from rankwright.core.rng import generator, stream
from rankwright.errors import UsageError


def first(*name, seed=0):
    return stream(seed, *name).integers(0, 2**62)


def test_the_same_seed_and_name_give_the_same_numbers():
    assert first("boost", "rows", 3) == first("boost", "rows", 3)


def test_another_seed_or_name_gives_other_numbers():
    drawn = [first("a", 1), first("a", 2), first("a", "1"), first("a1"), first("a", 1, seed=1)]
    assert len(set(drawn)) == len(drawn)


def test_the_numbers_of_a_stream_are_fixed_for_all_time():
    assert stream(0, "example").integers(0, 1000, 4).tolist() == [337, 889, 297, 905]


def numbers(random_state):
    return generator(random_state, "example").integers(0, 1000, 4).tolist()


def test_a_random_state_is_a_seed_a_generator_or_none():
    assert numbers(0) == numbers(np.int64(0)) == [337, 889, 297, 905]
    shared = np.random.default_rng(3)
    assert generator(shared, "example") is shared
    assert numbers(np.random.RandomState(3)) == numbers(np.random.RandomState(3))
    assert numbers(np.random.RandomState(3)) != numbers(np.random.RandomState(4))
    assert numbers(None) != numbers(None)


@pytest.mark.parametrize("wrong", ["0", 1.5, True])
def test_what_is_no_random_state_is_refused(wrong):
    with pytest.raises(UsageError, match="random_state must be a whole number, a NumPy Generator"):
        generator(wrong)

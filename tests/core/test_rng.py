from rankwright.core.rng import stream


def first(*name, seed=0):
    return stream(seed, *name).integers(0, 2**62)


def test_the_same_seed_and_name_give_the_same_numbers():
    assert first("boost", "rows", 3) == first("boost", "rows", 3)


def test_another_seed_or_name_gives_other_numbers():
    sampled = [first("a", 1), first("a", 2), first("a", "1"), first("a1"), first("a", 1, seed=1)]
    assert len(set(sampled)) == len(sampled)


def test_the_numbers_of_a_stream_are_fixed_for_all_time():
    assert stream(0, "example").integers(0, 1000, 4).tolist() == [337, 889, 297, 905]

"""The hash from which losses draw their noise."""


def mixed(state, word):
    """SplitMix64's mixer on Python's integers."""
    low = 2**64 - 1
    z = ((state ^ word) + 0x9E3779B97F4A7C15) & low
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & low
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & low
    return z ^ (z >> 31)

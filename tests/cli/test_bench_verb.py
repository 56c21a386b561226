from command import sentence


def test_an_area_that_is_not_known_is_one_sentence():
    told = sentence("bench", "speed")
    assert told.startswith("there is no area 'speed'; known are load, metrics,")

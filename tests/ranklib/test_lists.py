"""Lists as RankLib reads them: features that the data lacks."""

import pytest

from rankwright.errors import DataError
from rankwright.ranklib.command import run


def test_features_that_the_data_lacks_are_zero_or_refused(files, capsys):
    (files / "m").write_text("## Coordinate Ascent\n1:1.0 9:1.0")
    given = ["-load", str(files / "m"), "-test", str(files / "test.txt")]
    run(given)
    assert "the data ends with feature 3" in capsys.readouterr().err
    run([*given, "-missingZero", "--strict"])
    assert capsys.readouterr().err == ""
    with pytest.raises(DataError, match="-missingZero reads the others as 0"):
        run([*given, "--strict"])

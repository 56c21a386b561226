import pytest

from rankwright import clicks
from rankwright.errors import UsageError


def test_models_are_found_by_name():
    assert isinstance(clicks.model("pbm", max_iter=3), clicks.PBM)
    assert repr(clicks.model("pbm", max_iter=3)) == "PBM(max_iter=3)"
    with pytest.raises(UsageError, match="click model 'pmb'"):
        clicks.model("pmb")
    with pytest.raises(UsageError, match=r"click model 'gctr'.*max_iter"):
        clicks.model("gctr", max_iter=3)

"""`check_export` names the property that an export breaks."""

import numpy as np
import pytest

from rankwright.errors import ContractError
from rankwright.export.json import Json
from rankwright.testing import check_export


class Forgetful(Json):
    """Broken on purpose: its evaluator does not read the file."""

    def scores(self, folder, about, X):
        return np.zeros(len(X))


class Greedy(Json):
    """Broken on purpose: it does not declare trees, but accepts them."""

    families = frozenset({"linear"})

    def check(self, job):
        pass


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            Forgetful(),
            "export 'Forgetful' breaks the contract 'An independent evaluator",
        ),
        (Greedy(), "'Unsupported models are refused with one sentence, and nothing"),
    ],
)
def test_check_export_names_the_property_that_fails(broken, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_export(broken)

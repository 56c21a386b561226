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
    """Broken on purpose: it claims that it holds no trees, and takes them."""

    families = frozenset({"linear"})

    def check(self, job):
        pass


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (Forgetful(), "export 'Forgetful' breaks the contract 'The export scores as the model"),
        (Greedy(), "'Models that the target does not hold are refused by a sentence, and nothing"),
    ],
)
def test_check_export_names_the_property_that_fails(broken, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_export(broken)

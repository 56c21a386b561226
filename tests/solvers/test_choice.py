from types import SimpleNamespace

import pytest
from rankwright.core.compat import check_fit

from rankwright.core.types import Traits
from rankwright.errors import IncompatibleError

SOLVERS = {
    name: SimpleNamespace(needs=frozenset(needs))
    for name, needs in {
        "tron": {"smooth", "hess_vec"},
        "lbfgs": {"smooth"},
        "boost": set(),
        "bundle": {"convex"},
    }.items()
}


def loss(**traits):
    """A loss whose file would be called lambdarank."""
    kind = type("Example", (), {"__module__": "rankwright.losses.lambdarank"})
    made = kind()
    made.traits = Traits("listwise", **traits)
    return made


def test_a_loss_with_all_that_the_solver_needs_passes():
    check_fit("tron", loss(hess_vec=True), SOLVERS)


def test_the_sentence_names_what_is_missing_and_what_would_do():
    with pytest.raises(IncompatibleError) as fault:
        check_fit("tron", loss(), SOLVERS)
    assert str(fault.value) == (
        "tron needs a Hessian-vector product; loss 'lambdarank' has none. Use lbfgs or boost."
    )


def test_the_sentence_for_a_property():
    sentence = r"bundle needs a convex loss; loss 'lambdarank' is not one"
    with pytest.raises(IncompatibleError, match=sentence):
        check_fit("bundle", loss(), SOLVERS)


def test_the_sentence_for_more_than_one():
    sentence = (
        "tron needs a Hessian-vector product and a smooth loss; "
        "loss 'lambdarank' offers neither. Use boost."
    )
    with pytest.raises(IncompatibleError, match=sentence):
        check_fit("tron", loss(smooth=False), SOLVERS)


def test_no_solver_at_all():
    with pytest.raises(IncompatibleError, match="No solver here minimises it"):
        check_fit("tron", loss(), {"tron": SOLVERS["tron"]})

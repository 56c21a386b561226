import pytest

from rankwright.core.compat import check_fit
from rankwright.core.types import Traits
from rankwright.errors import IncompatibleError

NEEDS = {
    "tron": frozenset({"smooth", "hess_vec"}),
    "lbfgs": frozenset({"smooth"}),
    "boost": frozenset(),
    "bundle": frozenset({"convex"}),
}


def test_a_loss_with_all_that_the_solver_needs_passes():
    check_fit("tron", "retarget", Traits("list", hess_vec=True), NEEDS)


def test_the_sentence_names_what_is_missing_and_what_would_do():
    with pytest.raises(IncompatibleError) as fault:
        check_fit("tron", "lambdarank", Traits("list"), NEEDS)
    assert str(fault.value) == (
        "tron needs a Hessian-vector product; loss 'lambdarank' has none. Use lbfgs or boost."
    )


def test_the_sentence_for_a_property():
    with pytest.raises(IncompatibleError, match=r"bundle needs a convex loss; loss 'x' is not one"):
        check_fit("bundle", "x", Traits("list"), NEEDS)


def test_no_solver_at_all():
    only = {"tron": NEEDS["tron"]}
    with pytest.raises(IncompatibleError, match="No solver here minimises it"):
        check_fit("tron", "x", Traits("list"), only)

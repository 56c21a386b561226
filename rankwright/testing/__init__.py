"""Check a loss, metric, model or export of your own against what Rankwright asks of its own.

    import rankwright as rw

    rw.testing.check_loss(MyLoss())

raises `ContractError`, an AssertionError whose sentence names the property that does not hold.
With pytest, a test for each property::

    @pytest.mark.parametrize("check", rw.testing.loss_checks(MyLoss()))
    def test_my_loss(check):
        check(MyLoss())
"""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

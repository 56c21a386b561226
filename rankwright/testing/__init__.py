"""Check your own loss, metric, model or export with the checks of the built-in ones.

    import rankwright as rw

    rw.testing.check_loss(MyLoss())

raises a `ContractError` (an AssertionError) that names the property that is violated. With pytest,
each property can be a test::

    @pytest.mark.parametrize("check", rw.testing.loss_checks(MyLoss()))
    def test_my_loss(check):
        check(MyLoss())
"""

from rankwright.core.namespaces import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)

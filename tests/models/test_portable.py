"""Models in the few forms that can be exported."""

import numpy as np
import pytest

from rankwright.errors import UsageError
from rankwright.export.folder import export_model
from rankwright.models.portable import Blend, Linear, Network


def scores(part, X, dtype):
    """A slow twin of what a target does, all in one precision."""
    h = X.astype(dtype)
    if isinstance(part, Blend):
        return sum(scores(one, X, dtype) for one in part.parts)
    if isinstance(part, Linear):
        return h @ part.coef.astype(dtype)
    *hidden, (weight, constant) = part.layers
    for inner, own in hidden:
        h = np.tanh(h @ inner.astype(dtype) + own.astype(dtype))
    return (h @ weight.astype(dtype) + constant.astype(dtype))[:, 0]


def test_single_precision_stays_within_the_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40))
    linear = Linear(rng.normal(size=40), None)
    layers = [rng.normal(size=shape) / np.sqrt(shape[0]) for shape in ((40, 16), (16, 8), (8, 1))]
    constants = [rng.normal(size=w.shape[1]) for w in layers]
    network = Network(tuple(zip(layers, constants, strict=True)), "tanh", None, np.zeros(40))
    blend = Blend((linear, network))
    for model, slack in ((linear, 20.0), (network, 200.0), (blend, 200.0)):
        off = np.abs(scores(model, X, np.float32) - scores(model, X, np.float64))
        bound = model.error(X, 2.0**-24)
        assert (off <= bound).all()
        assert bound.mean() < slack * off.max()  # else wrong exports would pass
    of_parts = linear.error(X, 1.0) + network.error(X, 1.0)
    assert (blend.error(X, 1.0) >= of_parts).all()
    assert (blend.error(X, 1.0) <= 2.0 * of_parts).all()


def test_models_that_have_no_form_elsewhere_are_refused(tmp_path):
    from small_data import small_data

    import rankwright as rw

    data = small_data(queries=6, documents=6, features=3)
    kernel = rw.ranker("ranksvm", model="kernel").fit(data)
    with pytest.raises(UsageError, match="kernel model compares"):
        export_model(kernel, "onnx", tmp_path / "out")
    listwise = rw.ranker("ranknet", list_context=1, epochs=1).fit(data)
    with pytest.raises(UsageError, match="list context"):
        export_model(listwise, "c", tmp_path / "out")
    formula = rw.ranker("rankgp", n_generations=1, population=10).fit(data)
    with pytest.raises(UsageError, match="formula"):
        export_model(formula, "json", tmp_path / "out")

"""Models in the few forms that can be exported."""

import pytest

from rankwright.errors import UsageError
from rankwright.export.folder import export_model


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

"""Click models on the Yandex sample against PyClick, and an exact EM where PyClick is wrong.

``golden/clicks/pyclick.json`` has the numbers and says how they were made: 50 iterations, values
that start at 0.5, one success and one failure added.
"""

import json

import numpy as np
import pytest
from cases import case
from yandex_clicks import yandex_log

from rankwright import clicks

CLOSE = {"rel": 1e-10}


@pytest.fixture(scope="module")
def golden(golden_dir):
    return json.loads((golden_dir / "clicks" / "pyclick.json").read_text())


@pytest.fixture(scope="module")
def logs(data_dir):
    folder = data_dir / "Yandex_clicks"
    return [yandex_log(folder / f"{part}.tsv.xz") for part in ("train", "test")]


def check(model, expected, logs):
    train, test = logs
    found = model.evaluate(test)
    for name in (
        "log_likelihood",
        "session_log_likelihood",
        "perplexity",
        "conditional_perplexity",
    ):
        with case(model, name):
            assert getattr(found, name) == pytest.approx(expected["test"][name], **CLOSE)
    for name in ("perplexity", "conditional_perplexity"):
        np.testing.assert_allclose(
            getattr(found, f"{name}_by_position"), expected["test"][f"{name}_by_rank"], rtol=1e-10
        )
    known = model.evaluate(train)
    assert known.log_likelihood == pytest.approx(expected["train"]["log_likelihood"], **CLOSE)


def check_pairs(model, name, examples):
    """``examples`` has parameters by query and document id."""
    frame = model.to_frame()
    ids = frame["query"].astype(str) + " " + frame["document"].astype(str)
    found = dict(zip(ids, frame[name], strict=True))
    for one, value in examples.items():
        if one in found:
            assert found[one] == pytest.approx(value, **CLOSE)
    assert len(set(found) & set(examples)) >= 10


def test_counting_models_equal_pyclick(golden, logs):
    for name in ("GCTR", "RCTR", "DCTR", "DCM", "SDBN"):
        model = clicks.model(name.lower()).fit(logs[0])
        expected = golden["pyclick"][name]
        check(model, expected, logs)
        values = expected["parameters"]
        if name in ("DCM", "SDBN"):
            check_pairs(model, "attractiveness", values["attr_examples"])
        if name == "DCM":
            np.testing.assert_allclose(model.parameters_["continuation"], values["cont"])
        if name == "SDBN":
            check_pairs(model, "satisfaction", values["sat_examples"])


def test_the_cascade_model_equals_pyclick_up_to_the_first_click(golden, logs):
    model = clicks.Cascade().fit(logs[0])
    expected = golden["pyclick"]["CM"]
    check_pairs(model, "attractiveness", expected["parameters"]["attr_examples"])
    found = model.evaluate(logs[1])
    assert found.perplexity == pytest.approx(expected["test"]["perplexity"], **CLOSE)
    # below the first click PyClick gives 1e-6 to a click and to no click alike
    consistent = golden["cm_consistent"]["test_log_likelihood"]
    assert found.log_likelihood == pytest.approx(consistent, **CLOSE)


def test_pbm_and_ubm_equal_pyclick(golden, logs):
    for name in ("PBM", "UBM"):
        model = clicks.model(name.lower(), max_iter=50, tol=0.0).fit(logs[0])
        expected = golden["pyclick"][name]
        check(model, expected, logs)
        values = expected["parameters"]
        check_pairs(model, "attractiveness", values["attr_examples"])
        if name == "PBM":
            np.testing.assert_allclose(model.parameters_["examination"], values["exam"], rtol=1e-10)
        else:
            for position, by_click in values["exam"].items():
                for last, value in by_click.items():
                    found = model.examination(int(position), 0 if last == "none" else int(last))
                    assert found == pytest.approx(value, **CLOSE)


def test_dbn_equals_the_exact_em(golden, logs):
    for iterations in (1, 50):
        (expected,) = [
            one for one in golden["exact_em"]["models"]["DBN"] if one["iterations"] == iterations
        ]
        model = clicks.DBN(max_iter=iterations, tol=0.0).fit(logs[0])
        if iterations == 1:
            found = model.evaluate(logs[1])
            assert found.log_likelihood == pytest.approx(
                expected["test"]["log_likelihood"], **CLOSE
            )
            continue
        check(model, expected, logs)
        values = expected["parameters"]
        check_pairs(model, "attractiveness", values["attr_examples"])
        check_pairs(model, "satisfaction", values["sat_examples"])
        assert model.parameters_["continuation"][0] == pytest.approx(values["cont"], **CLOSE)

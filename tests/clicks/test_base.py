import json

import numpy as np
import pytest
from cases import case, each
from click_sessions import random_log
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from rankwright import clicks
from rankwright.clicks.base import NotFittedClickModelError
from rankwright.clicks.models import MODELS
from rankwright.core.parallel import documents_per_range
from rankwright.data import click_files
from rankwright.errors import DataError, UsageError
from rankwright.persist.container import ModelFileError, read_parts, write_parts

LOG = random_log()


def test_scores_are_those_of_their_equations():
    log = clicks.ClickLog.from_arrays(
        [0, 0], [1, 2, 1], [1, 0, 0], session_sizes=[2, 1], weight=[3.0, 1.0]
    )
    model = clicks.RCTR().fit(log)
    first, second = (3 + 1) / (4 + 2), (0 + 1) / (3 + 2)
    found = model.evaluate(log)
    total = 3 * np.log(first) + 3 * np.log(1 - second) + np.log(1 - first)
    assert found.log_likelihood == pytest.approx(total / 7)
    assert found.session_log_likelihood == pytest.approx(total / 4)
    at_1 = 2 ** -((3 * np.log2(first) + np.log2(1 - first)) / 4)
    np.testing.assert_allclose(found.perplexity_by_position, [at_1, 1 / (1 - second)])
    assert found.perplexity == pytest.approx((at_1 + 1 / (1 - second)) / 2)
    assert json.loads(json.dumps(found.to_dict()))["impressions"] == 7


@each("name", list(MODELS))
def test_every_model_is_saved_and_loaded_with_the_same_bytes(name, tmp_path):
    model = clicks.model(name).fit(LOG)
    model.save(tmp_path / "one.rw")
    again = clicks.load_model(tmp_path / "one.rw")
    assert type(again) is type(model)
    for conditional in (True, False):
        found, expected = (
            one.click_probabilities(LOG, conditional=conditional) for one in (again, model)
        )
        assert found.tobytes() == expected.tobytes()
    again.save(tmp_path / "two.rw")
    assert (tmp_path / "one.rw").read_bytes() == (tmp_path / "two.rw").read_bytes()
    errors = model.standard_errors_
    assert {one: len(values) for one, values in errors.items()} == {
        one: len(values) for one, values in model.parameters_.items()
    }


@each("name", list(MODELS))
def test_every_model_is_fitted_to_a_log_in_a_file(name, tmp_path, monkeypatch):
    monkeypatch.setattr(click_files, "IMPRESSIONS_PER_PART", 40)
    path = tmp_path / "log.jsonl"
    with path.open("w") as stream:
        for s in range(LOG.n_sessions):
            one = LOG.select([s])
            line = {"query": int(one.query[0]), "weight": float(one.weight[0])}
            line |= {"documents": one.document.tolist(), "clicks": one.click.tolist()}
            stream.write(json.dumps(line) + "\n")
    file = clicks.open_log(path)
    assert len(list(file.parts())) > 3
    params = {"max_iter": 4} if hasattr(MODELS[name], "_iterate") else {}
    model, other = clicks.model(name, **params).fit(LOG), clicks.model(name, **params).fit(file)
    np.testing.assert_allclose(
        other.click_probabilities(LOG), model.click_probabilities(LOG), rtol=1e-12
    )
    found, expected = other.evaluate(file), model.evaluate(LOG)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood)
    assert found.perplexity == pytest.approx(expected.perplexity)


@each("name", list(MODELS))
def test_simulated_clicks_have_the_marginal_probabilities(name):
    model = clicks.model(name).fit(random_log(sessions=200, rate=0.3))
    one = random_log(seed=3, sessions=3)
    many = clicks.concatenate_logs([one] * 3000)
    sampled = model.simulate(many, random_state=5).click.reshape(3000, -1).mean(axis=0)
    expected = model.click_probabilities(one, conditional=False)
    np.testing.assert_allclose(sampled, expected, atol=4.5 * 0.5 / np.sqrt(3000))
    assert (model.simulate(one).click == model.simulate(one).click).all()


@each("name", list(MODELS))
def test_a_model_says_that_it_is_not_fitted(name):
    model = clicks.model(name)
    for use in (model.evaluate, model.simulate, model.click_probabilities):
        with pytest.raises(NotFittedClickModelError, match="is not fitted yet"):
            use(LOG)
    with pytest.raises(NotFittedClickModelError, match=r"fit\(log\) first"):
        model.save("nowhere")


@each("name", list(MODELS))
def test_without_smoothing_any_log_has_a_model(name):
    lists = clicks.ClickLog.from_arrays(
        [0, 0], list("abcd") * 2, [0, 1, 1, 0, 0, 0, 0, 0], session_sizes=[4, 4]
    )
    never, always = (lists._replace(click=np.full(8, one)) for one in (False, True))
    for log in (LOG, lists, never, always):
        model = clicks.model(name, smoothing=0.0).fit(log)
        assert np.isfinite(model.evaluate(log).log_likelihood)
        for one, values in model.parameters_.items():
            with case(one):
                assert ((values >= 0.0) & (values <= 1.0)).all()
                assert not (model.standard_errors_[one] < 0.0).any()
                assert not np.isinf(model.standard_errors_[one]).any()


def test_em_stops_where_nothing_changes():
    model = clicks.PBM(max_iter=5000, tol=1e-4).fit(LOG)
    assert model.converged_
    assert model.n_iter_ == len(model.curve_) < 5000
    assert not clicks.PBM(max_iter=1).fit(LOG).converged_
    first = clicks.PBM(max_iter=1).fit(LOG)
    assert model.curve_[1] == pytest.approx(first.evaluate(LOG).log_likelihood)
    again = clicks.PBM(max_iter=model.n_iter_, tol=0.0).fit(LOG)
    assert again.click_probabilities(LOG).tobytes() == model.click_probabilities(LOG).tobytes()
    longer = clicks.PBM(max_iter=model.n_iter_ + 1, tol=0.0).fit(LOG)
    moved = longer.parameters_["examination"] - model.parameters_["examination"]
    assert np.abs(moved).max() <= 1e-4


@each(
    ("params", "sentence"),
    [({"max_iter": 0}, "max_iter must be 1 or more"), ({"tol": -1.0}, "tol must be 0 or more")],
)
def test_parameters_are_checked_when_work_begins(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        clicks.DBN(**params).fit(LOG)


def test_what_is_no_log_is_refused():
    with pytest.raises(DataError, match="a click log is expected, not ndarray"):
        clicks.PBM().fit(np.zeros(3))
    with pytest.raises(DataError, match="no impressions to evaluate"):
        clicks.PBM().fit(LOG).evaluate(LOG.select([]))


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "model.rw"
    for name in ("lambdamart", ["pbm"], None):
        write_parts(path, {"click_model": name}, {})
        with pytest.raises(ModelFileError, match="holds no click model"):
            clicks.load_model(path)
    write_parts(path, {"click_model": "pbm", "parameters": {}}, {"ids.json": b"{}"})
    with pytest.raises(ModelFileError, match="does not hold what its receipt says"):
        clicks.load_model(path)
    clicks.DBN(max_iter=2).fit(LOG).save(path)
    receipt, parts = read_parts(path)
    ids, arrays = json.loads(parts["ids.json"]), load_arrays(parts["arrays.safetensors"])
    damaged = [
        ({"query_ids": [7, 7]}, {}),
        ({"query_ids": [7, "7"]}, {}),
        ({"query_ids": [[1], 2]}, {}),
        ({}, {"value.continuation": np.full(2, 0.5), "error.continuation": np.ones(2)}),
        ({}, {"value.attractiveness": np.full(3, 0.5)}),
        ({}, {"value.satisfaction": arrays["value.satisfaction"] + 1.0}),
        ({}, {"query": arrays["query"] + 2}),
    ]
    for other_ids, others in damaged:
        changed = {
            "ids.json": json.dumps(ids | other_ids).encode(),
            "arrays.safetensors": save_arrays(arrays | others),
        }
        write_parts(path, {"click_model": "dbn", "parameters": receipt["parameters"]}, changed)
        with case(other_ids, *others), pytest.raises(ModelFileError, match="does not hold"):
            clicks.load_model(path)


@each("kind", [clicks.DBN, clicks.CCM, clicks.PBM, clicks.UBM, clicks.TrustPBM])
def test_threads_and_parts_do_not_change_the_model(kind):
    log = random_log(sessions=400, documents=30, queries=20)
    with documents_per_range(60):
        first, *others = [kind(n_jobs=threads, max_iter=4).fit(log) for threads in (1, 2, 5)]
    for other in others:
        for name, value in first.parameters_.items():
            assert value.tobytes() == other.parameters_[name].tobytes()
            errors = first.standard_errors_[name], other.standard_errors_[name]
            assert errors[0].tobytes() == errors[1].tobytes()
    halves = kind(max_iter=4).fit([log.select(np.arange(200)), log.select(np.arange(200, 400))])
    np.testing.assert_allclose(
        halves.click_probabilities(log), first.click_probabilities(log), rtol=1e-12
    )

"""Networks: gradients, a plain torch RankNet step by step, lists, scores without torch, files."""

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from small_data import Onlooker, small_data

from rankwright.core.types import CheckpointState
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, MissingExtraError, UsageError
from rankwright.losses import loss
from rankwright.models.network import (
    Design,
    Network,
    NetworkProblem,
    _in_seeded_order,
    runs_of_queries,
)
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker

DATA, VALID = small_data(queries=8, documents=7), small_data(queries=5, documents=7, seed=1)
TINY = {"hidden_layer_sizes": (4,), "epochs": 3, "learning_rate": 0.05, "batch_size": 20}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def fit(data=DATA, name="ranknet", callback=None, seed=0, n_jobs=None, **parameters):
    network = Network(**{**TINY, **parameters})
    callback = callback or Onlooker()
    return network.fit(loss(name), data, callback=callback, random_state=seed, n_jobs=n_jobs)


def problem(name, heads=0, data=DATA, activation="tanh", dropout=0.0, **more):
    """The whole of the small data as one batch, in double precision."""
    design = Design(
        sizes=(data.n_features, 5, 4),
        activation=activation,
        dropout=dropout,
        heads=heads,
        output_bias=not loss(name).traits.shift_invariant,
        shift=np.linspace(-1.0, 1.0, data.n_features),
        deviation=np.linspace(0.5, 2.0, data.n_features),
        centre=np.zeros(data.n_features),
        fill=None,
    )
    options = {
        "batch_size": data.n_documents,
        "device": "cpu",
        "precision": "double",
        "seed": 0,
        "n_jobs": 1,
    }
    return NetworkProblem(
        design,
        design.draw(3),
        data.X,
        np.arange(data.n_documents),
        data,
        loss(name).bind(data),
        data,
        **{**options, **more},
    )


# --- the gradient --------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [0, 2])
@pytest.mark.parametrize("name", ["ranknet", "squared"])
def test_the_gradient_of_every_weight_is_that_of_finite_differences(name, heads):
    made = problem(name, heads)
    _, gradient = made.batch_grad(0, 0)
    step = 1e-6
    for parameter, own in zip(made.parameters, gradient, strict=True):
        flat, found = parameter.detach().reshape(-1), own.reshape(-1)
        for k in range(len(flat)):
            sides = []
            for sign in (1.0, -2.0):
                flat[k] += sign * step
                sides.append(made.batch_grad(0, 0)[0])
            flat[k] += step
            expected = (sides[0] - sides[1]) / (2 * step)
            assert found[k].item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_batches_add_up_to_the_whole_gradient():
    whole, parts = problem("listnet"), problem("listnet", batch_size=15)
    value, gradient = whole.batch_grad(0, 0)
    several = [parts.batch_grad(0, batch) for batch in range(parts.n_batches)]
    assert parts.n_batches == 4
    assert sum(one for one, _ in several) == pytest.approx(value)
    for k, own in enumerate(gradient):
        torch.testing.assert_close(sum(one[k] for _, one in several), own)


def test_a_shift_of_all_scores_is_learnt_only_where_it_matters():
    assert len(problem("squared").parameters) == len(problem("ranknet").parameters) + 1


# --- dropout, standardising, precision -----------------------------------------------------------


def test_a_dropped_unit_is_gone_and_the_others_make_up_for_it():
    made, noise = problem("ranknet", dropout=0.25), torch.Generator()
    noise.manual_seed(0)
    h = made._dropped(torch.ones((2000, 5)), noise)
    assert h.unique().tolist() == [0.0, pytest.approx(1.0 / 0.75)]
    assert (h == 0.0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    assert h.double().mean().item() == pytest.approx(1.0, abs=0.02)


def test_dropout_draws_anew_in_each_epoch_and_chunk_and_never_when_scoring():
    made = problem("ranknet", dropout=0.5, batch_size=28)  # two batches
    values = [made.batch_grad(t, batch)[0] for t in (0, 1) for batch in (0, 1)]
    assert [made.batch_grad(t, batch)[0] for t in (0, 1) for batch in (0, 1)] == values
    assert len(set(values)) == 4
    plain = problem("ranknet", batch_size=28)
    assert made._design.fitted(made.weights()).scores(DATA.X) == pytest.approx(
        plain._design.fitted(plain.weights()).scores(DATA.X)
    )


def test_standardised_features_make_their_units_and_levels_irrelevant():
    units, levels = np.array([1000.0, 0.01, 1, 1, 1, 1]), np.array([0.0, 0.0, 500.0, 0, 0, 0])
    moved = replace(DATA, X=DATA.X * units + levels)
    exact = {"precision": "double", "batch_size": 1000}  # one batch: no order of queries
    a, b = fit(**exact).scores(DATA.X), fit(moved, **exact).scores(moved.X)
    assert b == pytest.approx(a, rel=1e-4, abs=1e-6)
    as_they_are = fit(moved, **exact, standardize=False).scores(moved.X)
    assert as_they_are != pytest.approx(a, rel=0.1)


def test_without_standardising_a_network_takes_features_as_they_are():
    """One step of a linear network: each weight moves by the rate, against its gradient's sign."""
    one_step = {"hidden_layer_sizes": (), "epochs": 1, "precision": "double", "batch_size": 1000}
    plain = {**one_step, "standardize": False}
    first = fit(**{**plain, "learning_rate": 1e-300}).layers[0][0][:, 0]
    after = fit(**plain).layers[0][0][:, 0]
    g = np.empty(DATA.n_documents)
    loss("ranknet").bind(DATA).grad(DATA.X @ first, g)
    assert after - first == pytest.approx(-TINY["learning_rate"] * np.sign(DATA.X.T @ g), rel=1e-5)


def test_in_mixed_precision_scores_keep_more_digits_than_bfloat16_has():
    made = problem("ranknet", heads=2, precision="single")
    x = made._features(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        s = made.forward(x, DATA.indptr)
    exact = made.forward(x, DATA.indptr)
    assert s.dtype == torch.float32
    assert (s != exact).any()  # the layers before are in bfloat16
    assert (s != s.bfloat16().float()).any()
    torch.testing.assert_close(s, exact, rtol=0.05, atol=0.05)


# --- plain torch ---------------------------------------------------------------------------------


def plain_ranknet(data, weights, epochs, rate):
    """RankNet as anyone writes it in torch, a full batch a step, with torch's own Adam."""
    net = torch.nn.Sequential(
        torch.nn.Linear(data.n_features, 4), torch.nn.Sigmoid(), torch.nn.Linear(4, 1)
    ).double()
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(value.T))
    X = torch.tensor((data.X - data.X.mean(axis=0)) / data.X.std(axis=0))
    adam = torch.optim.Adam(list(net.parameters())[:-1], lr=rate)
    values = []
    for _ in range(epochs):
        adam.zero_grad()
        s, total = net(X)[:, 0], 0.0
        for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
            better = torch.tensor(data.y[lo:hi, None] > data.y[None, lo:hi])
            lead = s[lo:hi, None] - s[None, lo:hi]
            total = total + torch.nn.functional.softplus(-lead[better]).sum()
        total.backward()
        adam.step()
        values.append(total.item())
    return values, net(X)[:, 0].detach().numpy()


def test_ranknet_is_plain_torchs_step_by_step():
    callback = Onlooker()
    shape = {
        "hidden_layer_sizes": (4,),
        "activation": "sigmoid",
        "precision": "double",
        "epochs": 6,
    }
    fitted = fit(callback=callback, **shape, batch_size=1000)
    first = fit(**{**shape, "epochs": 1}, learning_rate=1e-300)  # the weights it begins with
    values, scores = plain_ranknet(DATA, scaled_weights(first), 6, TINY["learning_rate"])
    assert callback.values == pytest.approx(values, rel=1e-7)
    assert fitted.scores(DATA.X) == pytest.approx(scores, rel=1e-7, abs=1e-9)


def scaled_weights(fitted):
    """The weights for standardised features, in the order of torch's parameters."""
    (weight, bias), (out, level) = fitted.layers
    mean, deviation = DATA.X.mean(axis=0), DATA.X.std(axis=0)
    return weight * deviation[:, None], bias + mean @ weight, out, level


# --- lists ---------------------------------------------------------------------------------------


def slow_context_scores(fitted, data):
    """The list context written out over pairs of documents."""
    (weight, bias), (out_weight, out_bias) = fitted.layers
    query, key, value, out = fitted.context
    m = query.shape[1] // fitted.heads
    scores = []
    for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        h = [np.tanh(x @ weight + bias) for x in data.X[lo:hi]]
        for i in h:
            seen = i.copy()
            for k in range(fitted.heads):
                cut = slice(k * m, (k + 1) * m)
                likes = np.array([(i @ query[:, cut]) @ (j @ key[:, cut]) for j in h]) / m**0.5
                share = np.exp(likes) / np.exp(likes).sum()
                mixed = sum(a * (j @ value[:, cut]) for a, j in zip(share, h, strict=True))
                seen += mixed @ out[cut]
            scores.append(seen @ out_weight[:, 0] + out_bias[0])
    return np.array(scores)


CONTEXT = {"activation": "tanh", "list_context": 2}


def test_the_list_context_is_its_slow_twin():
    fitted = fit(**CONTEXT)
    expected = slow_context_scores(fitted, VALID)
    assert fitted.scores_of(VALID) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("heads", [0, 2])
def test_training_sees_the_scores_that_are_given_later(heads):
    made = problem("ranknet", heads)
    x = made._features(0)
    seen = made.forward(x, DATA.indptr).detach().numpy()
    assert made._design.fitted(made.weights()).scores_of(DATA) == pytest.approx(seen, rel=1e-9)


@pytest.mark.parametrize("parameters", [{}, CONTEXT])
def test_documents_in_another_order_have_their_scores_in_that_order(parameters):
    fitted = fit(**parameters)
    rows = np.concatenate([q * 7 + np.random.default_rng(q).permutation(7) for q in range(5)])
    moved = replace(VALID, X=VALID.X[rows])
    assert fitted.scores_of(moved) == pytest.approx(fitted.scores_of(VALID)[rows], rel=1e-9)


def test_with_a_list_context_scores_depend_on_the_query():
    made = ranker("ranknet", **TINY, **CONTEXT).fit(DATA)
    qid = VALID.query_of_row()
    assert made.predict(VALID.X, qid=qid) == pytest.approx(made.predict(VALID))
    rows = np.random.default_rng(0).permutation(VALID.n_documents)
    assert made.predict(VALID.X[rows], qid=qid[rows]) == pytest.approx(made.predict(VALID)[rows])
    assert made.predict(VALID.X, qid=qid % 2) != pytest.approx(made.predict(VALID))
    with pytest.raises(UsageError, match="give the query of each row"):
        made.predict(VALID.X)


# --- without torch -------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh", "elu"])
@pytest.mark.parametrize("hidden", [(), (4,), (6, 4)])
def test_contributions_add_up_to_the_score(activation, hidden):
    fitted = fit(activation=activation, hidden_layer_sizes=hidden)
    parts = fitted.contributions(VALID.X)
    assert parts.shape == (VALID.n_documents, 7)
    assert parts.sum(axis=1) == pytest.approx(fitted.scores(VALID.X), rel=1e-9)
    assert parts[:, -1] == pytest.approx(fitted.scores(DATA.X.mean(axis=0)[None])[0], abs=1e-7)


def test_contributions_in_a_list_add_up_to_the_score():
    fitted = fit(**CONTEXT)
    assert fitted.contributions_of(VALID).sum(axis=1) == pytest.approx(fitted.scores_of(VALID))


def test_a_linear_nets_contributions_are_weight_times_what_the_feature_is_above_its_mean():
    fitted = fit(hidden_layer_sizes=())
    weight = fitted.layers[0][0][:, 0]
    expected = weight * (VALID.X - fitted.centre)
    assert fitted.contributions(VALID.X)[:, :-1] == pytest.approx(expected)


def test_a_saved_network_with_lists_scores_to_the_last_bit(tmp_path):
    made = ranker("listnet", model=Network(**TINY, **CONTEXT, missing="mean")).fit(DATA)
    made.save(tmp_path / "m.rw")
    again = load_model(tmp_path / "m.rw")
    assert (again.predict(VALID) == made.predict(VALID)).all()
    assert (again.model_.contributions_of(VALID) == made.model_.contributions_of(VALID)).all()


@pytest.mark.parametrize("parameters", [{}, {**CONTEXT, "dropout": 0.3}])
def test_threads_change_no_byte(parameters):
    data = small_data(queries=300, documents=40, dtype=np.float32)  # several chunks a batch
    parameters = {**parameters, "epochs": 2, "batch_size": 10_000}
    parameters["hidden_layer_sizes"] = (64, 64)
    fits = [fit(data, n_jobs=threads, **parameters) for threads in (1, 2, 5)]
    for other in fits[1:]:
        for name, array in fits[0].arrays().items():
            assert (array == other.arrays()[name]).all(), name
        assert (fits[0].scores_of(data) == other.scores_of(data, n_jobs=5)).all()


def test_missing_values_are_refused_or_filled():
    gaps = replace(DATA, X=np.where(np.arange(6) == np.arange(56)[:, None] % 9, np.nan, DATA.X))
    with pytest.raises(DataError, match=r"feature column 0 has missing values .* a network model"):
        fit(gaps)
    assert np.isfinite(fit(gaps, missing="mean").scores(gaps.X)).all()


def test_sparse_features_give_the_same_network():
    X = np.where(np.abs(DATA.X) > 0.8, DATA.X, 0.0)
    dense, thin = fit(replace(DATA, X=X)), fit(replace(DATA, X=sparse.csr_array(X)))
    assert thin.scores(sparse.csr_array(X)) == pytest.approx(dense.scores(X), rel=1e-5)


# --- runs ----------------------------------------------------------------------------------------

RUN = {"epochs": 6, "schedule": "cosine", "dropout": 0.2, "weight_decay": 0.1}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["ranknet", "xendcg"])
def test_a_resumed_run_ends_in_the_same_bytes(device, name):
    class Keeping(Onlooker):
        def save_state(self, t, state, added=None):
            if t == 2:
                half.append(CheckpointState(t, dict(state()), ()))

    half = []
    whole = fit(name=name, device=device, callback=Keeping(), **RUN)
    stopped = fit(name=name, device=device, callback=Onlooker(stop_at=2), **RUN)
    again = fit(name=name, device=device, callback=Onlooker(kept=half[0]), **RUN)
    assert (stopped.scores(DATA.X) != whole.scores(DATA.X)).any()
    for key, array in whole.arrays().items():
        assert (array == again.arrays()[key]).all(), key
    assert (again.scores(DATA.X) == whole.scores(DATA.X)).all()


def test_the_watch_chooses_the_round_to_keep():
    callback = Onlooker(keep=2)
    kept = fit(callback=callback, epochs=5)
    assert (kept.scores(DATA.X) == fit(epochs=2).scores(DATA.X)).all()
    assert callback.last == 5


def test_the_watch_is_shown_the_scores_on_train_and_valid():
    callback = Onlooker(valid=VALID)
    fitted = fit(callback=callback, device="cpu")
    assert (callback.train_scores[-1] == fitted.scores(DATA.X)).all()
    assert (callback.valid_scores[-1] == fitted.scores(VALID.X)).all()


class Impatient(Onlooker):
    """Presses Ctrl-C in the third epoch."""

    def on_iteration(self, t, *more):
        if t == 3:
            raise KeyboardInterrupt
        return super().on_iteration(t, *more)


def test_ctrl_c_keeps_what_was_learnt():
    callback = Impatient()
    fitted = fit(callback=callback, epochs=9)
    assert callback.interrupted
    assert (fitted.scores(DATA.X) == fit(epochs=2).scores(DATA.X)).all()


def test_going_on_from_a_network_begins_with_its_scores():
    first = fit()
    still = Network(**{**TINY, "learning_rate": 1e-300}).fit(
        loss("ranknet"), VALID, callback=Onlooker(), start=first
    )
    assert still.scores(DATA.X) == pytest.approx(first.scores(DATA.X), rel=1e-5)
    with pytest.raises(UsageError, match="the same layers"):
        Network(hidden_layer_sizes=(5,)).fit(
            loss("ranknet"), DATA, callback=Onlooker(), start=first
        )
    fewer = small_data(queries=8, documents=7, features=5)
    with pytest.raises(UsageError, match="start takes 6 features and the data has 5"):
        Network(**TINY).fit(loss("ranknet"), fewer, callback=Onlooker(), start=first)


def test_the_seed_decides_the_weights_and_the_rows_do_not():
    rows = np.random.default_rng(2).permutation(DATA.n_documents)
    shuffled = RankingData.from_arrays(DATA.X[rows], DATA.y[rows], qid=DATA.query_of_row()[rows])
    assert (fit(shuffled).scores(DATA.X) == fit().scores(DATA.X)).all()
    assert (fit(seed=1).scores(DATA.X) != fit().scores(DATA.X)).any()


def test_queries_without_an_order_are_left_out():
    flat = replace(DATA, y=np.where(DATA.query_of_row() == 3, 1.0, DATA.y))
    rows, ordered = _in_seeded_order(flat, 0, None)
    assert ordered.n_queries == 7
    assert sorted(rows) == [row for row in range(56) if not 21 <= row < 28]
    assert (flat.y[rows] == ordered.y).all()


def test_batches_are_runs_of_whole_queries_within_the_budget():
    indptr = np.array([0, 3, 5, 15, 16, 18])
    assert runs_of_queries(indptr, 0, 5, 5).tolist() == [0, 2, 3, 5]
    assert runs_of_queries(indptr, 1, 4, 100).tolist() == [1, 4]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["single", "double", "mixed"])
def test_it_learns_on_every_device_in_every_precision(device, precision):
    callback = Onlooker()
    fit(callback=callback, device=device, precision=precision, epochs=30)
    assert callback.values[-1] < 0.7 * callback.values[0]


# --- mistakes ------------------------------------------------------------------------------------


def test_without_torch_a_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"network needs torch.*rankwright\[neural\]"):
        ranker("ranknet").fit(DATA)


def test_missing_torch_is_reported_before_there_are_data(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"network needs torch.*rankwright\[neural\]"):
        ranker("ranknet").make_model()
    ranker("ranknet", model="linear").make_model()


def test_a_saved_network_scores_without_torch(tmp_path, monkeypatch):
    made = ranker("ranknet", **TINY).fit(DATA)
    made.save(tmp_path / "m.rw")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert (load_model(tmp_path / "m.rw").predict(VALID) == made.predict(VALID)).all()


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"hidden_layer_sizes": (4, 0)}, "hidden layers have 1 unit or more, not 0"),
        ({"hidden_layer_sizes": "8,a"}, r"must be whole numbers, such as \(8, 4\).* not '8,a'"),
        ({"hidden_layer_sizes": (8.5, 4)}, r"must be whole numbers.* not \(8.5, 4\)"),
        ({"list_context": 3}, "needs a last hidden layer of a multiple of its heads"),
        ({"hidden_layer_sizes": (), "list_context": 1}, "needs a last hidden layer"),
        ({"dropout": 1.0}, "dropout must be from 0 to below 1, not 1.0"),
        ({"batch_size": 0}, "batch_size must be 1 or more, not 0"),
        ({"activation": "swish"}, "activation must be one of relu, sigmoid, tanh, elu"),
        ({"device": "tpu"}, "device must be one of auto, cpu, cuda, not 'tpu'"),
        ({"precision": "half"}, "precision must be one of single, double, tf32, mixed, not 'half'"),
        ({"learning_rate": 1e38}, "no longer finite in epoch .* smaller learning_rate"),
    ],
)
def test_a_wrong_setting_is_reported(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        fit(**parameters)


@pytest.mark.parametrize("workspace", [None, ":16:8"])
@pytest.mark.parametrize(("strict", "warn_only"), [(False, False), (True, True)])
def test_settings_of_torch_are_left_as_they_were(monkeypatch, strict, warn_only, workspace):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if workspace is not None:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", workspace)
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(strict, warn_only=warn_only)
    try:
        with Network(device="cuda", precision="tf32")._calm(torch) as device:
            assert device == "cuda"
            assert torch.get_num_threads() == 1
            assert torch.get_float32_matmul_precision() == "high"
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
            assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == (workspace or ":4096:8")
        assert torch.are_deterministic_algorithms_enabled() == strict
        assert torch.is_deterministic_algorithms_warn_only_enabled() == warn_only
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.get_num_threads() == threads
    assert torch.get_float32_matmul_precision() == "highest"
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == workspace

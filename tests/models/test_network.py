"""Networks: gradients, a plain torch RankNet step by step, lists, scores without torch, files."""

import os
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, MissingExtraError, UsageError
from rankwright.losses import loss
from rankwright.models import network_training
from rankwright.models.network import Network, Scaling, _in_seeded_order
from rankwright.models.network_training import (
    Chunks,
    Net,
    Trainer,
    batch_loss,
    choose_device,
    gpu_scorer,
    runs_of_queries,
    torch_settings,
)
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import ranker
from rankwright.rankers.fitting import last_model

DATA, VALID = small_data(queries=8, documents=7), small_data(queries=5, documents=7, seed=1)
TINY = {"hidden_layer_sizes": (4,), "epochs": 3, "learning_rate": 0.05, "batch_size": 20}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def rounds_of(
    data=DATA,
    name="ranknet",
    valid=None,
    start=None,
    resume=None,
    seed=0,
    n_jobs=None,
    **parameters,
):
    network = Network(**{**TINY, **parameters})
    options = {"start": start, "resume": resume, "random_state": seed, "n_jobs": n_jobs}
    return network.rounds(loss(name), data, valid, **options)


def fit(*args, **options):
    return last_model(rounds_of(*args, **options))


def trainer(name, heads=0, data=DATA, **parameters):
    """The whole of the small data as one batch, in double precision."""
    network = Network(
        hidden_layer_sizes=(5, 4),
        list_context=heads,
        **{"activation": "tanh", "precision": "double", "batch_size": data.n_documents}
        | parameters,
    )
    n = data.n_features
    scaling = Scaling(np.linspace(-1.0, 1.0, n), np.linspace(0.5, 2.0, n))
    has_bias = not loss(name).traits.shift_invariant
    weights = network._first_weights(scaling, 3, None)
    net = Net(network, weights, output_bias=has_bias, device="cpu")
    rows, bound = np.arange(data.n_documents), batch_loss(loss(name), data, "cpu", n_jobs=1)
    return Trainer(network, net, bound, data.X, rows, data.indptr, scaling, seed=0, n_jobs=1)


def fitted_by(made):
    """The fitted network of a trainer."""
    mean = np.zeros(DATA.n_features)
    return made._network._fitted(made.weights(), made._chunks.scaling, mean, None)


def batch_grad(made, t, batch):
    """The loss of a batch of one chunk, and its gradient in each parameter."""
    made.batch_grad(t, batch)
    return made._values[batch].item(), [parameter.grad.clone() for parameter in made.parameters]


# --- the gradient --------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [0, 2])
@pytest.mark.parametrize("name", ["ranknet", "squared"])
def test_the_gradient_of_every_weight_is_that_of_finite_differences(name, heads):
    made = trainer(name, heads)
    _, gradient = batch_grad(made, 0, 0)
    step = 1e-6
    for parameter, own in zip(made.parameters, gradient, strict=True):
        flat, found = parameter.detach().reshape(-1), own.reshape(-1)
        for k in range(len(flat)):
            sides = []
            for sign in (1.0, -2.0):
                flat[k] += sign * step
                sides.append(batch_grad(made, 0, 0)[0])
            flat[k] += step
            expected = (sides[0] - sides[1]) / (2 * step)
            assert found[k].item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_batches_add_up_to_the_whole_gradient():
    whole, parts = trainer("listnet"), trainer("listnet", batch_size=15)
    value, gradient = batch_grad(whole, 0, 0)
    several = [batch_grad(parts, 0, batch) for batch in range(len(parts._batches))]
    assert len(several) == 4
    assert sum(one for one, _ in several) == pytest.approx(value)
    for k, own in enumerate(gradient):
        torch.testing.assert_close(sum(one[k] for _, one in several), own)


def test_a_shift_of_all_scores_is_learnt_only_where_it_matters():
    assert len(trainer("squared").parameters) == len(trainer("ranknet").parameters) + 1


# --- dropout, standardising ----------------------------------------------------------------------


def test_a_dropped_unit_is_gone_and_the_others_make_up_for_it():
    made, noise = trainer("ranknet", dropout=0.25), torch.Generator()
    noise.manual_seed(0)
    h = made._net._drop(torch.ones((2000, 5)), noise)
    assert h.unique().tolist() == [0.0, pytest.approx(1.0 / 0.75)]
    assert (h == 0.0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    assert h.double().mean().item() == pytest.approx(1.0, abs=0.02)


def test_dropout_draws_anew_in_each_epoch_and_chunk_and_never_when_scoring():
    made = trainer("ranknet", dropout=0.5, batch_size=28)  # two batches
    values = [batch_grad(made, t, batch)[0] for t in (0, 1) for batch in (0, 1)]
    assert [batch_grad(made, t, batch)[0] for t in (0, 1) for batch in (0, 1)] == values
    assert len(set(values)) == 4
    plain = trainer("ranknet", batch_size=28)
    assert fitted_by(made).scores(DATA.X) == pytest.approx(fitted_by(plain).scores(DATA.X))


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
    shape = {"hidden_layer_sizes": (4,), "activation": "sigmoid", "precision": "double"}
    shape |= {"epochs": 6, "batch_size": 1000}
    rounds = list(rounds_of(**shape))
    fitted = rounds[-1].model()
    first = fit(**{**shape, "epochs": 1}, learning_rate=1e-300)  # the weights it begins with
    values, scores = plain_ranknet(DATA, scaled_weights(first), 6, TINY["learning_rate"])
    assert [one.loss for one in rounds] == pytest.approx(values, rel=1e-7)
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
    made = trainer("ranknet", heads)
    seen = made._net(*made._chunks[0]).detach().numpy()
    assert fitted_by(made).scores_of(DATA) == pytest.approx(seen, rel=1e-9)


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


# --- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ("constant", [1.0, 1.0, 1.0, 1.0]),
        ("linear", [1.0, 0.75, 0.5, 0.25]),
        ("cosine", [1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5]),
        ("step", [1.0, 1.0, 0.1, 0.01]),
    ],
)
def test_schedules_over_four_epochs(schedule, factors):
    network = Network(epochs=4, learning_rate=2.0, schedule=schedule)
    assert [network.rate(t) / 2.0 for t in range(4)] == pytest.approx(factors)


def test_every_batch_is_visited_once_an_epoch_in_an_order_of_its_own(monkeypatch):
    made, visited = trainer("ranknet", batch_size=7), []
    compute = made.batch_grad
    monkeypatch.setattr(made, "batch_grad", lambda t, b: visited.append((t, b)) or compute(t, b))
    made.epoch()
    made.epoch()
    first, second = ([b for t, b in visited if t == epoch] for epoch in (0, 1))
    assert sorted(first) == sorted(second) == list(range(8))
    assert first != second


def test_decay_pulls_matrices_to_zero_and_biases_not():
    rates = {"learning_rate": 0.1, "weight_decay": 0.5}
    plain, pulled = trainer("squared", learning_rate=0.1), trainer("squared", **rates)
    before = plain.weights()
    plain.epoch()
    pulled.epoch()
    for first, one, other in zip(before, plain.weights(), pulled.weights(), strict=True):
        pull = 0.1 * 0.5 * first if first.ndim == 2 else torch.zeros_like(first)
        torch.testing.assert_close(one - other, pull)


# --- runs ----------------------------------------------------------------------------------------

RUN = {"epochs": 6, "schedule": "cosine", "dropout": 0.2, "weight_decay": 0.1}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["ranknet", "xendcg"])
@pytest.mark.parametrize("parameters", [RUN, {**RUN, "dropout": 0.0}])
def test_a_resumed_run_ends_in_the_same_bytes(device, name, parameters):
    def run(**options):
        return rounds_of(name=name, device=device, **parameters, **options)

    (*_, half) = islice(run(), 2)
    state, stopped = half.state(), half.model()
    whole, again = last_model(run()), list(run(resume=state))
    assert [one.number for one in again] == [3, 4, 5, 6]
    assert (stopped.scores(DATA.X) != whole.scores(DATA.X)).any()
    for key, array in whole.arrays().items():
        assert (array == again[-1].model().arrays()[key]).all(), key
    assert (again[-1].model().scores(DATA.X) == whole.scores(DATA.X)).all()


def test_the_state_of_another_network_is_refused():
    state = next(rounds_of()).state()
    with pytest.raises(DataError, match=r"the checkpoint: .*'weights'"):
        fit(hidden_layer_sizes=(5,), resume=state)
    with pytest.raises(DataError, match=r"the checkpoint: .*'epochs' is missing"):
        fit(resume={name: array for name, array in state.items() if name != "epochs"})


def test_a_round_keeps_its_model():
    second = list(rounds_of(epochs=5))[1]
    assert second.number == 2
    assert (second.model().scores(DATA.X) == fit(epochs=2).scores(DATA.X)).all()


def test_a_round_has_the_scores_of_the_validation_data():
    for device in DEVICES:
        (*_, last) = rounds_of(valid=VALID, device=device)
        precision = 0.0 if device == "cpu" else 1e-5
        assert last.valid_scores == pytest.approx(last.model().scores(VALID.X), rel=precision)


@pytest.mark.parametrize("heads", [0, 2])
def test_scores_on_the_device_are_those_of_the_fitted_network(monkeypatch, heads):
    monkeypatch.setattr(network_training, "_SCORED_DOCUMENTS", 15)  # two queries at a time
    made = trainer("ranknet", heads)
    scores = gpu_scorer(made._net, VALID.X, VALID.indptr, made._chunks.scaling)
    for _ in range(2):
        assert scores() == pytest.approx(fitted_by(made).scores_of(VALID), rel=1e-9)
        made.epoch()


def test_going_on_from_a_network_begins_with_its_scores():
    first = fit()
    still = fit(VALID, start=first, learning_rate=1e-300)
    assert still.scores(DATA.X) == pytest.approx(first.scores(DATA.X), rel=1e-5)
    for parameters in ({"hidden_layer_sizes": (5,)}, {"activation": "relu"}):
        with pytest.raises(UsageError, match="the same layers"):
            fit(start=first, **parameters)
    fewer = small_data(queries=8, documents=7, features=5)
    with pytest.raises(UsageError, match="the same layers and features"):
        fit(fewer, start=first)


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
    assert runs_of_queries(indptr, 5) == [0, 2, 3, 5]
    assert runs_of_queries(indptr, 100) == [0, 5]


@pytest.mark.parametrize("parameters", [{}, CONTEXT])
def test_features_that_do_not_stay_give_the_same_network(monkeypatch, parameters):
    stay = fit(**parameters)
    monkeypatch.setattr(network_training, "_CPU_BYTES", 0)
    assert not trainer("ranknet")._chunks.fit_in_memory
    assert (fit(**parameters).scores_of(VALID) == stay.scores_of(VALID)).all()


def test_chunks_have_the_scaled_features_of_their_queries(tmp_path):
    made, indptr = trainer("ranknet"), np.array([0, 3, 5, 9])
    rows, scaling = np.array([4, 2, 0, 1, 9, 8, 7, 6, 5]), Scaling(np.full(6, 2.0), np.full(6, 4.0))
    memory_map = np.memmap(tmp_path / "X", DATA.X.dtype, "w+", shape=DATA.X.shape)
    memory_map[:] = DATA.X
    for X in (DATA.X, memory_map, sparse.csr_array(DATA.X), np.asfortranarray(DATA.X)):
        chunks = Chunks(X, rows, indptr, [(0, 1), (1, 3)], scaling, made._net)
        x, begin = chunks[1]
        assert (x.numpy() == (DATA.X[rows[3:]] - 2.0) / 4.0).all()
        assert begin.tolist() == [0, 2, 6]
        assert chunks[1][0] is x


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_it_learns_on_every_device_in_every_precision(device, precision):
    values, on_cpu = (
        [one.loss for one in rounds_of(device=place, precision=precision, epochs=30)]
        for place in (device, "cpu")
    )
    assert values[-1] < 0.7 * values[0]
    assert values == pytest.approx(on_cpu, rel=1e-8 if precision == "double" else 0.01)


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
        (
            {"activation": "swish"},
            "activation must be sigmoid, relu, tanh or elu, not 'swish'",
        ),
        ({"device": "tpu"}, "device must be auto, cpu or cuda, not 'tpu'; did you mean cpu"),
        ({"precision": "tf32"}, "precision must be single or double, not 'tf32'"),
        (
            {"schedule": "sine"},
            "schedule must be constant, cosine, linear or step, not 'sine'",
        ),
        ({"weight_decay": -1.0}, "weight_decay must be 0 or more"),
        ({"epochs": 0}, "epochs must be 1 or more, not 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": 1e38}, "no longer finite in epoch .* smaller learning_rate"),
    ],
)
def test_a_wrong_setting_is_reported(parameters, sentence):
    made = ranker("ranker", loss="ranknet", model=Network(**{**TINY, **parameters}))
    with pytest.raises(UsageError, match=sentence):
        made.fit(DATA)


def test_a_gpu_that_is_not_there_is_reported(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == "cpu"
    with pytest.raises(UsageError, match="torch finds no CUDA device here"):
        fit(device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (choose_device("auto"), choose_device("cpu")) == ("cuda", "cpu")


@pytest.mark.parametrize("workspace", [None, ":16:8"])
@pytest.mark.parametrize(("strict", "warn_only"), [(False, False), (True, True)])
def test_settings_of_torch_are_left_as_they_were(monkeypatch, strict, warn_only, workspace):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if workspace is not None:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", workspace)
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(strict, warn_only=warn_only)
    try:
        with torch_settings(deterministic=True):
            assert torch.get_num_threads() == 1
            assert torch.are_deterministic_algorithms_enabled()
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
            assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == (workspace or ":4096:8")
        assert torch.are_deterministic_algorithms_enabled() == strict
        assert torch.is_deterministic_algorithms_warn_only_enabled() == warn_only
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.get_num_threads() == threads
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == workspace

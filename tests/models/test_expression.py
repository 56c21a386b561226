"""Values of formulas against a recursive twin, and what fitting a formula promises."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.expression import value
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models.coordinate_ascent import CoordinateAscent
from rankwright.models.expression import Expression, FittedExpression
from rankwright.models.formula import BINARY, UNARY, columns_of, size, text
from rankwright.rankers.base import ranker
from rankwright.rankers.fitting import last_model

X1, X2, X3 = ("x", 0), ("x", 1), ("x", 2)
NDCG = metric("ndcg@10")
QUICK = Expression(population=40, n_generations=5)


def fitted(tree, n_features=3, fill=None):
    return FittedExpression(tree, fill, n_features)


def fit(model=QUICK, metric_=NDCG, data=None, **options):
    return last_model(model.rounds(metric_, small_data() if data is None else data, **options))


wild = st.floats(allow_nan=False, allow_infinity=False, width=64)
leaves = st.one_of(
    st.integers(0, 2).map(lambda j: ("x", j)), st.floats(-9, 9).map(lambda c: ("c", c))
)
formulas = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.tuples(st.sampled_from([*UNARY]), part),
        st.tuples(st.sampled_from([*BINARY]), part, part),
    ),
    max_leaves=15,
)
few_rows = st.lists(st.tuples(wild, wild, wild), min_size=1, max_size=4)


@given(formulas, few_rows)
def test_values_are_those_of_the_recursive_twin(tree, rows):
    X = np.array(rows)
    expected = [value(tree, row) for row in X]
    found = fitted(tree).scores(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
    assert np.isfinite(found).all()


def test_many_rows_and_any_number_of_threads_give_the_same_bytes():
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    model = fitted(("-", ("*", X1, ("log1p", X2)), ("/", X3, ("sqrt", X1))))
    one, two, five = (model.scores(X, n_jobs=n) for n in (1, 2, 5))
    assert (one == two).all()
    assert (one == five).all()
    for i in (0, 511, 512, 8191, 8192, 19_999):  # where blocks of rows meet
        assert one[i] == pytest.approx(value(model.formula, X[i]), rel=1e-12)


def test_float32_and_sparse_data_have_the_same_scores():
    X = np.random.default_rng(0).integers(-2, 3, size=(50, 3)).astype(np.float32)
    model = fitted(("+", ("/", X1, X3), X2))
    for other in (X, sparse.csr_array(X)):
        assert (model.scores(other) == model.scores(X.astype(np.float64))).all()


def test_a_formula_has_no_contributions_of_features():
    with pytest.raises(UsageError, match="not a sum over features; print the formula"):
        fitted(X1).contributions(np.ones((2, 3)))


# --- fitting ---------------------------------------------------------------------------------


def planted(queries=20, documents=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 5))
    utility = X[:, 0] * X[:, 1] - X[:, 2]
    y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9]))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents))


def test_it_finds_a_planted_formula():
    data, fresh = planted(), planted(seed=1)
    model = fit(Expression(population=200, n_generations=25), data=data)
    for part in (data, fresh):
        assert evaluate(part, model.scores(part.X), "ndcg")["ndcg"] == pytest.approx(1.0, abs=1e-3)
    assert columns_of(model.formula) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_negative_measure_and_never_rises(seed):
    data = small_data()
    rounds = list(QUICK.rounds(NDCG, data, random_state=seed))
    losses = [round_.loss for round_ in rounds]
    assert losses == sorted(losses, reverse=True)
    assert [round_.number for round_ in rounds] == [1, 2, 3, 4, 5]
    for round_ in rounds:
        scores = round_.model().scores(data.X)
        mean = evaluate(data, scores, "ndcg(ties=mean)@10")["ndcg(ties=mean)@10"]
        assert -round_.loss == pytest.approx(mean, abs=1e-12)
        assert round_.valid_scores is None


def test_a_measure_that_falls_is_brought_down():
    data = small_data()
    rounds = list(QUICK.rounds(metric("pair_error"), data))
    losses = [round_.loss for round_ in rounds]
    assert losses == sorted(losses, reverse=True)
    found = evaluate(data, rounds[-1].model().scores(data.X), "pair_error")["pair_error"]
    assert found == pytest.approx(losses[-1])
    assert found < 0.35


def test_file_order_never_flatters_a_formula():
    """Rows come best first: a constant would score 1 if ties kept the order of the file."""
    data = small_data()
    best_first = np.lexsort((-data.y, data.query_of_row()))
    sorted_data = replace(data, X=data.X[best_first], y=data.y[best_first])
    ours, theirs = (fit(data=one) for one in (data, sorted_data))
    assert ours.formula == theirs.formula
    assert columns_of(ours.formula)


def test_each_round_has_the_scores_of_the_validation_data():
    valid = small_data(seed=1)
    for round_ in QUICK.rounds(NDCG, small_data(), valid):
        assert (round_.valid_scores == round_.model().scores(valid.X)).all()


def test_the_seed_and_not_the_threads_decide():
    first = fit(random_state=1, n_jobs=1)
    assert fit(random_state=1, n_jobs=3).formula == first.formula
    assert fit(random_state=2).formula != first.formula


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_it_resumes_with_the_same_rounds(stop):
    data, valid = small_data(), small_data(seed=1)
    rounds = list(QUICK.rounds(NDCG, data, valid))
    resumed = list(QUICK.rounds(NDCG, data, valid, resume=rounds[stop - 1].state()))
    assert [round_.number for round_ in resumed] == [1, 2, 3, 4, 5]
    for before, after in zip(rounds, resumed, strict=True):
        assert after.model().formula == before.model().formula
        if after.number <= stop:
            assert np.isnan(after.loss)
            assert after.valid_scores is None
            assert after.state is None
        else:
            assert after.loss == before.loss
            assert after.valid_scores.tobytes() == before.valid_scores.tobytes()
            assert after.state()["population"].tobytes() == before.state()["population"].tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"best": np.zeros(3, np.uint8)},
        {"population": np.frombuffer(b'[["x", 6]]', np.uint8)},
        {"population": np.zeros(3)},
        {"more": np.zeros(3)},
    ],
)
def test_a_damaged_state_is_refused(change):
    state = next(QUICK.rounds(NDCG, small_data())).state()
    with pytest.raises(DataError):
        list(QUICK.rounds(NDCG, small_data(), resume={**state, **change}))


def test_it_goes_on_from_a_formula():
    data = small_data()
    first = fit()
    assert QUICK.can_continue(first)
    (again,) = replace(QUICK, n_generations=1).rounds(NDCG, data, start=first, random_state=5)
    value = evaluate(data, first.scores(data.X), "ndcg(ties=mean)@10")["ndcg(ties=mean)@10"]
    assert -again.loss >= value - 1e-12


def test_query_weights_count_as_in_the_measure():
    data = small_data()
    odd = (np.arange(data.n_queries) % 2).astype(float)
    whole = next(QUICK.rounds(NDCG, replace(data, query_weight=odd)))
    part = next(QUICK.rounds(NDCG, data.select(np.flatnonzero(odd))))
    assert whole.loss == pytest.approx(part.loss, abs=1e-12)


def test_missing_values_are_refused_or_filled():
    data = small_data()
    X = data.X.copy()
    X[3, 0] = X[7, 1] = np.nan
    gaps = replace(data, X=X)
    with pytest.raises(DataError, match=r"feature column 0 has missing values .* formula model"):
        fit(data=gaps)
    model = fit(replace(QUICK, missing="zero"), data=gaps)
    assert (model.scores(X) == model.scores(np.nan_to_num(X))).all()


def test_without_a_query_that_counts_it_still_answers():
    data = replace(small_data(), y=np.zeros(600))
    rounds = QUICK.rounds(metric("ndcg(empty=skip)@10"), data)
    assert [round_.loss for round_ in rounds] == [0.0] * 5


def test_it_says_what_it_goes_by_and_reads_back():
    data = replace(small_data(), feature_names=tuple("abcdef"))
    model = fit(data=data)
    assert f"score = {text(model.formula, 'abcdef')}" in model.describe("abcdef")
    again = Expression.restore(model.arrays(), model.texts(), 6)
    assert (again.scores(data.X) == model.scores(data.X)).all()
    assert (again.formula, again.describe("abcdef")) == (model.formula, model.describe("abcdef"))


@pytest.mark.parametrize("names", [None, tuple("abcdef")])
def test_a_ranker_has_the_text_of_its_formula(names):
    data = replace(small_data(), feature_names=names)
    fitted_ranker = ranker("rankgp", population=30, n_generations=2, random_state=0).fit(data)
    assert fitted_ranker.formula_ == text(fitted_ranker.model_.formula, names)
    with pytest.raises(AttributeError, match="only a formula model has this"):
        ranker("rankgp", model=CoordinateAscent()).fit(data).formula_  # noqa: B018


def test_a_formula_of_features_that_are_not_there_is_refused():
    model = fitted(("+", X1, X3))
    with pytest.raises(DataError, match="is damaged, or has other features"):
        Expression.restore(model.arrays(), model.texts(), 2)


def test_a_description_says_what_division_by_zero_is():
    assert fitted(("/", X1, X3)).describe("abc") == [
        "a formula of 3 nodes over 2 features",
        "score = a / c",
        "a quotient is 1 where its divisor is 0",
    ]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"max_nodes": 0}, "max_nodes must be 1 or more, not 0"),
        ({"max_depth": 0}, "max_depth must be 1 or more, not 0"),
        ({"max_depth": 101}, "max_depth must be at most 100, not 101"),
        ({"population": 0}, "population must be 1 or more, not 0"),
        ({"n_generations": 0}, "n_generations must be 1 or more"),
        ({"population": 3, "elites": 4}, "elites must be at most population, 3"),
        ({"elites": 500}, "elites must be at most population"),
        ({"crossover": 1.5}, "crossover must be a share from 0 to 1, not 1.5"),
        ({"parsimony": -1.0}, "parsimony must be 0 or more"),
        ({"missing": "median"}, "missing must be 'mean', 'zero' or None"),
    ],
)
def test_impossible_parameters_are_reported(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        ranker("rankgp", model=Expression(**parameters)).make_model()


# --- generations -----------------------------------------------------------------------------


def generations(model, fitness, columns=range(6), start=None):
    """Return the generations of a run in which ``fitness`` replaces the metric."""
    population = model.first_generation(start, columns, 0)
    out = [population]
    for t in range(1, model.n_generations):
        population = model.next_generation(population, fitness(population), columns, t, 0)
        out.append(population)
    return out


def by_nodes(formulas):
    return np.array([size(formula) for formula in formulas], float)


def alike(formulas):
    return np.zeros(len(formulas))


def test_formulas_of_a_generation_differ_and_number_as_asked():
    for population in generations(Expression(population=30, n_generations=8), by_nodes):
        assert len(set(population)) == len(population) == 30


def test_the_best_pass_to_the_next_generation():
    runs = generations(Expression(population=20, n_generations=9, elites=2), by_nodes)
    for before, after in pairwise(runs):
        best = sorted(by_nodes(before))[-2:]
        assert sorted(by_nodes(after[:2])) == best
    assert by_nodes(runs[-1]).max() > by_nodes(runs[0]).max()


def test_where_there_are_fewer_formulas_than_places_some_come_twice():
    tiny = Expression(population=40, n_generations=3, max_nodes=1, crossover=1.0)
    for population in generations(tiny, alike, columns=[0])[1:]:
        assert len(population) == 40


def test_of_equals_the_smaller_is_best():
    runs = generations(Expression(population=40, n_generations=10, elites=1), alike)
    assert all(size(population[0]) == 1 for population in runs[1:])


def test_it_begins_with_what_it_is_given():
    formula = ("-", ("*", X1, X2), X3)
    start = FittedExpression(formula, None, 6)
    assert generations(Expression(population=5), alike, start=start)[0][0] == formula

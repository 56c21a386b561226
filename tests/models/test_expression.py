"""The compiled evaluator against a recursive twin, and what fitting a formula promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.expression import shapley, value
from scipy import sparse
from small_data import Onlooker, small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models.expression import Evolve, Expression
from rankwright.models.formula import BINARY, UNARY, FittedExpression, columns_of, postfix, text

X1, X2, X3 = ("x", 0), ("x", 1), ("x", 2)
NDCG = metric("ndcg@10")
QUICK = Expression(population=40, n_generations=5)


def fitted(tree, n_features=3, means=None, fill=None):
    code, values = postfix(tree)
    used = columns_of(tree)
    base = np.zeros(len(used)) if means is None else np.asarray(means, float)[used]
    return FittedExpression(code, values, base, fill, n_features, text(tree))


wild = st.floats(allow_nan=False, allow_infinity=False, width=64)
leaves = st.one_of(
    st.integers(0, 2).map(lambda j: ("x", j)), st.floats(-9, 9).map(lambda c: ("c", c))
)
formulas = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.tuples(st.sampled_from(UNARY), part), st.tuples(st.sampled_from(BINARY), part, part)
    ),
    max_leaves=15,
)
few_rows = st.lists(st.tuples(wild, wild, wild), min_size=1, max_size=4)


@given(formulas, few_rows)
def test_the_compiled_evaluator_is_its_recursive_twin(tree, rows):
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


# --- contributions ---------------------------------------------------------------------------


@given(formulas, st.lists(st.floats(-3, 3), min_size=6, max_size=6))
def test_contributions_are_shapley_values_and_sum_to_the_score(tree, numbers):
    row, means = np.array(numbers[:3]), np.array(numbers[3:])
    model = fitted(tree, means=means)
    (found,) = model.contributions(row[None])
    expected = shapley(tree, row, means, columns_of(tree))
    scale = max(1.0, *map(abs, expected.values()), abs(value(tree, means)))
    assert abs(found.sum() - value(tree, row)) <= 1e-9 * scale
    for j in range(3):
        assert abs(found[j] - expected.get(j, 0.0)) <= 1e-9 * scale
    assert found[-1] == pytest.approx(value(tree, means))


def test_a_product_is_shared_equally_and_a_term_goes_to_its_feature():
    model = fitted(("-", ("*", X1, X2), X3))
    assert model.contributions(np.array([[2.0, 3.0, 5.0]])).tolist() == [[3.0, 3.0, -5.0, 0.0]]


# --- fitting ---------------------------------------------------------------------------------


def planted(queries=20, documents=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 5))
    utility = X[:, 0] * X[:, 1] - X[:, 2]
    y = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.9]))
    return RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents))


def test_it_finds_a_planted_formula():
    data, fresh = planted(), planted(seed=1)
    model = Expression(population=200, n_generations=25).fit(NDCG, data, callback=Onlooker())
    for part in (data, fresh):
        assert evaluate(part, model.scores(part.X), "ndcg")["ndcg"] == pytest.approx(1.0, abs=1e-3)
    assert columns_of(model.formula) == [0, 1, 2]


def test_the_loss_is_the_negative_measure_and_never_rises():
    data, callback = small_data(), Onlooker()
    model = QUICK.fit(NDCG, data, callback=callback)
    assert callback.values == sorted(callback.values, reverse=True)
    assert len(callback.values) == 5
    scores = model.scores(data.X)
    mean = evaluate(data, scores, "ndcg(ties=mean)@10")["ndcg(ties=mean)@10"]
    assert -callback.values[-1] == pytest.approx(mean, abs=1e-12)
    assert (callback.train_scores[-1] == scores).all()


def test_a_measure_that_falls_is_brought_down():
    data, callback = small_data(), Onlooker()
    model = QUICK.fit(metric("pair_error"), data, callback=callback)
    assert callback.values == sorted(callback.values, reverse=True)
    found = evaluate(data, model.scores(data.X), "pair_error")["pair_error"]
    assert found == pytest.approx(callback.values[-1])
    assert found < 0.35


def test_file_order_never_flatters_a_formula():
    """Rows come best first: a constant would score 1 if ties kept the order of the file."""
    data = small_data()
    best_first = np.lexsort((-data.y, data.query_of_row()))
    sorted_data = replace(data, X=data.X[best_first], y=data.y[best_first])
    ours, theirs = (QUICK.fit(NDCG, one, callback=Onlooker()) for one in (data, sorted_data))
    assert ours.written == theirs.written
    assert columns_of(ours.formula)


def test_the_watch_chooses_the_generation():
    data, valid = small_data(), small_data(seed=1)
    early = QUICK.fit(NDCG, data, callback=Onlooker(valid, keep=2))
    stopped = QUICK.fit(NDCG, data, callback=Onlooker(valid, stop_at=2))
    assert early.written == stopped.written
    callback = Onlooker(valid)
    last = QUICK.fit(NDCG, data, callback=callback)
    assert (callback.valid_scores[-1] == last.scores(valid.X)).all()


def test_it_goes_on_from_a_formula():
    data = small_data()
    first = QUICK.fit(NDCG, data, callback=Onlooker())
    callback = Onlooker()
    replace(QUICK, n_generations=1).fit(NDCG, data, callback=callback, start=first, random_state=5)
    value = evaluate(data, first.scores(data.X), "ndcg(ties=mean)@10")["ndcg(ties=mean)@10"]
    assert -callback.values[0] >= value - 1e-12


def test_ctrl_c_keeps_the_best_formula_so_far():
    class Impatient(Onlooker):
        def on_iteration(self, t, *rest):
            super().on_iteration(t, *rest)
            if t == 2:
                raise KeyboardInterrupt
            return False

    callback = Impatient()
    model = QUICK.fit(NDCG, small_data(), callback=callback)
    assert callback.interrupted
    assert (model.scores(small_data().X) == callback.train_scores[1]).all()


def test_query_weights_count_as_in_the_measure():
    data = small_data()
    odd = (np.arange(data.n_queries) % 2).astype(float)
    callback, alone = Onlooker(), Onlooker()
    QUICK.fit(NDCG, replace(data, query_weight=odd), callback=callback)
    part = data.select(np.flatnonzero(odd))
    QUICK.fit(NDCG, part, callback=alone)
    assert callback.values[0] == pytest.approx(alone.values[0], abs=1e-12)


def test_missing_values_are_refused_or_filled():
    data = small_data()
    X = data.X.copy()
    X[3, 0] = X[7, 1] = np.nan
    gaps = replace(data, X=X)
    with pytest.raises(DataError, match=r"feature column 0 has missing values .* formula model"):
        QUICK.fit(NDCG, gaps, callback=Onlooker())
    model = replace(QUICK, missing="zero").fit(NDCG, gaps, callback=Onlooker())
    assert (model.scores(X) == model.scores(np.nan_to_num(X))).all()
    assert np.isfinite(model.contributions(X)).all()


def test_without_a_query_that_counts_it_still_answers():
    data = replace(small_data(), y=np.zeros(600))
    callback = Onlooker()
    QUICK.fit(metric("ndcg(empty=skip)@10"), data, callback=callback)
    assert callback.values == [0.0] * 5


def test_it_says_what_it_goes_by_and_reads_back():
    data = replace(small_data(), feature_names=tuple("abcdef"))
    model = QUICK.fit(NDCG, data, callback=Onlooker())
    assert model.written == text(model.formula, "abcdef")
    assert f"score = {model.written}" in model.describe("abcdef")
    again = Expression.restore(model.arrays(), model.texts(), 6)
    assert (again.scores(data.X) == model.scores(data.X)).all()
    assert (again.written, again.describe("abcdef")) == (model.written, model.describe("abcdef"))


def test_a_formula_of_features_that_are_not_there_is_refused():
    model = fitted(("+", X1, X3))
    with pytest.raises(DataError, match="does not match its features"):
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
        ({"max_features": 17}, "max_features must be at most 16, not 17"),
        ({"elites": 500}, "elites must be at most population"),
        ({"missing": "median"}, "missing must be 'mean', 'zero' or None"),
    ],
)
def test_impossible_parameters_are_reported(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        Expression(**parameters).fit(NDCG, small_data(), callback=Onlooker())


# --- evolution -------------------------------------------------------------------------------
# Evolution on candidates whose fitness is known: bit strings as whole numbers.


BITS = 24


class Bits:
    """Candidates are numbers of 24 bits; each 1 is worth as much, and size is 1 for all."""

    def first(self, number, rng):
        return int(rng.integers(1 << BITS))

    def cross(self, a, b, rng):
        mask = int(rng.integers(1 << BITS))
        return a & mask | b & ~mask

    def mutate(self, a, rng):
        return a ^ 1 << int(rng.integers(BITS))

    def size(self, a):
        return 1


def ones(candidates):
    return np.array([one.bit_count() / BITS for one in candidates])


def history(fitness=ones, species=None, **parameters):
    seen = []
    options = {name: parameters.pop(name) for name in ("start", "seed") if name in parameters}
    Evolve(**parameters).run(
        species or Bits(), fitness, lambda *args: seen.append(args) or False, **options
    )
    return seen


def test_it_finds_the_best_candidate():
    *_, (_, best, value) = history(population=60, n_generations=30)
    assert (best, value) == ((1 << BITS) - 1, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_fitness_never_falls(seed):
    values = [value for _, _, value in history(population=20, n_generations=15, seed=seed)]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_the_seed_decides():
    assert history(seed=1, population=20) == history(seed=1, population=20)
    assert history(seed=1, population=20) != history(seed=2, population=20)


def test_candidates_of_a_generation_differ_and_number_as_asked():
    met = []

    def fitness(candidates):
        met.append(list(candidates))
        return ones(candidates)

    history(fitness, population=30, n_generations=8)
    assert [len(set(some)) for some in met] == [30] * 8


def test_where_there_are_fewer_candidates_than_places_some_come_twice():
    class Two(Bits):
        def first(self, number, rng):
            return int(rng.integers(2))

        def mutate(self, a, rng):
            return a

        cross = mutate_both = lambda self, a, b, rng: a

    seen = history(species=Two(), population=10, n_generations=3)
    assert [best for _, best, _ in seen] == [1, 1, 1]


def test_of_equals_the_smaller_is_best():
    class Sized(Bits):
        def size(self, a):
            return a

    def alike(candidates):
        return np.zeros(len(candidates))

    bests = [best for _, best, _ in history(alike, Sized(), population=40, n_generations=10)]
    assert bests == sorted(bests, reverse=True)


def test_it_begins_with_what_it_is_given():
    start = [(1 << BITS) - 1]
    assert history(start=start, population=5, n_generations=1)[0][1] == start[0]


def test_the_watcher_may_end_the_run():
    seen = []
    Evolve(population=5).run(Bits(), ones, lambda t, *_: seen.append(t) or t == 3)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"population": 0}, "population must be 1 or more, not 0"),
        ({"n_generations": 0}, "n_generations must be 1 or more"),
        ({"population": 3, "elites": 4}, "elites must be at most population, 3"),
        ({"crossover": 1.5}, "crossover must be a share from 0 to 1, not 1.5"),
        ({"parsimony": -1.0}, "parsimony must be 0 or more"),
    ],
)
def test_impossible_parameters_are_reported_when_the_run_begins(parameters, sentence):
    evolve = Evolve(**parameters)
    with pytest.raises(UsageError, match=sentence):
        evolve.run(Bits(), ones, lambda *_: True)

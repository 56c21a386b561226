"""What every ranker promises as a scikit-learn estimator; the registry decides who is tested."""

import ast
import inspect
import pickle
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from small_data import small_data

import rankwright as rw
from rankwright import registry
from rankwright.core.parameters import params_of, same
from rankwright.core.types import Traits
from rankwright.errors import IncompatibleError, UsageError
from rankwright.rankers.base import Ranker, ranker

RANKERS = registry.all_of("rankers")
DATA = small_data(queries=12, documents=10)
QUICK = {"n_estimators": 3}
each_ranker = pytest.mark.parametrize("name", RANKERS)
each_of_parts = pytest.mark.parametrize("name", [name for name in RANKERS if name != "blend"])
COMMON = ("metric", "convention", "random_state", "n_jobs", "verbose")


def signature(cls):
    parameters = inspect.signature(cls.__init__).parameters
    return {name: parameter for name, parameter in parameters.items() if name != "self"}


def documented(cls):
    """The default that the docstring gives for each parameter, by name, in its order."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?:\n\n\w[\w ]*\n-+\n|\Z)", inspect.getdoc(cls), re.DOTALL | re.M
    )
    heads = re.findall(r"^(\w+) : (.+)\n((?: +.*\n?)+)", section[1], re.M)
    found = {}
    for name, kind, text in heads:
        stated = re.fullmatch(r"(.+), default (.+)", kind)
        assert stated, f"{name} has no default: {kind}"
        assert text.strip().endswith("."), f"{name}: {text}"
        found[name] = ast.literal_eval(stated[2])
    return found


# --- signatures and documentation ------------------------------------------------------------


@each_ranker
def test_a_ranker_has_at_most_22_keyword_parameters_with_defaults(name):
    cls = RANKERS[name]
    parameters = signature(cls)
    assert len(parameters) <= 22
    assert "__init__" in vars(cls)
    assert not {p.VAR_KEYWORD for p in parameters.values()} & {p.kind for p in parameters.values()}
    assert not {p.VAR_POSITIONAL for p in parameters.values()} & {
        p.kind for p in parameters.values()
    }
    assert all(p.default is not p.empty for p in parameters.values())
    assert all(p.annotation is not p.empty for p in parameters.values())
    assert set(COMMON) <= set(parameters)


@each_ranker
def test_every_parameter_is_documented_with_its_default(name):
    cls = RANKERS[name]
    found, parameters = documented(cls), signature(cls)
    assert list(found) == list(parameters)
    for key, parameter in parameters.items():
        assert same(found[key], parameter.default), key


@each_ranker
def test_every_parameter_goes_to_a_part_or_is_the_rankers_own(name):
    """Or the number that somebody sets would go nowhere."""
    cls = RANKERS[name]
    own = {*COMMON, "early_stopping_rounds", "loss", "model", "solver", "select_metric"}
    own |= {"levels", "variant"}  # of recommenders, and of domination
    own |= {"members", "weights", "folds", "shrinkage"}  # of a blend
    for kind, part in (("losses", cls.loss_class), ("models", cls.model_class)):
        if part is not None:
            own |= {field.name for field in fields(registry.resolve(kind, part))}
    assert set(signature(cls)) <= own


@each_ranker
def test_the_default_parts_have_what_the_ranker_says(name):
    """The defaults that are read are those that are used."""
    made = ranker(name)
    model = params_of(made.make_model())
    loss = params_of(made.make_loss()) if made.has_loss else {}
    for key, value in made.get_params(deep=False).items():
        if key in ("loss", "model", "solver", "metric", "random_state"):
            continue
        for part in (loss, model):
            if key in part and not (name == "domination" and key in ("margin", "tiers")):
                assert same(part[key], value), key


# --- parameters as scikit-learn has them -----------------------------------------------------


@each_ranker
def test_a_clone_and_a_round_trip_of_parameters_are_equal(name):
    made = ranker(name)
    parameters = made.get_params(deep=False)
    assert clone(made).get_params(deep=False) == parameters
    again = type(made)(**parameters)
    assert all(again.get_params(deep=False)[key] is value for key, value in parameters.items())
    assert ranker(name).set_params(**parameters).get_params() == made.get_params()
    deep = {key: value for key, value in made.get_params().items() if key not in parameters}
    assert params_of(clone(made).set_params(**deep)._part_of("model")) == params_of(
        made._part_of("model")
    )


@each_of_parts
def test_deep_parameters_are_those_of_the_parts(name):
    made = ranker(name)
    deep = made.get_params()
    for key, value in params_of(made._part_of("model")).items():
        assert same(deep[f"model__{key}"], value)
    if "loss" in deep:
        for key, value in params_of(made._part_of("loss")).items():
            assert same(deep[f"loss__{key}"], value)


@each_of_parts
def test_nested_parameters_never_change_the_callers_object(name):
    cls = RANKERS[name]
    model = registry.resolve("models", cls.model_class or "linear")()
    made, shared = cls(model=model), cls(model=model)
    for field in fields(model):
        before = getattr(model, field.name)
        made.set_params(**{f"model__{field.name}": "something else"})
        assert getattr(model, field.name) is before
        assert getattr(made.model, field.name) == "something else"
    assert shared.model is model


@each_of_parts
def test_a_field_of_the_default_model_can_be_set_whether_the_ranker_has_it_or_not(name):
    cls = RANKERS[name]
    for field in fields(registry.resolve("models", cls.model_class or "linear")):
        value = object()
        made = cls().set_params(**{f"model__{field.name}": value})
        assert getattr(made._part_of("model"), field.name) is value
        assert made.get_params()[f"model__{field.name}"] is value
        if made.model is not None:  # nothing stands in two places
            made._refuse_parameters_of_default_model()


def test_what_the_ranker_had_set_goes_with_the_model_that_takes_its_place():
    made = rw.GBDT(num_leaves=5, n_estimators=7).set_params(model__max_bins=63)
    assert made.model == rw.models.Trees(num_leaves=5, n_estimators=7, max_bins=63)
    assert made.make_model() == made.model
    assert (made.num_leaves, made.n_estimators) == ("auto", 100)


@each_ranker
def test_the_representation_shows_what_differs_and_nothing_else(name):
    cls = RANKERS[name]
    assert repr(cls()) == f"{cls.__name__}()"
    assert repr(cls(metric="map", n_jobs=2)) == f"{cls.__name__}(metric='map', n_jobs=2)"


def test_the_representation_of_a_part_shows_what_differs_too():
    made = rw.Ranker(loss=rw.losses.ListNet(k=3), model=rw.models.Trees(num_leaves=7))
    assert repr(made) == "Ranker(loss=ListNet(k=3), model=Trees(num_leaves=7))"


@each_ranker
def test_an_unfitted_estimator_comes_back_from_a_pickle(name):
    made = ranker(name, n_jobs=2)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301
    assert type(again) is type(made)
    assert again.get_params() == made.get_params()


@pytest.mark.parametrize("kind", ["losses", "models", "solvers"])
def test_parts_store_what_they_are_given_and_copy(kind):
    for name, cls in registry.all_of(kind).items():
        odd = {field.name: object() for field in fields(cls)}
        made = cls(**odd)  # constructors check nothing
        assert made.get_params() == odd, name
        assert all(made.get_params()[key] is value for key, value in odd.items())
        usual = cls()
        assert clone(usual, safe=False) == usual
        assert pickle.loads(pickle.dumps(usual)) == usual  # noqa: S301
        assert repr(usual) == f"{cls.__name__}()"


# --- names of other libraries, and what does not belong together -----------------------------

ELSEWHERE = [
    ("lambdamart", "eta", "learning_rate"),
    ("lambdamart", "n_trees", "n_estimators"),
    ("lambdamart", "num_boost_round", "n_estimators"),
    ("lambdamart", "max_leaves", "num_leaves"),
    ("lambdamart", "min_data_in_leaf", "min_child_samples"),
    ("lambdamart", "feature_fraction", "colsample_bytree"),
    ("lambdamart", "lambda_l2", "reg_lambda"),
    ("lambdamart", "l2", "reg_lambda"),
    ("lambdamart", "seed", "random_state"),
    ("lambdamart", "nthread", "n_jobs"),
    ("lambdamart", "eval_metric", "metric"),
    ("random_forest", "max_bin", "max_bins"),
    ("random_forest", "max_features", "colsample_bytree"),
    ("ranksvm", "C", "l2"),
    ("ranksvm", "reg_lambda", "l2"),
    ("ranksvm", "max_iterations", "max_iter"),
    ("ranksvm", "tolerance", "tol"),
    ("ranknet", "hidden", "hidden_layer_sizes"),
    ("ranknet", "lr", "learning_rate"),
    ("ranknet", "max_epochs", "epochs"),
    ("ranker", "objective", "loss"),
]


@pytest.mark.parametrize(("name", "theirs", "ours"), ELSEWHERE)
def test_a_name_of_another_library_is_refused_and_ours_is_named(name, theirs, ours):
    sentence = rf"has no parameter '{theirs}'; it is called {ours} here\."
    with pytest.raises(UsageError, match=sentence):
        RANKERS[name](**{theirs: 1})
    with pytest.raises(UsageError, match=sentence):
        ranker(name, **{theirs: 1})
    with pytest.raises(UsageError, match=sentence):
        ranker(name).set_params(**{theirs: 1})


def test_a_name_of_another_library_is_refused_in_a_part_too():
    with pytest.raises(UsageError, match="Trees has no parameter 'max_bin'; it is called max_bins"):
        ranker("lambdamart", model__max_bin=63)
    with pytest.raises(UsageError, match="has no parameter 'solvr'; did you mean solver"):
        ranker("ranksvm", solvr="tron")


def other_value(value):
    return "other" if not isinstance(value, str) else value + "s"


@each_of_parts
def test_a_parameter_of_the_default_model_beside_another_model_is_refused(name):
    cls = RANKERS[name]
    if cls.model_class is None:
        return  # `Ranker` has none
    other = rw.models.Linear() if cls.model_class != "linear" else rw.models.Trees()
    for key in sorted(cls()._model_parameters()):
        made = cls(model=other, **{key: other_value(signature(cls)[key].default)})
        sentence = f"{key} is a parameter of {cls.__name__}'s default model '{cls.model_class}'"
        with pytest.raises(UsageError, match=sentence):
            made.make_model()
    assert cls(model=other).make_model() is other


@each_ranker
def test_max_iter_and_tol_beside_a_solver_object_are_refused(name):
    if not {"solver", "max_iter", "tol"} <= set(signature(RANKERS[name])):
        return
    for limit, value in (("max_iter", 7), ("tol", 1e-4)):
        made = ranker(name, solver=rw.solvers.LBFGS(), **{limit: value})
        if made.model_name == "factorization":
            made.set_params(loss="squared") if "loss" in made.get_params() else None
        with pytest.raises(UsageError, match=rf"{limit} .*to the solver object.*LBFGS\({limit}="):
            made.fit(DATA)


@pytest.mark.parametrize("model", ["trees", "network", "forest", "additive"])
def test_models_that_take_no_solver_refuse_one(model):
    for solver in ("lbfgs", rw.solvers.TRON()):
        with pytest.raises(UsageError, match=f"model '{model}' takes no solver; leave solver out"):
            rw.Ranker(loss="ranknet", model=model, solver=solver).fit(DATA)
    with pytest.raises(UsageError, match="model 'trees' takes no solver"):
        rw.RankSVM(model="trees", solver="lbfgs").fit(DATA)


# --- a loss of the caller's ------------------------------------------------------------------


class OwnLoss:
    """Squared error to the grades, with no more than every loss must have."""

    traits = Traits(convex=True, shift_invariant=False)

    def bind(self, data, *, n_jobs=None):
        return OwnBound(data)


class OwnBound:
    def __init__(self, data):
        self.y = data.y

    def value(self, s):
        return 0.5 * float(((s - self.y) ** 2).sum())

    def grad(self, s, out):
        out[:] = s - self.y
        return self.value(s)


@pytest.mark.parametrize("model", ["trees", "forest", "linear", "kernel", "additive"])
def test_a_loss_without_gradients_of_single_queries_works_with_what_needs_none(model):
    quick = {"trees": QUICK, "forest": {"n_bags": 3}, "additive": {"n_rounds": 5}}.get(model, {})
    made = rw.Ranker(loss=OwnLoss(), model=registry.resolve("models", model)(**quick)).fit(DATA)
    assert made.score(DATA) > 0.6


@pytest.mark.parametrize(
    ("model", "solver", "sentence"),
    [
        ("network", None, r"network needs gradients of single queries; loss 'OwnLoss' has none"),
        ("linear", "sgd", r"sgd needs gradients of single queries; loss 'OwnLoss' has none"),
        ("linear", "online", r"online needs gradients of single queries; loss 'OwnLoss' has none"),
        ("linear", "tron", r"tron needs a Hessian-vector product; loss 'OwnLoss' has none"),
        ("linear", "alternating", r"alternating needs a loss that is a minimum over targets"),
        ("linear", "coordinate", r"coordinate needs steps along single features"),
    ],
)
def test_a_loss_that_lacks_something_is_refused_before_any_work(
    model, solver, sentence, monkeypatch
):
    monkeypatch.setattr(OwnLoss, "bind", lambda *_, **__: pytest.fail("work began"))
    with pytest.raises(IncompatibleError, match=sentence):
        rw.Ranker(loss=OwnLoss(), model=model, solver=solver).fit(DATA)


def test_mr_begins_with_the_grades_only_where_weights_are_solved_for():
    assert rw.MR(C_r=0.0).fit(DATA).score(DATA) > 0.6
    rw.MR(C_r=0.0, model=rw.models.Trees(n_estimators=2)).fit(DATA)


def test_what_is_no_loss_model_or_solver_is_reported():
    with pytest.raises(
        UsageError, match=r"is not a loss: .*losses.from_function makes a loss of a"
    ):
        rw.Ranker(loss=lambda scores, grades: (0.0, scores)).fit(DATA)
    with pytest.raises(UsageError, match=r"ListNet is a class; pass an object: ListNet\(\)"):
        rw.Ranker(loss=rw.losses.ListNet).fit(DATA)
    with pytest.raises(UsageError, match="is not a model: it has no rounds"):
        rw.Ranker(model=3).fit(DATA)
    with pytest.raises(UsageError, match="does not solve for the weights of a linear model"):
        rw.Ranker(solver=object()).fit(DATA)


# --- searches --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (rw.LambdaMART(n_estimators=3), {"model__num_leaves": [3, 7]}),
        (rw.LambdaMART(n_estimators=3), {"num_leaves": [3, 7], "truncation": [5, None]}),
        (rw.LambdaMART(model=rw.models.Trees(n_estimators=3)), {"model__num_leaves": [3, 7]}),
        (rw.Ranker(loss=rw.losses.ListNet(samples=4), solver="sgd"), {"loss__k": [1, 2]}),
        (rw.Ranker(loss="listnet"), {"loss__target": ["softmax", "gain"], "model__l2": [0.1]}),
        (rw.Ranker(), {"loss": ["ranknet", rw.losses.ListNet()], "model": ["linear", "kernel"]}),
        (rw.Ranker(solver=rw.solvers.LBFGS()), {"solver__tol": [1e-3, 1e-6]}),
    ],
)
def test_grid_search_goes_over_parameters_of_parts(estimator, grid):
    qid = DATA.query_of_row()
    before = estimator.get_params()
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(estimator, grid, cv=rw.QueryFolds(3), error_score="raise")
        search.fit(DATA.X, DATA.y, qid=qid)
    values = search.cv_results_["mean_test_score"]
    assert len(values) == np.prod([len(options) for options in grid.values()])
    assert np.isfinite(values).all()
    assert estimator.get_params() == before
    best = search.best_estimator_.get_params()
    assert all(same(best[key], value) for key, value in search.best_params_.items())


# --- random_state and n_jobs -----------------------------------------------------------------

SAMPLES = {"n_estimators": 3, "min_child_samples": 2, "subsample": 0.5}


def scores_with(random_state):
    return rw.GBDT(**SAMPLES, random_state=random_state).fit(DATA).predict(DATA)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_random_state_takes_an_int_and_generators(kind):
    assert (scores_with(3) == scores_with(np.int64(3))).all()
    assert (scores_with(3) != scores_with(4)).any()
    assert (scores_with(kind(3)) == scores_with(kind(3))).all()
    assert (scores_with(kind(3)) != scores_with(kind(4))).any()
    state = kind(3)
    assert (scores_with(state) != scores_with(state)).any()  # it has gone on


def test_random_state_none_is_another_one_each_time():
    assert (scores_with(None) != scores_with(None)).any()
    with pytest.raises(UsageError, match="random_state must be a whole number, a RandomState"):
        scores_with("three")


@pytest.mark.parametrize("name", ["gbdt", "ranksvm", "adarank"])
def test_n_jobs_of_minus_1_is_all_cpus_and_changes_nothing(name):
    one, every, none = (ranker(name, n_jobs=n).fit(DATA).predict(DATA) for n in (1, -1, None))
    assert (one == every).all()
    assert (one == none).all()
    with pytest.raises(UsageError, match="threads must be 1 or more, or -1 for all CPUs, not 0"):
        ranker(name, n_jobs=0).fit(DATA)


def test_weights_reach_a_loss_of_the_callers_through_the_data():
    seen = []

    class Looks(OwnLoss):
        def bind(self, data, *, n_jobs=None):
            seen.append(data.sample_weight)
            return super().bind(data)

    weight = np.linspace(1.0, 2.0, DATA.n_documents)
    Ranker(loss=Looks()).fit(replace(DATA, sample_weight=weight))
    assert all(np.array_equal(found, weight) for found in seen)
    assert seen

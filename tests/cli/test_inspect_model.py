"""`rankwright inspect MODEL` shows a model's feature importance."""

import numpy as np
import pandas as pd
import pytest
from command import run, run_json, sentence
from small_data import small_data

import rankwright as rw
from rankwright.data import save
from rankwright.models.additive import describe_rules
from rankwright.rankers.base import ranker

DATA = small_data()
NAMES = ["bm25", "visits", "age", "length", "price", "stock"]


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    frame = pd.DataFrame(DATA.X, columns=NAMES)
    made = ranker("ranksvm", l2=0.1).fit(frame, DATA.y, qid=DATA.query_of_row())
    made.save(tmp_path_factory.mktemp("m") / "linear.rw")
    return made, tmp_path_factory.getbasetemp() / "m0" / "linear.rw"


def test_weights_are_listed_by_name_the_largest_first(linear):
    made, path = linear
    found = run_json("inspect", path)
    assert (found["ranker"], found["model"], found["parameters"]) == (
        "ranksvm",
        "linear",
        {"l2": 0.1},
    )
    weights = found["goes_by"]["values"]
    sizes = [abs(weight) for weight in weights.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert weights == {name: w for name, w in made.weights_.items() if w != 0.0}
    assert {NAMES[i]: made.coef_[i] for i in range(6)} == made.weights_
    text = run("inspect", path, alone=True).stdout
    assert "ranksvm, model linear" in text
    assert "weights, the largest first" in text
    assert text.index(next(iter(weights))) < text.index(list(weights)[-1])


def test_trees_list_their_features_by_gain_and_what_chose_them(tmp_path):
    made = ranker("gbdt", n_estimators=5).fit(DATA, eval_set=small_data(seed=1))
    made.save(tmp_path / "trees.rw")
    found = run_json("inspect", tmp_path / "trees.rw")
    best_value = made.curve_["valid ndcg@10"][made.best_iteration_ - 1]
    assert found["chosen"]["valid ndcg@10"] == best_value
    assert found["goes_by"]["what"].startswith(f"{made.best_iteration_} trees")
    best = str(np.argmax(made.model_.importance("gain")) + 1)
    assert next(iter(found["goes_by"]["values"])) == best


def test_rules_are_listed_as_text_by_name_the_heaviest_first(tmp_path):
    frame = pd.DataFrame(DATA.X, columns=NAMES)
    made = ranker("rankboost", n_rounds=40).fit(frame, DATA.y, qid=DATA.query_of_row())
    made.save(tmp_path / "rules.rw")
    what, *lines = describe_rules(made.model_, NAMES)
    assert any("bm25 > " in line for line in lines)
    by = run_json("inspect", tmp_path / "rules.rw")["goes_by"]
    assert (by["what"], by["lines"]) == (what, lines)
    text = run("inspect", tmp_path / "rules.rw").stdout
    assert what in text
    assert lines[0].strip() in text
    assert f"and {len(lines) - 20} more; --json shows all" in text


def squared(scores, grades):
    return 0.5 * float(((scores - grades) ** 2).sum()), scores - grades


def test_a_model_trained_with_functions_of_the_caller_names_them(tmp_path):
    own = rw.losses.from_function(squared, name="my squares")
    for made, name in (
        (rw.Ranker(loss=own), "loss"),
        (rw.Ranker(loss="listnet", metric=lambda grades, scores: 1.0), "metric"),
        (rw.Blend(members=(rw.Ranker(loss=own), "memr"), folds=2), "members"),
    ):
        made.fit(DATA).save(tmp_path / "own.rw")
        parameters = run_json("inspect", tmp_path / "own.rw")["parameters"]
        assert "not in the file" in str(parameters[name])
        assert "not in the file" in run("inspect", tmp_path / "own.rw").stdout


def test_a_classifier_lists_the_weights_of_each_grade(tmp_path):
    frame = pd.DataFrame(DATA.X, columns=NAMES)
    made = ranker("classification").fit(frame, DATA.y, qid=DATA.query_of_row())
    made.save(tmp_path / "classes.rw")
    by = run_json("inspect", tmp_path / "classes.rw")["goes_by"]
    assert by["what"].startswith("weights for the grades 0, 1, ")
    spread = np.ptp(made.coef_, axis=0)
    assert [line.split()[-1] for line in by["lines"]] == [NAMES[f] for f in np.argsort(-spread)]
    numbers = [float(text) for text in by["lines"][0].split()[:-1]]
    assert numbers == pytest.approx(made.coef_[:, np.argmax(spread)], rel=1e-3)
    with pytest.raises(AttributeError, match="a weight for each grade and feature; see coef_"):
        made.weights_  # noqa: B018


def test_joint_convexity_is_printed_for_a_model_and_its_training_data(tmp_path):
    model, text = tmp_path / "m.rw", tmp_path / "train.txt"
    save(small_data(queries=3, documents=5, features=2), text)
    data = rw.load(text)
    memr = rw.MEMR(divergence="kl", l2=0.5).fit(data)
    memr.save(model)
    report = rw.joint_convexity(memr, data)
    asked = ("inspect", model, "--joint-convexity", "--train", text)
    assert str(report) in run(*asked).stdout
    found = run_json(*asked)["joint_convexity"]
    assert found["needed"] == pytest.approx(report.needed)
    assert (found["l2"], found["holds"]) == (0.5, False)
    for wrong in ([model, "--joint-convexity"], [model, "--train", text]):
        assert "--joint-convexity is tested on the training data" in sentence("inspect", *wrong)
    assert "give one model file" in sentence("inspect", text, *asked[2:])

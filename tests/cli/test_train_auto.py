import pytest
from command import run, run_json, sentence
from small_data import small_data

from rankwright.data.files import save
from rankwright.persist.model_file import load_model
from rankwright.rankers.base import Ranker


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("train", "valid", "test")):
        save(small_data(queries=12, seed=seed), folder / f"{name}.txt")
    return folder


def parts(files):
    return [x for name in ("train", "valid", "test") for x in (f"--{name}", files / f"{name}.txt")]


def test_auto_chooses_saves_and_says_why(files, tmp_path):
    model = tmp_path / "m.rw"
    quick = ("--set", "time_limit=4")
    done = run("train", "auto", *parts(files), *quick, "--save", model, alone=True)
    assert "12 queries of about 20 documents, 6 features, 3 grades" in done.stderr
    assert "ndcg@10 on 5 folds of 24 queries" in done.stderr
    kept = load_model(model)
    assert f"{kept.name} on {kept.model_name}: rounds" in done.stdout
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert "test" in rows
    assert "valid" not in rows  # it was fitted to


def test_json_has_the_reason_and_the_candidates(files):
    single = ("--set", "ensemble=false", "--set", "time_limit=4")
    found = run_json("train", "auto", *parts(files), *single)
    values = {each["ranker"]: each["value"] for each in found["candidates"] if each["value"]}
    assert "memr" in values  # the first that is tried
    assert all(each["low"] <= each["value"] <= each["high"] for each in found["candidates"]
               if each["value"] is not None)  # fmt: skip
    assert found["ranker"] == max(values, key=values.get)
    assert found["ranker"] in found["why"]
    assert found["valid"] == {}
    assert found["low"] <= found["value"] <= found["high"]
    assert found["seconds"] < 30


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--set", "n_estimators=5"),
            "auto tries rankers with their default parameters and takes no --set but time_limit",
        ),
        (("--set", "time_limit=0"), "time_limit must be above 0"),
        (("--set", "ensemble=some"), "ensemble must be true or false"),
        (("--model", "trees"), "takes no --model: leave that out, or name a ranker"),
        (("--metric", "nccg@10"), "there is no metric 'nccg'"),
    ],
)
def test_what_auto_does_not_take_is_reported_before_anything_is_read(options, expected):
    assert expected in sentence("train", "auto", "--train", "not-there.txt", *options)


def test_ctrl_c_saves_the_best_so_far(files, tmp_path, monkeypatch):
    fit, begun = Ranker.fit, []

    def interrupted(self, *args, **more):
        begun.append(self.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return fit(self, *args, **more)

    monkeypatch.setattr(Ranker, "fit", interrupted)
    done = run(
        "train", "auto", "--train", files / "train.txt", "--save", tmp_path / "m.rw", code=130
    )
    assert "interrupted: this is the best model so far" in done.stderr
    assert load_model(tmp_path / "m.rw").name == begun[0]


def test_a_choice_without_evaluation_is_named_in_the_result(tmp_path):
    save(small_data(queries=3), tmp_path / "few.txt")
    done = run("-q", "train", "auto", "--train", tmp_path / "few.txt")
    assert "memr was chosen without evaluation" in done.stdout
    assert run_json("train", "auto", "--train", tmp_path / "few.txt")["evaluated"] is False

"""Another package's parts: found by entry points, trained, saved, compared; absent, not missed."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command import run_json, sentence
from small_data import small_data

import rankwright as rw
from rankwright.cli.list import _entries
from rankwright.data import save
from rankwright.errors import RankwrightError, UsageError
from rankwright.registry import KINDS

ROOT = Path(__file__).parents[2]


SAMPLE = ROOT / "tests" / "sample_plugin"


ADDED = {
    "losses": "sample_huber",
    "models": "sample_feature",
    "solvers": "sample_descent",
    "metrics": "sample_first",
    "formats": "sample_lines",
    "exports": "sample-weights",
    "rankers": "sample_ranker",
}


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The folder of an environment in which the sample plug-in is installed, without a network."""
    target = tmp_path_factory.mktemp("plugin")
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-compile", "--no-deps"]
    where = ["--no-build-isolation", "--target", str(target), str(SAMPLE)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *where],
        check=True,
        capture_output=True,
    )
    return target


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Files to train on and to choose by."""
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(["train", "valid"]):
        save(small_data(queries=12, features=5, seed=seed), folder / f"{name}.txt")
    return folder


def environment(*folders):
    path = os.pathsep.join(map(str, [*folders, ROOT, ROOT / "tests" / "cli"]))
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}


def python(script, *folders, code=0):
    lines = script.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    text = "\n".join(line[margin:] for line in lines)
    return _run(["-c", text], folders, code).stdout


SEVERAL = """
import json, sys
from command import run
*ahead, last = json.loads(sys.argv[1])
done = [*(run(*words) for words in ahead), run(*last, code=int(sys.argv[2]))]
print(json.dumps([(one.stdout, one.stderr) for one in done]))
"""


def rankwright(plugin, *commands, code=0):
    """Run commands in one process with the plug-in; the last ends with the exit status ``code``.

    Returns what each printed, and what it wrote to standard error.
    """
    words = json.dumps([[str(word) for word in command] for command in commands])
    return json.loads(_run(["-c", SEVERAL, words, str(code)], [plugin], 0).stdout)


def _run(words, folders, code):
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=environment(*folders),
        timeout=1800,  # a guard against hanging, not a test of speed
    )
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}{done.stdout}"
    return done


def test_every_kind_of_part_is_listed_with_its_package(installed):
    script = """
        import json
        from rankwright.cli.list import _entries
        from rankwright.registry import KINDS
        print(json.dumps({kind: _entries(kind) for kind in KINDS}))
    """
    there = json.loads(python(script, installed))
    here = json.loads(json.dumps({kind: _entries(kind) for kind in KINDS}))
    for kind, name in ADDED.items():
        assert there[kind].pop(name).endswith("[rankwright-sample]")
        assert name not in here[kind]
    broken = there["metrics"].pop("sample_broken")
    assert broken.startswith("broken: the metric 'sample_broken' of the package rankwright-sample")
    assert "ModuleNotFoundError: No module named 'rankwright_sample.not_there'" in broken
    misnamed = there["rankers"].pop("sample_misnamed")
    assert "its class must have name = 'sample_misnamed'" in misnamed
    assert there == here  # 'squared' is ours, whoever announces it


def test_list_and_train_on_the_command_line(installed, data, tmp_path):
    train, valid, model = data / "train.txt", data / "valid.txt", tmp_path / "m.rw"
    (listed, _), (trained, _), (shown, _), (_, reported) = rankwright(
        installed,
        ("list", "losses", "--json"),
        (
            *("train", "ranker", "--set", "loss=sample_huber", "--set", "loss.delta=0.5"),
            *("--model", "sample_feature", "--metric", "sample_first", "--train", train),
            *("--valid", valid, "--save", model, "--json"),
        ),
        ("inspect", model),
        ("train", "sample_rankr", "--train", train),
        code=2,
    )
    assert "sample_huber" in json.loads(listed)["losses"]
    record = json.loads(trained)
    assert record["model"] == "sample_feature"
    assert 0 < record["valid"]["sample_first"] <= 1
    assert "sample_feature" in shown
    assert "did you mean sample_ranker" in reported


def test_formats_and_exports_on_the_command_line(installed, data, tmp_path):
    lines, model, out = tmp_path / "train.samplelines", tmp_path / "m.rw", tmp_path / "out"
    rankwright(
        installed,
        ("convert", data / "train.txt", lines),
        ("train", "sample_ranker", "--train", lines, "--save", model),
        ("export", model, "--to", "sample-weights", "-o", out),
        ("verify", out),
    )
    lines_of_weights = (out / "weights.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines_of_weights[4:]] == ["feature_5", "intercept"]
    assert "unknown file extension '.samplelines'" in sentence("inspect", lines)


def test_compare_and_tune_on_the_command_line(installed, data, tmp_path):
    (compared, _), (tuned, _) = rankwright(
        installed,
        (
            *("compare", data / "train.txt", "--rankers"),
            "sample_ranker,ranker:loss=sample_huber:model=sample_feature,ranker:loss=sample_huber",
            *("--folds", 3, "--jobs", 1, "--cache", tmp_path / "cache", "--json"),
            *("--metrics", "sample_first,ndcg@5", "--select", "sample_first"),
        ),
        (
            *("tune", "sample_ranker", "--train", data / "train.txt"),
            *("--valid", data / "valid.txt", "--trials", 3, "--json"),
        ),
    )
    assert "sample_ranker" in compared
    assert json.loads(compared)["failures"] == {}
    assert set(json.loads(tuned)["parameters"]) == {"delta", "l2"}


def test_its_parts_keep_the_contract(installed):
    python(
        """
        import rankwright as rw
        rw.testing.check_loss("sample_huber")
        rw.testing.check_metric("sample_first")
        rw.testing.check_model("sample_feature")
        rw.testing.check_export("sample-weights")
        """,
        installed,
    )


def test_its_loss_trains_every_model_and_the_files_load_without_it(installed, data, tmp_path):
    """Saved with the plug-in, loaded without: the same scores, and a sentence when fitted."""
    script = f"""
        import numpy as np, rankwright as rw
        folder = {str(tmp_path)!r}
        data = rw.load({str(data / "train.txt")!r})
        network = rw.models.Network(hidden_layer_sizes=(4,), epochs=3)
        trees = rw.models.Trees(n_estimators=5, num_leaves=4)
        from rankwright_sample.losses import Huber
        made = dict(linear="linear", trees=trees, kernel="kernel", network=network)
        for name, model in made.items():
            ranker = rw.Ranker(loss=Huber(delta=0.5), model=model).fit(data)
            ranker.save(f"{{folder}}/{{name}}.rw")
            again = rw.load_model(f"{{folder}}/{{name}}.rw")
            assert again.loss == Huber(delta=0.5)
            assert (again.predict(data) == ranker.predict(data)).all()
            np.save(f"{{folder}}/{{name}}.npy", ranker.predict(data))
        by_name = rw.Ranker(loss="sample_huber", solver="sample_descent").fit(data)
        lbfgs = rw.Ranker(loss="sample_huber", solver=rw.solvers.LBFGS()).fit(data)
        assert np.corrcoef(by_name.predict(data), lbfgs.predict(data))[0, 1] > 0.99
        by_name.save(f"{{folder}}/by_name.rw")
        assert rw.load_model(f"{{folder}}/by_name.rw").loss == "sample_huber"
        np.save(f"{{folder}}/by_name.npy", by_name.predict(data))
        rw.ranker("sample_ranker", delta=2.0).fit(data).save(f"{{folder}}/ranker.rw")
        assert rw.load_model(f"{{folder}}/ranker.rw").delta == 2.0
        rw.Ranker(loss="ranknet", model="sample_feature").fit(data).save(f"{{folder}}/model.rw")
    """
    python(script, installed)
    rows = rw.load(data / "train.txt")
    of_absent_loss = "saved with the loss sample_huber of the package rankwright-sample"
    for name in ("linear", "trees", "kernel", "network", "by_name"):
        ranker = rw.load_model(tmp_path / f"{name}.rw")
        assert (ranker.predict(rows) == np.load(tmp_path / f"{name}.npy")).all()
        assert repr(ranker)
        assert ranker.get_params()
        parameters = run_json("inspect", tmp_path / f"{name}.rw")["parameters"]
        assert "sample_huber of the package rankwright-sample" in parameters["loss"]
        for _ in range(2):
            with pytest.raises(UsageError, match=of_absent_loss):
                ranker.fit(rows)
            ranker.save(tmp_path / "again.rw")  # and what is absent stays named
            ranker = rw.load_model(tmp_path / "again.rw")
        assert ranker.set_params(loss="ranknet", solver=None).fit(rows).predict(rows).any()
    for kind, name in (("ranker", "sample_ranker"), ("model", "sample_feature")):
        absent = f"contains the {kind} '{name}' of the package 'rankwright-sample', which"
        with pytest.raises(RankwrightError, match=absent):
            rw.load_model(tmp_path / f"{kind}.rw")


def test_a_module_that_a_file_names_is_never_imported(data, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("import pathlib\npathlib.Path('imported').write_text('')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows = rw.load(data / "train.txt")
    fitted = rw.Ranker(loss=rw.losses.Squared(), model="linear").fit(rows)
    for what in ("loss", "solver", "model", "ranker"):
        for name in ("evil:Part", "evil", "rankwright.losses.squared:Squared"):
            fitted.save("m.rw")
            forge("m.rw", what, name)
            loaded = False
            with pytest.raises(RankwrightError) as reported:
                ranker = rw.load_model("m.rw")
                loaded = ranker.predict(rows).shape == (rows.n_documents,)
                ranker.fit(rows)
            assert loaded == (what in ("loss", "solver"))
            said = str(reported.value)
            assert "this ranker was saved with the" in said or "there is no" in said
            assert "evil" not in sys.modules
            assert not Path("imported").exists()


def forge(path, what, name):
    """Let a model file name a part by a path, with a seal that fits."""
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    receipt = json.loads(parts["receipt.json"])
    if what in ("ranker", "model"):
        receipt[what] = name
    else:
        kind = {"loss": "losses", "solver": "solvers"}[what]
        receipt["parameters"][what] = {"part": {"kind": kind, "name": name, "params": {}}}
    parts["receipt.json"] = json.dumps(receipt).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in parts.items():
            archive.writestr(one, content)
        archive.comment = hashlib.sha256(parts["receipt.json"]).hexdigest().encode()

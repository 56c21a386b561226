"""Another package's parts: found by entry points, trained, saved, compared; absent, not missed."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_data import small_data

from rankwright.data import save

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
    path = os.pathsep.join(map(str, [*folders, ROOT]))
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}


def python(script, *folders, code=0):
    lines = script.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    text = "\n".join(line[margin:] for line in lines)
    return _run(["-c", text], folders, code).stdout


def rankwright(*words, plugin=None, code=0):
    folders = [] if plugin is None else [plugin]
    return _run(["-m", "rankwright", *map(str, words)], folders, code)


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
    there, here = (json.loads(python(script, *folder)) for folder in ([installed], []))
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
    listed = rankwright("list", "losses", "--json", plugin=installed).stdout
    assert "sample_huber" in json.loads(listed)["losses"]
    train, valid = data / "train.txt", data / "valid.txt"
    done = rankwright(
        *("train", "ranker", "--set", "loss=sample_huber", "--set", "loss.delta=0.5"),
        *("--model", "sample_feature", "--metric", "sample_first", "--train", train),
        *("--valid", valid, "--save", tmp_path / "m.rw", "--json"),
        plugin=installed,
    )
    record = json.loads(done.stdout)
    assert record["model"] == "sample_feature"
    assert 0 < record["valid"]["sample_first"] <= 1
    shown = rankwright("inspect", tmp_path / "m.rw", plugin=installed).stdout
    assert "sample_feature" in shown
    reported = rankwright(
        "train", "sample_rankr", "--train", train, plugin=installed, code=2
    ).stderr
    assert "did you mean sample_ranker" in reported


def test_formats_and_exports_on_the_command_line(installed, data, tmp_path):
    lines = tmp_path / "train.samplelines"
    rankwright("convert", data / "train.txt", lines, plugin=installed)
    rankwright(
        *("train", "sample_ranker", "--train", lines, "--save", tmp_path / "m.rw"),
        plugin=installed,
    )
    rankwright(
        *("export", tmp_path / "m.rw", "--to", "sample-weights", "-o", tmp_path / "out"),
        plugin=installed,
    )
    rankwright("verify", tmp_path / "out", plugin=installed)
    assert len((tmp_path / "out" / "weights.txt").read_text().splitlines()) == 5
    reported = rankwright("inspect", lines, code=2).stderr
    assert "unknown file extension '.samplelines'" in reported


def test_compare_and_tune_on_the_command_line(installed, data, tmp_path):
    found = rankwright(
        *("compare", data / "train.txt", "--rankers"),
        "sample_ranker,ranker:loss=sample_huber:model=sample_feature,ranker:loss=sample_huber",
        *("--folds", 3, "--jobs", 1, "--cache", tmp_path / "cache", "--json"),
        *("--metrics", "sample_first,ndcg@5", "--select", "sample_first"),
        plugin=installed,
    )
    assert "sample_ranker" in found.stdout
    assert json.loads(found.stdout)["failures"] == {}
    tuned = rankwright(
        *("tune", "sample_ranker", "--train", data / "train.txt", "--valid", data / "valid.txt"),
        *("--trials", 3, "--json"),
        plugin=installed,
    )
    assert set(json.loads(tuned.stdout)["parameters"]) == {"delta", "l2"}


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
    reported = python(f"""
        import numpy as np, rankwright as rw
        folder = {str(tmp_path)!r}
        data = rw.load({str(data / "train.txt")!r})
        for name in ("linear", "trees", "kernel", "network", "by_name"):
            ranker = rw.load_model(f"{{folder}}/{{name}}.rw")
            assert (ranker.predict(data) == np.load(f"{{folder}}/{{name}}.npy")).all()
            repr(ranker), ranker.get_params()
            for _ in range(2):
                try:
                    ranker.fit(data)
                except rw.errors.UsageError as error:
                    print(error)
                ranker.save(f"{{folder}}/again.rw")  # and what is absent stays named
                ranker = rw.load_model(f"{{folder}}/again.rw")
            assert ranker.set_params(loss="ranknet", solver=None).fit(data).predict(data).any()
        for name in ("ranker", "model"):
            try:
                rw.load_model(f"{{folder}}/{{name}}.rw")
            except rw.errors.RankwrightError as error:
                print(error)
    """).splitlines()
    assert len(reported) == 12
    for line in reported[:10]:
        assert "saved with the loss sample_huber of the package rankwright-sample" in line
    assert (
        "holds the ranker 'sample_ranker' of the package 'rankwright-sample', which" in reported[10]
    )
    assert (
        "holds the model 'sample_feature' of the package 'rankwright-sample', which" in reported[11]
    )


def test_a_module_that_a_file_names_is_never_imported(data, tmp_path):
    (tmp_path / "evil.py").write_text("import pathlib\npathlib.Path('imported').write_text('')\n")
    forgeries = [
        (what, name)
        for what in ("loss", "solver", "model", "ranker")
        for name in ("evil:Part", "evil", "rankwright.losses.squared:Squared")
    ]
    found = python(
        f"""
        import os, sys
        os.chdir({str(tmp_path)!r})
        sys.path.insert(0, {str(tmp_path)!r})
        import rankwright as rw
        data = rw.load({str(data / "train.txt")!r})
        fitted = rw.Ranker(loss=rw.losses.Squared(), model="linear").fit(data)
        exec({inspect.getsource(forge)!r})
        for what, name in {forgeries!r}:
            fitted.save("m.rw")
            forge("m.rw", what, name)
            loaded = False
            try:
                ranker = rw.load_model("m.rw")
                loaded = ranker.predict(data).shape == (data.n_documents,)
                ranker.fit(data)
            except rw.errors.RankwrightError as error:
                print(what, name, loaded, error)
            assert "evil" not in sys.modules and not os.path.exists("imported")
        """
    ).splitlines()
    assert len(found) == len(forgeries)
    for (what, name), line in zip(forgeries, found, strict=True):
        assert line.startswith(f"{what} {name} {what in ('loss', 'solver')} "), line
        assert "this ranker was saved with the" in line or "there is no" in line


def forge(path, what, name):
    """Let a model file name a part by a path, with a seal that fits."""
    import hashlib
    import json
    import zipfile

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

"""``--memory``: work on data larger than the room goes on within it, and the peak is reported."""

import sys
from functools import partial

import command
import numpy as np
import pytest

import rankwright.cli.train as verb
from rankwright.cli import main, options
from rankwright.data.files import convert, load, save, save_parts
from rankwright.data.synthetic_data import synthetic, synthetic_parts

MB = 1_000_000
UNBOUNDED = "90GB"

# Memory is that of a process, which has nothing of other tests in it.
run, run_json, sentence = (
    partial(each, alone=True) for each in (command.run, command.run_json, command.sentence)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stores of 600 and of 10 queries, 136 features."""
    folder = tmp_path_factory.mktemp("stores")
    for name, queries in (("large", 600), ("small", 10)):
        save_parts(synthetic_parts("mslr10k", queries=queries), folder / f"{name}.store")
    return folder


@pytest.fixture(scope="module")
def size(folder):
    """Bytes of the features of the large store: 39 million."""
    found = load(folder / "large.store").X.nbytes
    assert found > 35 * MB
    return found


def train(folder, name, ranker, *more, memory=UNBOUNDED):
    settings = ["--threads", "1", "--memory", memory, "--save", folder / f"{ranker}.model"]
    return run_json("train", ranker, "--train", folder / f"{name}.store", *settings, *more)


def peak(*arguments, **more):
    return train(*arguments, **more)["peak_anonymous_bytes"]


def compile_kernels(folder, *ranker):
    """Compiling takes memory of its own: what is measured comes after it."""
    train(folder, "small", *ranker)


def test_a_linear_model_and_its_use_copy_no_features(folder, size):
    compile_kernels(folder, "memr")
    code = peak(folder, "small", "memr")
    assert peak(folder, "large", "memr") - code < 0.8 * size
    large, model = folder / "large.store", folder / "memr.model"
    scored = run_json("evaluate", large, "--load", model, "--memory", "2GB")
    ranked = run_json("rank", model, large, "-o", folder / "run.txt", "--memory", "2GB")
    assert scored["peak_anonymous_bytes"] - code < 0.8 * size
    assert ranked["peak_anonymous_bytes"] - code < 0.8 * size
    lines = (folder / "run.txt").read_text().count("\n")
    assert lines == ranked["documents"]


def test_trees_that_take_more_without_a_bound_are_grown_within_one(folder):
    trees = ("lambdamart", "--set", "n_estimators=2")
    compile_kernels(folder, *trees)
    unbounded = peak(folder, "large", *trees)
    limit = round(0.9 * unbounded)
    assert peak(folder, "large", *trees, memory=f"{limit}B") <= 1.05 * limit


def test_what_cannot_fit_is_refused_with_a_sentence_and_nothing_is_saved(folder, tmp_path):
    large, saved = folder / "large.store", tmp_path / "m"
    kernel = ("ranksvm", "--model", "kernel", "--memory", "300MB")  # 290 MB for 500 landmarks
    reported = sentence("train", *kernel, "--train", large, "--save", saved)
    assert reported.startswith("ranksvm on kernel needs about ")
    assert "300 MB is allowed" in reported
    assert not saved.exists()


def test_a_bound_below_the_code_itself_ends_the_run_with_a_sentence(folder, tmp_path):
    small, saved = folder / "small.store", tmp_path / "m"
    reported = sentence("train", "memr", "--train", small, "--memory", "40MB", "--save", saved)
    assert "40 MB" in reported
    assert not saved.exists()


@pytest.mark.parametrize("memory", [(), ("--memory", UNBOUNDED)])
@pytest.mark.parametrize("cause", ["bound", "Ctrl-C"])
def test_a_run_that_is_ended_while_it_scores(memory, cause, folder, tmp_path, monkeypatch):
    # A finished model is kept, except where the bound that was asked for was passed.
    def interrupted(*_):
        if cause == "bound" and memory:
            gauges[0].passed = True
        raise KeyboardInterrupt

    def bound(*arguments):
        gauges.append(gauge := usual(*arguments))
        return gauge

    gauges, usual, saved = [], verb.bound_memory, tmp_path / "m.rw"
    monkeypatch.setattr(verb, "bound_memory", bound)
    monkeypatch.setattr(options, "metrics_of", interrupted)
    small = folder / "small.store"
    arguments = ["train", "memr", "--train", small, "--test", small, "--save", saved, *memory]
    monkeypatch.setattr(sys, "argv", ["rankwright", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main.run()
    kept = not memory or cause == "Ctrl-C"
    assert ended.value.code == (130 if kept else 2)
    assert saved.exists() == kept


def test_text_gives_the_model_that_its_store_gives(tmp_path):
    text, store = tmp_path / "t.txt.gz", tmp_path / "t.store"
    save(synthetic("mslr10k", queries=80), text)  # large enough to go through a store of its own
    convert(text, store)
    for name, path in (("a", text), ("b", store)):
        found = ["train", "memr", "--train", path, "--memory", "350MB", "--save", tmp_path / name]
        done = run(*found, "--set", "max_iter=3")
        assert "peak anonymous memory" in done.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_verbs_that_read_data_tell_their_peak(folder, tmp_path):
    small, model = folder / "small.store", tmp_path / "m.rw"
    bound = ("--memory", UNBOUNDED)
    few = ("--set", "pairs=query", "--trials", 1, "--save", model)
    tuned = run_json("tune", "ranksvm", "--train", small, "--valid", small, *few, *bound)
    asked = ("explain", model, small, "--query", load(small).qid[0])
    for reported in (tuned, run_json("inspect", small, *bound), run_json(*asked, *bound)):
        assert reported["peak_anonymous_bytes"] > 10 * MB


def test_made_up_data_are_written_in_parts(tmp_path):
    shape = ("synthetic", "mq2008", tmp_path / "t.store", "--queries", 8, "--first", 2)
    assert run_json(*shape)["queries"] == 8
    assert load(tmp_path / "t.store").qid.tolist() == np.arange(3, 11).tolist()

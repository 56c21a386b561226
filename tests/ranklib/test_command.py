"""RankLib's command line: every flag, its modes and files, and where we do other than RankLib."""

from dataclasses import fields

import numpy as np
import pytest

from rankwright.errors import DataError, UsageError
from rankwright.ranklib.command import run
from rankwright.ranklib.flags import NAMES, Flags, flags_help, parse_flags
from rankwright.ranklib.metrics import RankLibMetric
from rankwright.ranklib.model_text import Ensembles, read_model_text

# every flag of RankLib 2.18, hidden ones included
RANKLIBS = (
    "-train -ranker -feature -metric2t -metric2T -gmax -qrel -silent -missingZero -validate "
    "-tvs -save -test -tts -norm -sparse -kcv -kcvmd -kcvmn -epoch -layer -node -lr -round -tc "
    "-noeq -tolerance -max -r -i -reg -tree -leaf -shrinkage -mls -estop -gcc -bag -srate "
    "-frate -rtype -L2 -load -rank -score -indri -idv -thread -hr -nf -keep -t"
)


@pytest.fixture
def files(tmp_path):
    """A train, vali and test file: grade 2 where feature 1 is high; names after #."""
    random = np.random.default_rng(5)
    for name, queries in (("train", 12), ("vali", 6), ("test", 6)):
        lines = []
        for q in range(queries):
            for doc in range(6):
                a, b, c = (float(f"{value:.3f}") for value in random.normal(size=3))
                grade = 2 if a > 0.5 else int(a > -0.3)
                lines.append(f"{grade} qid:{name}{q} 1:{a} 2:{b} 3:{c} # {name}-{q}-{doc}\n")
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    return tmp_path


def words(files, *more):
    named = zip(("-train", "-validate", "-test"), ("train", "vali", "test"), strict=True)
    given = [word for flag, name in named for word in (flag, str(files / f"{name}.txt"))]
    return [*given, "-metric2t", "NDCG@10", *more]


def figure(text, what):
    (line,) = [line for line in text.splitlines() if f" on {what} data: " in line]
    return float(line.rpartition(" ")[2])


# --- flags -----------------------------------------------------------------------------------


def test_every_flag_of_ranklib_is_there_and_two_more():
    assert set(NAMES) == set(RANKLIBS.split()) | {"-seed", "--strict"}
    for spelling in NAMES:
        assert spelling in flags_help()


def test_defaults_are_ranklibs():
    flags = Flags()
    assert (flags.ranker, flags.metric2t, flags.gmax, flags.kcv) == (4, "ERR@10", 4.0, -1)
    assert (flags.layer, flags.node, flags.max, flags.restarts, flags.iterations) == (
        1,
        10,
        5,
        5,
        25,
    )
    assert (flags.shrinkage, flags.mls, flags.estop, flags.gcc) == (0.1, 1, 100, 100)
    assert (flags.bag, flags.srate, flags.frate, flags.rtype, flags.l2) == (300, 1.0, 0.3, 0, 1e-10)


def test_flags_are_read_in_any_case_save_the_two_metrics():
    flags = parse_flags(["-TRAIN", "a", "-metric2t", "MAP", "-metric2T", "P@5", "-l2", "0.5"])
    assert (flags.train, flags.metric2t, flags.metric2test, flags.l2) == ("a", "MAP", "P@5", 0.5)


def test_every_flag_is_taken_with_a_value():
    for about in fields(Flags):
        spelling, kind = about.metadata["spelling"], about.metadata["kind"]
        value = {"ranker": "6", "norm": "sum", "rtype": "6", "tvs": "0.5", "tts": "0.5"}
        given = [spelling] if kind is None else [spelling, value.get(about.name, "3")]
        assert getattr(parse_flags(given), about.name) != about.default or about.name == "layer"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["-trian", "f"], "there is no flag of RankLib '-trian'; did you mean -train"),
        (["-train"], "-train needs a value"),
        (["-tree", "many"], "-tree takes a whole number, not 'many'"),
        (["-shrinkage", "x"], "-shrinkage takes a number, not 'x'"),
        (["-ranker", "10"], "-ranker is 0 to 9, not 10"),
        (["-norm", "max"], "-norm is sum, zscore or linear"),
        (["-rtype", "1"], "-rtype is 0 .MART. or 6"),
        (["-tvs", "1.5"], "-tvs is a share"),
        (["-silent"], "there is nothing to do"),
        (["-test", "a", "-test", "b"], "there are 0 models and 2 test files"),
        (["-rank", "a", "-score", "b"], "-rank needs a model"),
        (["-metric2t", "AUC", "-test", "f"], "'AUC' is not a metric of RankLib"),
    ],
)
def test_what_is_wrong_with_flags_is_said(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(given)


# --- metrics ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "label", "ours"),
    [
        ("ndcg@5", "NDCG@5", "ndcg@5"),
        ("NDCG", "NDCG@10", "ndcg@10"),
        ("map", "MAP", "map"),
        ("RR@3", "RR@3", "mrr@3"),
        ("ERR", "ERR@10", "err(max=4)@10"),
        ("BEST", "BEST@10", "best@10"),
        ("P@5", "P@5", "p@5"),
    ],
)
def test_metrics_have_ranklibs_names_and_defaults(text, label, ours):
    metric = RankLibMetric.of(text)
    assert (metric.label, metric.name) == (label, ours)


def test_rr_without_k_is_zero_in_ranklib(files, capsys):
    base = ["-test", str(files / "test.txt"), "-metric2T", "RR"]
    run(base)
    shown = capsys.readouterr()
    assert figure(shown.out, "test") > 0
    assert "RR without @k" in shown.err
    run([*base, "--strict"])
    assert figure(capsys.readouterr().out, "test") == 0.0


def test_judgments_change_what_there_is_to_find(tmp_path, capsys):
    (tmp_path / "data.txt").write_text("1 qid:1 1:2 # a\n0 qid:1 1:1 # b\n1 qid:2 1:1 # c\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 z 1\n")
    base = ["-test", str(tmp_path / "data.txt"), "-qrel", str(tmp_path / "qrels")]
    run([*base, "-metric2T", "MAP"])
    assert figure(capsys.readouterr().out, "test") == (1 / 2 + 0) / 2  # of query 2 nothing is known
    run([*base, "-metric2T", "NDCG@10"])
    best = 1 + 1 / np.log2(3)
    assert figure(capsys.readouterr().out, "test") == pytest.approx((1 / best + 1) / 2, abs=5e-5)


def test_the_best_list_of_a_query_id_is_remembered_in_ranklib(tmp_path, capsys):
    """Two lists of one id: RankLib divides the second by the best of the first."""
    rows = ["2 qid:1 1:1", "0 qid:2 1:1", "1 qid:1 1:1"]
    (tmp_path / "data.txt").write_text("\n".join(rows) + "\n")
    base = ["-test", str(tmp_path / "data.txt"), "-metric2T", "NDCG@10"]
    run(base)
    assert figure(capsys.readouterr().out, "test") == pytest.approx((1 + 0 + 1) / 3, abs=5e-5)
    run([*base, "--strict"])
    assert figure(capsys.readouterr().out, "test") == pytest.approx((1 + 0 + 1 / 3) / 3, abs=5e-5)


# --- training --------------------------------------------------------------------------------

QUICK = {
    0: ["-tree", "5"],
    2: ["-round", "5"],
    3: ["-round", "5"],
    4: ["-r", "1"],
    6: ["-tree", "5"],
    7: ["-epoch", "20"],
    8: ["-bag", "3", "-leaf", "4"],
    9: [],
}


@pytest.mark.parametrize("number", QUICK)
def test_a_trained_model_tests_the_same_when_it_is_loaded(files, number, capsys):
    model = str(files / "model.txt")
    run(
        [
            *words(files, "-metric2T", "ERR@10"),
            "-ranker",
            str(number),
            *QUICK[number],
            "-save",
            model,
        ]
    )
    trained = capsys.readouterr().out
    assert f"Model saved to: {model}" in trained
    run(["-load", model, "-test", str(files / "test.txt"), "-metric2T", "ERR@10"])
    assert figure(capsys.readouterr().out, "test") == figure(trained, "test")
    assert figure(trained, "training") > 0.8  # feature 1 gives the grades


@pytest.mark.parametrize("number", [1, 5])
def test_networks_train_too(files, number, capsys):
    pytest.importorskip("torch")
    model = str(files / "model.txt")
    run([*words(files), "-ranker", str(number), "-epoch", "2", "-node", "3", "-save", model])
    assert read_model_text(model).body.hidden == [3]
    assert figure(capsys.readouterr().out, "test") > 0


def test_the_same_seed_gives_the_same_model(files):
    texts = []
    for seed in ("1", "1", "2"):
        path = files / "model.txt"
        run([*words(files), "-ranker", "8", *QUICK[8], "-seed", seed, "-save", str(path)])
        texts.append(path.read_text())
    assert texts[0] == texts[1] != texts[2]


def test_feature_limits_the_model_to_its_features(files):
    (files / "features").write_text("# two of three\n3\tbm25\n1\n")
    model = files / "model.txt"
    run([*words(files), "-ranker", "9", "-feature", str(files / "features"), "-save", str(model)])
    assert read_model_text(model).body.features.tolist() == [0, 1, 3]


def test_silent_leaves_the_rounds_out(files, capsys):
    run([*words(files), "-ranker", "0", "-tree", "3"])
    assert "#iter   | NDCG@10-T | NDCG@10-V | " in capsys.readouterr().out
    run([*words(files), "-ranker", "0", "-tree", "3", "-silent"])
    shown = capsys.readouterr().out
    assert "#iter" not in shown
    assert "NDCG@10 on test data: " in shown


def test_hr_leaves_lists_without_a_relevant_document_out(tmp_path, capsys):
    (tmp_path / "data.txt").write_text("0 qid:1 1:2\n1 qid:2 1:1\n")
    run(["-test", str(tmp_path / "data.txt"), "-metric2T", "NDCG@10"])
    assert figure(capsys.readouterr().out, "test") == 0.5
    run(["-test", str(tmp_path / "data.txt"), "-metric2T", "NDCG@10", "-hr"])
    assert figure(capsys.readouterr().out, "test") == 1.0


def test_sparse_features_give_the_same_model(files):
    texts = []
    for more in ([], ["-sparse"]):
        path = files / "model.txt"
        run([*words(files), "-ranker", "6", "-tree", "3", "-save", str(path), *more])
        texts.append(path.read_text())
    assert texts[0] == texts[1]


def test_regression_in_ranklib_loses_the_last_feature(files, capsys):
    model = str(files / "model.txt")
    run([*words(files), "-ranker", "9", "-save", model])
    assert "RankLib leaves the last feature out" in capsys.readouterr().err
    right = dict(zip(*map(np.ndarray.tolist, _terms(model)), strict=True))
    run([*words(files), "-ranker", "9", "-save", model, "--strict"])
    slipped = dict(zip(*map(np.ndarray.tolist, _terms(model)), strict=True))
    assert slipped[0] == slipped[1]  # the constant is the first weight
    assert slipped[3] == pytest.approx(right[0], abs=0.1)  # and the last weight is the constant


def _terms(path):
    body = read_model_text(path).body
    return body.features, body.weights


# --- using models ----------------------------------------------------------------------------


def test_models_of_folds_score_each_its_part(files, capsys):
    data = str(files / "test.txt")
    for number, weight in ((1, "1.0"), (2, "-1.0")):
        (files / f"f{number}").write_text(f"## Coordinate Ascent\n1:{weight}")
    out = files / "scores.txt"
    loads = ["-load", str(files / "f1"), "-load", str(files / "f2")]
    run([*loads, "-rank", data, "-score", str(out)])
    scores = np.array([float(line.split("\t")[2]) for line in out.read_text().splitlines()])
    lines = (files / "test.txt").read_text().splitlines()
    x = np.array([float(line.split()[2].partition(":")[2]) for line in lines], np.float32)
    np.testing.assert_array_equal(scores[:18], x[:18])  # 6 lists of 6 in two parts
    np.testing.assert_array_equal(scores[18:], -x[18:])
    capsys.readouterr()
    run([*loads, "-test", data, "-test", data, "-metric2T", "NDCG@10"])
    both = figure(capsys.readouterr().out, "test")
    each = []
    for number in (1, 2):
        run(["-load", str(files / f"f{number}"), "-test", data, "-metric2T", "NDCG@10"])
        each.append(figure(capsys.readouterr().out, "test"))
    assert both == pytest.approx(np.mean(each), abs=1e-4)


def test_a_score_file_is_evaluated_without_a_model(files, capsys):
    data = files / "test.txt"
    grades = [line.split()[0] for line in data.read_text().splitlines()]
    (files / "scores").write_text("\n".join(grades) + "\n")
    run(["-test", str(data), "-score", str(files / "scores"), "-metric2T", "NDCG@10"])
    assert figure(capsys.readouterr().out, "test") == 1.0


def test_rank_needs_a_place_to_write(files):
    (files / "m").write_text("## Coordinate Ascent\n1:1.0")
    with pytest.raises(UsageError, match="give -score FILE or -indri FILE"):
        run(["-load", str(files / "m"), "-rank", str(files / "test.txt")])


def test_features_that_the_data_lacks_are_zero_or_refused(files, capsys):
    (files / "m").write_text("## Coordinate Ascent\n1:1.0 9:1.0")
    given = ["-load", str(files / "m"), "-test", str(files / "test.txt")]
    run(given)
    assert "the data ends with feature 3" in capsys.readouterr().err
    run([*given, "-missingZero", "--strict"])
    assert capsys.readouterr().err == ""
    with pytest.raises(DataError, match="-missingZero reads the others as 0"):
        run([*given, "--strict"])


def test_load_and_save_alone_turn_a_model_into_the_other_form(files, capsys):
    text, ours, back = (files / name for name in ("m.txt", "m.rankwright", "back.txt"))
    text.write_text(
        "## RankBoost\n## Iteration = 2\n## No. of threshold candidates = 10\n1:0.5:2.0"
    )
    run(["-load", str(text), "-save", str(ours)])
    run(["-load", str(ours), "-save", str(back)])
    assert back.read_text() == text.read_text()
    run(["-load", str(ours), "-test", str(files / "test.txt")])
    assert "ERR@10 on test data: " in capsys.readouterr().out


# --- other programs --------------------------------------------------------------------------


def test_combine_joins_forests(files, capsys):
    folder = files / "models"
    folder.mkdir()
    for seed in ("1", "2"):
        target = str(folder / f"m{seed}")
        run([*words(files), "-ranker", "8", *QUICK[8], "-seed", seed, "-save", target])
    (folder / "m3.progress").write_text("not a model")
    run(["combine", str(folder), str(files / "all.txt")])
    body = read_model_text(files / "all.txt").body
    assert isinstance(body, Ensembles)
    assert len(body.ensembles) == 6
    assert "RankLib takes the first" in capsys.readouterr().err
    run(["combine", str(folder), str(files / "all.txt"), "--strict"])
    assert len(read_model_text(files / "all.txt").body.ensembles) == 2


def test_features_shuffles_and_splits_whole_lists(files):
    data, out = str(files / "train.txt"), files / "out"
    run(["features", "-input", data, "-output", str(out), "-shuffle", "-tts", "0.5", "-seed", "4"])
    parts = [(out / f"{part}.train.txt.shuffled").read_text() for part in ("train", "test")]
    assert "".join(parts) == (out / "train.txt.shuffled").read_text()
    ids = [[line.split()[1] for line in part.splitlines()] for part in parts]
    assert not set(ids[0]) & set(ids[1])
    assert len(set(ids[0]) | set(ids[1])) == 12


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["features", "-input", "f"], "-input and -output are needed"),
        (["features", "-k"], "'-k' is not understood"),
        (["analyze", "-base", "x"], "-all names a folder"),
        (["combine", "nowhere", "x"], "a folder of models and a file to write are needed"),
    ],
)
def test_what_is_wrong_with_other_programs_is_said(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(given)


@pytest.mark.parametrize("flag", ["-tree", "-leaf", "-round", "-bag"])
def test_none_of_a_thing_is_refused_and_not_taken_for_the_default(flag):
    with pytest.raises(UsageError, match=f"{flag} must be 1 or more, not 0"):
        parse_flags([flag, "0"])


def test_a_file_where_a_folder_should_be_is_reported(files):
    given = ["-input", str(files / "train.txt"), "-output", str(files / "vali.txt"), "-k", "2"]
    with pytest.raises(DataError, match=r"vali.txt cannot be made"):
        run(["features", *given])


def test_only_forests_are_joined(files):
    folder = files / "models"
    folder.mkdir()
    run(words(files, "-ranker", "0", "-tree", "2", "-silent", "-save", str(folder / "mart.txt")))
    with pytest.raises(UsageError, match=r"mart.txt is no model of Random Forests"):
        run(["combine", str(folder), str(files / "joined.txt")])


def test_without_flags_all_are_listed(capsys):
    run([])
    assert capsys.readouterr().out == flags_help() + "\n"

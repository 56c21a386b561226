"""``rankwright ranklib`` and the ``ranklib`` script: flags go through as they are."""

import subprocess
import sys

import pytest
from command import run, sentence


@pytest.fixture
def data(tmp_path):
    rows = [
        f"{q % 2 + d % 3} qid:{q} 1:{d % 3} 2:{q} # {q}-{d}\n" for q in range(6) for d in range(5)
    ]
    (tmp_path / "data.txt").write_text("".join(rows))
    return tmp_path


def test_flags_go_through_as_they_are(data):
    file, model, out = (str(data / name) for name in ("data.txt", "model.txt", "scores.txt"))
    words = ["-train", file, "-ranker", "9", "-metric2t", "MAP", "-metric2T", "NDCG@5"]
    shown = run("ranklib", *words, "-test", file, "-save", model, alone=True).stdout
    assert "MAP on training data: " in shown
    assert "NDCG@5 on test data: 1.0" in shown
    run("ranklib", "-load", model, "-rank", file, "-score", out)
    assert len((data / "scores.txt").read_text().splitlines()) == 30


def test_without_flags_and_with_help_it_lists_them():
    assert (
        run("ranklib").stdout == run("ranklib", "-help").stdout == run("ranklib", "--help").stdout
    )
    assert "-metric2T" in run("ranklib").stdout


def test_an_error_is_one_sentence(data):
    assert "there is no flag of RankLib '-trian'" in sentence("ranklib", "-trian", "x")
    assert "does not exist" in sentence(
        "ranklib", "features", "-input", "nowhere", "-output", "x", "-k", "2"
    )


def test_the_script_is_installed_beside_the_verb():
    code = "from rankwright.ranklib.command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "-trian"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("ranklib: there is no flag of RankLib '-trian'")


def test_listing_the_flags_loads_nothing_heavy():
    code = (
        "import sys; from rankwright.ranklib.command import run; run([]); "
        "print([m for m in ('numba', 'sklearn', 'lightgbm', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

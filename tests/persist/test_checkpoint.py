"""The folder of a checkpoint: complete states count, those of another run are refused."""

import errno
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from scipy import sparse
from small_data import small_data

from rankwright.errors import DataError, UsageError
from rankwright.persist import checkpoint as module
from rankwright.persist.checkpoint import Checkpoint
from rankwright.rankers.base import ranker

RECEIPT = {
    "rankwright": "1",
    "libraries": {"numpy": "2"},
    "ranker": "lambdamart",
    "parameters": {"n_estimators": 400, "random_state": 0},
    "training data": "aa",
    "validation data": None,
    "init_model": None,
}
DATA = small_data(queries=8, documents=10)


def renamed(file, **changed):
    """Write other arrays into a file of a checkpoint, under the name that its digest asks for."""
    arrays = {**load_arrays(file.read_bytes()), **changed}
    content = save_arrays({name: array for name, array in arrays.items() if array is not None})
    file.unlink()
    _, number, _ = file.name.split("-")
    file.with_name(f"state-{number}-{module._digest(content)}.safetensors").write_bytes(content)


@pytest.mark.parametrize(
    ("name", "settings", "changed"),
    [
        ("rankboost", {"n_rounds": 6}, {"state.feature": np.full(1, 99)}),
        ("rankboost", {"n_rounds": 6}, {"state.s": np.zeros(3)}),
        ("rankboost", {"n_rounds": 6}, {"state.numbers": None}),
        ("random_forest", {"n_bags": 4}, {"state.counts": np.full(1, 9)}),
        ("random_forest", {"n_bags": 4}, {"best.left": None}),
        ("lambdamart", {"n_estimators": 4}, {"state.trees.left": np.zeros(9, np.int32)}),
        ("gbdt", {"n_estimators": 4}, {"history.rounds": np.zeros(1, np.int64)}),
    ],
)
def test_arrays_that_the_run_did_not_write_are_refused(tmp_path, name, settings, changed):
    made = ranker(name, **settings).fit(DATA, checkpoint=Checkpoint(tmp_path, every=2))
    for file in sorted(tmp_path.glob("state-*"))[1:]:
        file.unlink()
    renamed(min(tmp_path.glob("state-*")), **changed)
    with pytest.raises(DataError, match=r"checkpoint|tree|the array"):
        made.fit(DATA, checkpoint=Checkpoint(tmp_path, every=2, resume=True))


def test_a_state_without_its_round_is_skipped(tmp_path):
    folder = written(tmp_path)
    renamed(max(folder.glob("state-*")), **{"checkpoint.round": np.array([15, 2**62])})
    assert found(folder)[0] == 10


def written(folder, rounds=(5, 10, 15)):
    """Return a folder with a state of each of ``rounds``, of which the last two remain."""
    kept = Checkpoint(folder, every=5)
    assert kept.begin(RECEIPT) is None
    for t in rounds:
        kept.write(t, {"w": np.full(3, float(t))})
    return folder


def found(folder, receipt=RECEIPT):
    return Checkpoint(folder, resume=True).begin(receipt)


def names(folder):
    return sorted(path.name for path in folder.glob("state-*"))


def test_the_last_state_is_returned_with_its_round(tmp_path):
    number, state = found(written(tmp_path))
    assert number == 15
    assert list(state) == ["w"]
    assert state["w"].tolist() == [15.0] * 3


def test_two_states_are_kept(tmp_path):
    written(tmp_path, range(5, 50, 5))
    assert len(names(tmp_path)) == 2


def test_a_checkpoint_is_due_at_first_and_every_so_many_rounds(tmp_path):
    kept = Checkpoint(tmp_path, every=5)
    kept.begin(RECEIPT)
    assert kept.due(1)
    kept.write(1, {})
    assert [t for t in range(1, 9) if kept.due(t)] == [6, 7, 8]
    kept = Checkpoint(tmp_path, every=3, resume=True)
    kept.begin(RECEIPT)
    assert [t for t in range(1, 9) if kept.due(t)] == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("harm", ["cut", "flip", "empty"])
def test_a_damaged_state_is_skipped_for_the_one_before(harm, tmp_path):
    path = tmp_path / names(written(tmp_path))[-1]
    content = bytearray(path.read_bytes())
    if harm == "flip":
        content[-1] ^= 1
    path.write_bytes({"cut": content[:-7], "flip": content, "empty": b""}[harm])
    assert found(tmp_path)[0] == 10
    assert len(names(tmp_path)) == 1


def test_without_any_complete_state_the_run_starts_again(tmp_path):
    for name in names(written(tmp_path)):
        (tmp_path / name).write_bytes(b"")
    assert found(tmp_path) is None
    assert not names(tmp_path)


def test_states_after_the_one_that_is_resumed_are_replaced(tmp_path):
    written(tmp_path)
    last = tmp_path / names(tmp_path)[-1]
    last.write_bytes(b"")
    kept = Checkpoint(tmp_path, every=5, resume=True)
    assert kept.begin(RECEIPT)[0] == 10
    kept.write(15, {"w": np.zeros(3)})
    number, state = found(tmp_path)
    assert (number, state["w"].tolist()) == (15, [0.0] * 3)


def test_half_written_files_go_and_those_of_others_stay(tmp_path):
    written(tmp_path)
    half = tmp_path / ".state-000004-0123456789abcdef.safetensors.77.88.partial"
    half.write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    assert found(tmp_path)[0] == 15
    assert not half.exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_that_another_process_writes_to_is_refused(tmp_path):
    code = f"""if True:
        import sys
        from rankwright.persist.checkpoint import Checkpoint
        kept = Checkpoint({str(tmp_path)!r})
        kept.begin({RECEIPT!r})
        print("begun", flush=True)
        sys.stdin.readline()
        kept.end()
        print("ended", flush=True)
        sys.stdin.readline()
    """
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "begun\n"
        with pytest.raises(UsageError, match="is in use by another run; wait for its end"):
            found(tmp_path)
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "ended\n"
        assert found(tmp_path) is None  # nothing was kept, and no other run holds the lock
        other.stdin.write("\n")


def test_files_without_a_receipt_are_not_touched(tmp_path):
    (written(tmp_path) / "receipt.json").unlink()
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"without the receipt\.json .* choose another folder"):
            Checkpoint(tmp_path, resume=resume).begin(RECEIPT)
    assert len(names(tmp_path)) == 2


def test_a_folder_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    kept = Checkpoint(tmp_path)
    kept.begin(RECEIPT)
    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(DataError, match=r"state-000001.* cannot be written: No space left"):
        kept.write(1, {"w": np.zeros(3)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "receipt.json"]


def test_a_checkpoint_that_cannot_begin_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises(DataError, match="cannot be written: No space left on device; nothing"):
            Checkpoint(tmp_path / name).begin(RECEIPT)
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


def test_a_folder_in_use_is_refused_without_resume(tmp_path):
    with pytest.raises(UsageError, match="holds the checkpoint of an earlier run: resume it"):
        Checkpoint(written(tmp_path)).check()


def test_resume_in_an_empty_folder_begins(tmp_path):
    assert found(tmp_path / "deep" / "new") is None
    assert json.loads((tmp_path / "deep" / "new" / "receipt.json").read_text()) == RECEIPT


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ranker": "gbdt"}, "ranker was 'lambdamart' and is 'gbdt'"),
        (
            {"parameters": {"n_estimators": 300, "random_state": 0}},
            "n_estimators was 400 and is 300",
        ),
        ({"training data": "bb"}, "training data was 'aa' and is 'bb'"),
        ({"validation data": "cc"}, "validation data was None and is 'cc'"),
        ({"init_model": "dd"}, "init_model was None and is 'dd'"),
        ({"rankwright": "2"}, "rankwright was '1' and is '2'"),
        ({"libraries": {"numpy": "3"}}, "numpy was '2' and is '3'"),
        ({"libraries": {}}, "numpy was '2' and is None"),
    ],
)
def test_another_run_is_refused_and_what_differs_is_named(change, sentence, tmp_path):
    with pytest.raises(UsageError, match=sentence):
        found(written(tmp_path), {**RECEIPT, **change})
    assert found(tmp_path)[0] == 15  # and nothing was changed


def test_a_receipt_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "receipt.json").write_text("[1")
    with pytest.raises(DataError, match=r"receipt\.json cannot be read; choose another folder"):
        found(tmp_path)


def test_a_file_in_place_of_the_folder_and_a_wrong_every_are_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file; a checkpoint needs a folder"):
        Checkpoint(tmp_path / "file").check()
    with pytest.raises(UsageError, match="every must be 1 or more, not 0"):
        Checkpoint(tmp_path, every=0).check()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: replace(d, y=d.y[::-1].copy()),
        lambda d: d.in_order(np.r_[1, 0, 2 : d.n_documents], np.arange(8)),
        lambda d: replace(d, query_weight=np.arange(1.0, 9.0)),
    ],
)
def test_a_fit_on_other_data_is_refused_the_order_of_rows_included(change, tmp_path):
    ranker("gbdt", n_estimators=3).fit(DATA, checkpoint=tmp_path)
    with pytest.raises(UsageError, match="another run: training data was"):
        ranker("gbdt", n_estimators=3).fit(
            change(DATA), checkpoint=Checkpoint(tmp_path, resume=True)
        )


def test_a_fit_on_the_same_values_in_a_sparse_matrix_is_refused(tmp_path):
    ranker("gbdt", n_estimators=3).fit(DATA, checkpoint=tmp_path)
    with pytest.raises(UsageError, match="another run: training data was"):
        ranker("gbdt", n_estimators=3).fit(
            replace(DATA, X=sparse.csr_array(DATA.X)), checkpoint=Checkpoint(tmp_path, resume=True)
        )


def test_threads_and_words_may_change(tmp_path):
    ranker("gbdt", n_estimators=3).fit(DATA, checkpoint=Checkpoint(tmp_path, every=1))
    again = ranker("gbdt", n_estimators=3, n_jobs=2, verbose=True)
    again.fit(DATA, checkpoint=Checkpoint(tmp_path, resume=True))
    assert again.resumed_from_ == 3


def test_without_a_checkpoint_nothing_was_resumed():
    assert ranker("gbdt", n_estimators=2).fit(DATA).resumed_from_ is None


@pytest.mark.parametrize("state", [None, np.random.default_rng(0)])
def test_a_checkpoint_needs_a_seed_that_a_resumed_run_has_too(tmp_path, state):
    made = ranker("gbdt", n_estimators=2, random_state=state)
    with pytest.raises(UsageError, match="a checkpoint needs a whole number as random_state"):
        made.fit(DATA, checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())

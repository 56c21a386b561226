"""A guess from some chunks gives what the full survey gives; faults name their line."""

import numpy as np
import pytest

from rankwright.data import letor_kernels, letor_text
from rankwright.data.letor import Letor, ReadOptions
from rankwright.data.letor_parts import BlockReader, Text


class Callback:
    """Counts how often a kernel is called."""

    def __init__(self, monkeypatch, name):
        self.calls, kernel = 0, getattr(letor_kernels, name)

        def counted(*args):
            self.calls += 1
            return kernel(*args)

        monkeypatch.setattr(letor_kernels, name, counted)


LINES = [b"%d qid:%d 1:%d 5:0.25 # %d\n" % (k % 3, k // 4, k, k) for k in range(64)]


@pytest.mark.parametrize(
    ("special", "parses"),
    [
        ({}, "once"),
        ({63: b"1 qid:99 9:7 # a wider line, where no sample is\n"}, "twice"),
        ({50: b"1 qid:99 1:4.9e-324 # left to Python\n"}, "twice"),
        ({50: b"# a comment\n"}, "once"),
        ({0: b"1 qid:0 0:3 # ids from 0\n"}, "once"),
        ({0: b"1 qid:0 # no features\n", 1: b"1 qid:0 0:3 # ids from 0\n"}, "once"),
    ],
    ids=["regular", "wider", "odd", "comment", "zero-based", "zero-based later"],
)
def test_a_guess_from_some_chunks_reads_the_same(tmp_path, monkeypatch, special, parses):
    path = tmp_path / "data.txt"
    path.write_bytes(b"".join(special.get(k, line) for k, line in enumerate(LINES)))
    whole = Letor.read(path)
    monkeypatch.setattr(letor_text, "_CHUNK", 1)  # a chunk per line
    callback = Callback(monkeypatch, "parse")
    chunks = Letor.read(path, n_jobs=1)
    assert callback.calls == (2 if parses == "twice" else 1) * len(LINES)
    assert np.array_equal(whole.X, chunks.X)
    assert whole.y.tolist() == chunks.y.tolist()
    assert whole.qid.tolist() == chunks.qid.tolist()
    assert whole.doc_id.tolist() == chunks.doc_id.tolist()


def test_a_guess_spares_the_survey_of_most_chunks(tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    path.write_bytes(b"".join(LINES))
    monkeypatch.setattr(letor_text, "_CHUNK", 1)
    callback = Callback(monkeypatch, "survey")
    Letor.read(path, n_jobs=1)
    assert callback.calls == len(LINES) // 16


def test_a_fault_names_the_line_in_the_file():
    reader = BlockReader("f.txt", ReadOptions(), lines=10)
    with pytest.raises(ValueError, match=r"^f\.txt, line 12: wrong\.$"):
        reader.fault(Text(b"a\nb\nc\n"), 2, "wrong.")

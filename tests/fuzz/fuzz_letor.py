"""Feed the LETOR reader arbitrary bytes: it reads as its slow twin does, or refuses a line.

``python -m fuzz_letor -max_total_time=60`` is coverage-guided fuzzing with atheris and its flags.
"""

import gzip
import random
import re
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np
from scipy import sparse

# The grammar in Python guides atheris; Numba cannot compile kernels that it has instrumented.
with atheris.instrument_imports(include=["reference"]):
    from reference import letor_reader as twin

from rankwright.data import letor
from rankwright.data.letor import Letor
from rankwright.errors import DataError

SEEDS = [
    b"2 qid:10 1:0.5 2:-1.25e-3 # docid = GX008-86-4444840 inc = 1 prob = 0.08\n",
    b"\xef\xbb\xbf0 qid:a 3:NULL 1:nan 2:NA\r\n\r\n# text\n1.5 qid:\xc3\xa9 1:1 # free text \xff\n",
    b"0 qid:-7 0:0.1 1:0\t2:-0 300:1e22\n1 qid:-7 0:123456789012345678901234567890e-20\n",
    b"3 qid:007 1:.5 2:5. 3:+1E+2 #docid=\n0 qid:9223372036854775808 2:4.9e-324#x",
    b"1 qid:1 1:9007199254740993 2:1e-400 3:1.7976931348623157e308\n",
]
PIECES = [b" ", b"\t", b"\n", b"\r\n", b"#", b":", b"qid:", b"0", b"1", b"9" * 20, b".", b"e"]
PIECES += [b"-", b"+", b"NULL", b"NaN", b"inf", b"\0", b"\xff", b"docid = ", b"1e999", b"1_0"]
PIECES += [b"67108864:1", b"67108865:1", b"qid:5 1:1"]

PACKED = (b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"Rar!")
PACKED += (b"\x1f\x9d", b"\x04\x22\x4d\x18", b"7z\xbc\xaf\x27\x1c")

_folder = tempfile.TemporaryDirectory(prefix="rankwright-fuzz-")
_path, _packed = Path(_folder.name, "fuzzed.txt"), Path(_folder.name, "fuzzed.txt.gz")


def check(content):
    """Fail unless the reader and its twin agree on ``content``, whatever its chunks and blocks."""
    if content.startswith(PACKED):
        return  # it would be decompressed, or refused as an archive
    _path.write_bytes(content)
    letor._CHUNK = 1 + len(content) % 97
    _packed.write_bytes(gzip.compress(content, 0))
    threads, size = 1 + len(content) % 2, 1 + len(content) % 53
    readers = [
        lambda **options: [Letor.read(_path, n_jobs=threads, **options)],
        lambda **options: [Letor.read(_packed, **options)],
        lambda **options: list(Letor.read_parts(_path, part_bytes=size, **options)),
    ]
    try:
        table = twin.read(content)
    except twin.BadLineError as bad:
        for reader in readers:
            check_refusal(reader, bad.line)
        return
    for reader in readers:
        parts = reader(lists="adjacent")
        check_rows(parts, table)
        if not any(sparse.issparse(part.X) for part in parts):
            X = table.matrix()
            assert same_bits(np.concatenate([part.X for part in parts]), X)
            stored = [part.X.toarray() for part in reader(lists="adjacent", sparse=True)]
            assert np.array_equal(np.concatenate(stored), X, equal_nan=True)


def check_refusal(reader, line):
    """Fail unless ``reader`` refuses ``line``."""
    fault = None
    try:
        parts = reader()
    except DataError as refusal:
        fault = str(refusal)
    assert fault, f"line {line} was read: {parts}"
    said = re.search(r", line (\d+): ", fault)
    comes_back = "appears again" in fault  # only parts refuse that, and before the bad line
    assert comes_back or (int(said[1]) if said else None) == line, f"{fault} but line {line}"


def check_rows(parts, table):
    """Fail unless grades, query ids and names of documents are those of the twin."""
    y = np.concatenate([part.y for part in parts])
    assert np.array_equal(y.view(np.int64), np.array(table.grades).view(np.int64))
    ids = [str(name) for part in parts for name in np.repeat(part.qid, part.sizes).tolist()]
    assert ids == table.queries
    if any(name is not None for name in table.documents):
        names = [name for part in parts for name in part.doc_id.tolist()]
        assert names == [name or "" for name in table.documents]
    else:
        assert all(part.doc_id is None for part in parts)


def same_bits(a, b):
    """Whether two tables are equal bit for bit, all NaN being one."""
    a, b = (np.where(np.isnan(x), np.nan, x) for x in (a, b))
    return a.shape == b.shape and np.array_equal(a.view(np.int64), b.view(np.int64))


def mutated(content, rng):
    """Return ``content``, or some seeds, with pieces put in, taken out or replaced."""
    if not content or rng.random() < 0.05:
        content = b"".join(rng.choices(SEEDS, k=rng.randint(1, 4)))
    changed = bytearray(content)
    for _ in range(rng.randint(0, 6)):
        at = rng.randrange(len(changed) + 1)
        length = rng.choice([0, 1, 1, 2, 5])
        changed[at : at + length] = rng.choice([b"", rng.choice(PIECES), rng.randbytes(1)])
    return bytes(changed)


def mutate(content, max_size, seed):
    """Mutate for atheris: half of the time by pieces of the grammar, else its own way."""
    if seed % 2:
        return mutated(content, random.Random(seed))[:max_size]
    return atheris.Mutate(content, max_size)


if __name__ == "__main__":
    atheris.Setup(sys.argv, check, custom_mutator=mutate)
    atheris.Fuzz()

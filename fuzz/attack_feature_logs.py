"""Damage feature logs of search engines and judgment lists: read together, or refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from damage import Attack, mutated

from rankwright.data.files import load

_FEATURES = b'[{"name":"a","value":1.5},{"name":"b"}]'
_HIT = b'{"_id":"%s","fields":{"_ltrlog":[{"qid:1":' + _FEATURES + b"}]}}"
_HITS = b'{"hits":{"hits":[%s,%s]}}' % (_HIT % b"d1", _HIT % b"d2")
_DOCS = b'{"id":"d1","[features]":"a=1.5,b=0.0"},{"id":"d2","[features]":"b=2.0"}'
_CHILD = b'{"id":"id:n:t::d1","fields":{"matchfeatures":{"a":1.5,"b":0}}}'
_LOGS = {
    "plugin": _HITS + b"\n" + _HITS,
    "msearch": b'{"responses":[' + _HITS + b"]}",
    "solr": b'{"responseHeader":{"params":{"q":"rambo"}},"response":{"docs":[' + _DOCS + b"]}}",
    "vespa": b'{"qid":1,"root":{"children":[' + _CHILD + b"]}}",
}
_JUDGED = b"# qid:1: rambo*2\n\n3 qid:1 # d1 rambo\n0 qid:1 1:0.5 # d2\n"


def write(folder: Path) -> Sequence[Path]:
    """Write a log of each engine, and a judgment list."""
    paths = [folder / f"{name}.jsonl" for name in _LOGS]
    for path in paths:
        path.write_bytes(_LOGS[path.stem])
    (folder / "judged.txt").write_bytes(_JUDGED)
    return [*paths, folder / "judged.txt"]


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy with some bytes changed."""
    target.write_bytes(mutated(path.read_bytes(), rng))


def use(path: Path) -> None:
    """Join a log to a judgment list."""
    is_log = path.suffix == ".jsonl"
    log = path if is_log else path.with_name("plugin.jsonl")
    load(log, judgments=path.with_name("judged.txt") if is_log else path)


ATTACK = Attack("feature logs of search engines, and judgment lists", write, damage, use)

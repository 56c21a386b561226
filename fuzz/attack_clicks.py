"""Damage click logs of every format, and files of click models: used, or refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from attack_models import damage as damage_model
from click_sessions import random_log
from damage import Attack, mutated

from rankwright import clicks
from rankwright.clicks.models import MODELS

LOG = random_log(sessions=8)
_CSV = b"session,query,document,position,click\n1,a,x,1,0\n1,a,y,2,1\n2,b,x,1,1\n"
_SESSIONS = b'{"query":"a","documents":["x","y"],"clicks":[0,1],"time":3}\n' * 3
_IMPRESSIONS = b"".join(
    b'{"session":%d,"query":"a","document":"x%d","click":%d}\n' % (i // 2, i, i % 2)
    for i in range(4)
)
_REPORTED = (
    b'{"session":"s","query":"a","documents":["x","y"],"teams":[0,1],'
    b'"interleaving":{"method":"team_draft","rankers":["A","B"],"k":2},"clicked":[]}\n'
    b'{"session":"s","clicked":[2]}\n'
)
_UBI = (
    b'{"query_id":"1","user_query":"a","query_response_object_ids":["x","y"]}\n'
    b'{"action_name":"click","query_id":"1","event_attributes":{"object":{"object_id":"y"}}}\n'
)
_YANDEX = b"#session\tquery\tdocs\tclicked\n1\ta\tx,y\t2\n2\tb\tz\t\n"
_CHALLENGE = b"7\t0\tQ\t5\t1\tx\ty\n7\t3\tC\ty\n8\t0\tQ\t5\t1\tx\ty\n"
_INTERLEAVED = b"".join(
    b'{"query":"%d","documents":["x","y"],"clicks":[0,1],"credits":[[1,2,2,2],[2,1,2,2]],'
    b'"teams":[0,1],"interleaving":{"method":"pairwise","rankers":["A","B"]}}\n' % number
    for number in range(2)
)
_LOGS = {
    "table.csv": _CSV,
    "sessions.jsonl": _SESSIONS,
    "impressions.jsonl": _IMPRESSIONS,
    "reported.jsonl": _REPORTED,
    "interleaved.jsonl": _INTERLEAVED,
    "log.ubi": _UBI,
    "table.yandex": _YANDEX,
    "challenge.yandex": _CHALLENGE,
}


def write_logs(folder: Path) -> Sequence[Path]:
    """Write a log of each format."""
    for name, content in _LOGS.items():
        (folder / name).write_bytes(content)
    clicks.save_log(LOG, folder / "table.parquet")
    return [*(folder / name for name in _LOGS), folder / "table.parquet"]


def damage_log(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy with some bytes changed."""
    target.write_bytes(mutated(path.read_bytes(), rng))


def use_log(path: Path) -> None:
    """Read a log as a whole and in parts, look at it, score it and fit a model to it."""
    log = clicks.load_log(path, format=path.suffix.lstrip("."))
    if log.interleaving is not None:
        clicks.score_interleaving(log)
    clicks.inspect_log(log)
    clicks.DBN(max_iter=2).fit(log).evaluate(log)
    clicks.PBM(max_iter=2).fit(clicks.open_log(path, format=path.suffix.lstrip(".")))


def write_models(folder: Path) -> Sequence[Path]:
    """Save a fitted click model of every kind."""
    paths = [folder / f"{name}.rw" for name in MODELS]
    for path in paths:
        clicks.model(path.stem).fit(LOG).save(path)
    return paths


def use_model(path: Path) -> None:
    """Load a click model and use it."""
    model = clicks.load_model(path)
    model.evaluate(LOG)
    model.simulate(LOG)
    model.to_frame()
    model.save(path.with_name("again.rw"))


LOGS = Attack("click logs of every format", write_logs, damage_log, use_log)
MODEL_FILES = Attack("files of click models", write_models, damage_model, use_model)

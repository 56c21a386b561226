"""The settings of a server: models with their shares of traffic, limits, keys.

A model is ``FILE``, ``NAME=FILE`` or ``NAME@VERSION=FILE``, each with ``:SHARE%`` at the end where
several versions of a name share its traffic::

    rankwright serve web=web.rw web@next=candidate.rw:10%

A version without a share takes what the others leave. The name of a plain ``FILE`` is the file's,
without its ending.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rankwright.core.parallel import thread_count
from rankwright.errors import UsageError

KEYS_VARIABLE = "RANKWRIGHT_API_KEYS"
FIRST_VERSION = "default"
_ABOVE_0 = (
    *("max_body", "max_documents", "max_queries", "max_values", "max_explained", "seconds"),
    "max_waiting",
    *("interleave_k", "max_impressions"),
)
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_MODEL = re.compile(
    rf"(?:(?P<name>{_NAME})(?:@(?P<version>{_NAME}))?=)?(?P<file>.+?)(?::(?P<share>\d+(?:\.\d+)?)%)?"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How requests are answered.

    Attributes
    ----------
    missing : "error" or "nan"
        A feature that a document lacks, or that is null: refused, or scored as missing.
    unknown : "error" or "ignore"
        A named feature that the model does not have: refused, or left out.
    max_body : int
        Bytes of a request.
    max_documents, max_queries : int
        Documents of a list, and lists of a batch.
    max_values : int
        Documents times features of the model, over all lists of a request; 8 bytes each.
    max_explained : int
        Documents of a list with ``explain``. An explanation takes up to a thousand times as long as
        a score.
    seconds : float
        Time for a request, from the end of its headers to its answer.
    max_waiting : int
        Requests that wait for a thread or have one; further ones are turned away with 503.
    threads : int or None
        Requests that are worked on at a time; as many as there are cores by default.
    reload_seconds : float
        How often the model files are checked; 0 is never.
    keys : tuple of bytes
        Digests of the API keys; none: every client is accepted.
    interleave : str or None
        The method by which the lists of all models are interleaved, if they are.
    interleave_k : int
        Length of the interleaved lists.
    impressions : Path or None
        The file that interleaved lists and clicks on them are appended to.
    max_impressions : int
        Bytes after which that file is put aside, and another begun.
    """

    missing: str = "error"
    unknown: str = "error"
    max_body: int = 8 << 20
    max_documents: int = 10_000
    max_queries: int = 1_000
    max_values: int = 50_000_000
    max_explained: int = 1_000
    seconds: float = 10.0
    max_waiting: int = 256
    threads: int | None = None
    reload_seconds: float = 1.0
    keys: tuple[bytes, ...] = ()
    interleave: str | None = None
    interleave_k: int = 10
    impressions: Path | None = None
    max_impressions: int = 1 << 30

    def __post_init__(self) -> None:
        for name, known in (("missing", ("error", "nan")), ("unknown", ("error", "ignore"))):
            value = getattr(self, name)
            if value not in known:
                raise UsageError(f"--{name} is {known[0]} or {known[1]}, not '{value}'.")
        _check_above_0(self, _ABOVE_0)
        thread_count(self.threads)
        if (self.interleave is None) != (self.impressions is None):
            raise UsageError("--interleave METHOD and --impressions FILE go together; give both.")

    def lets_in(self, key: str) -> bool:
        """Whether an API key is one of ours, in a time that reveals nothing about them."""
        given = _digest(key)
        found = False
        for known in self.keys:
            found |= hmac.compare_digest(given, known)
        return found or not self.keys


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens, and its limits on connections.

    Attributes
    ----------
    host, port : str, int
        The address; port 0 takes a free one.
    tls_cert, tls_key : Path or None
        Certificate and private key, for https.
    max_connections : int
        Connections at a time; requests on further ones are answered 503.
    idle_seconds : float
        How long a connection stays open between requests, in whole seconds.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    max_connections: int = 1_000
    idle_seconds: float = 75.0

    def __post_init__(self) -> None:
        _check_above_0(self, ("max_connections", "idle_seconds"))
        if self.tls_key is not None and self.tls_cert is None:
            raise UsageError("--tls-key needs --tls-cert, the certificate that it belongs to.")


def _check_above_0(settings: Settings | Listening, names: Sequence[str]) -> None:
    for name in names:
        value, option = getattr(settings, name), f"--{name.replace('_', '-')}"
        if not math.isfinite(value):
            raise UsageError(f"{option} must be a finite number, not {value}.")
        if value <= 0:
            raise UsageError(f"{option} must be above 0, not {value}.")


@dataclass(frozen=True, slots=True)
class Version:
    """One model file: the name and version it is served under, and its share of the traffic."""

    name: str
    version: str
    path: Path
    share: float

    @property
    def pinned(self) -> str:
        """The name that asks for this version."""
        return f"{self.name}@{self.version}"


def parse_models(args: Sequence[str]) -> list[Version]:
    """Return the models that ``args`` name, with the shares of each name adding up to 1."""
    found: dict[tuple[str, str], tuple[Path, float | None]] = {}
    for arg in args:
        match = _MODEL.fullmatch(arg)
        path = Path(match["file"] if match else arg)
        name = (match and match["name"]) or path.stem
        if match is None or not re.fullmatch(_NAME, name):
            raise UsageError(f"'{arg}' is not a model: write NAME=FILE, or NAME@VERSION=FILE:10%.")
        key = (name, match["version"] or FIRST_VERSION)
        if key in found:
            raise UsageError(
                f"there are two files for {key[0]}@{key[1]}; name the version of each: "
                "NAME@VERSION=FILE."
            )
        found[key] = path, None if match["share"] is None else float(match["share"]) / 100
    if not found:
        raise UsageError("name at least one model file.")
    names = dict.fromkeys(name for name, _ in found)
    return [version for name in names for version in _shared(name, found)]


def _shared(name: str, found: dict[tuple[str, str], tuple[Path, float | None]]) -> list[Version]:
    own = [(version, *rest) for (other, version), rest in found.items() if other == name]
    given = sum(share for _, _, share in own if share is not None)
    open_ended = sum(share is None for _, _, share in own)
    if given > 1 + 1e-9 or (open_ended == 0 and abs(given - 1) > 1e-9):
        raise UsageError(f"the shares of {name} add up to {100 * given:g}%, not to 100%.")
    rest = (1 - given) / max(1, open_ended)
    return [Version(name, v, path, rest if share is None else share) for v, path, share in own]


def with_keys(settings: Settings, file: Path | None) -> Settings:
    """Return the settings with the API keys of a file (one a line) and of the environment."""
    held = os.environ.get(KEYS_VARIABLE)
    keys = [] if held is None else _stripped(held.split(","))
    if held is not None and not keys:
        raise UsageError(
            f"{KEYS_VARIABLE} is set and holds no API key; write keys with commas between them, or "
            "unset it."
        )
    if file is not None:
        try:
            lines = _stripped(file.read_text(encoding="utf-8-sig").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the API keys in {file} cannot be read: {error}.") from None
        if not lines:
            raise UsageError(f"{file} holds no API key; write one a line.")
        keys += lines
    return replace(settings, keys=tuple(map(_digest, keys)))


def _stripped(keys: Sequence[str]) -> list[str]:
    return [key.strip() for key in keys if key.strip()]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()

"""Settings of a server: models and their shares of traffic, limits, and API keys.

A model is ``FILE``, ``NAME=FILE`` or ``NAME@VERSION=FILE``. If several versions of a name share its
traffic, each ends with ``:SHARE%``::

    rankwright serve web=web.rw web@next=candidate.rw:10%

A version without a share takes the remainder. A plain ``FILE`` is named after the file, without its
suffix.
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
_CHOICES = {"missing": ("error", "nan"), "unknown": ("error", "ignore")}
_POSITIVE = (
    "max_body",
    "max_documents",
    "max_queries",
    "max_values",
    "max_explained",
    "seconds",
    "max_waiting",
    "interleave_k",
    "max_impressions",
)
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_MODEL = re.compile(
    rf"(?:(?P<name>{_NAME})(?:@(?P<version>{_NAME}))?=)?(?P<file>.+?)(?::(?P<share>\d+(?:\.\d+)?)%)?"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Rules and limits for requests.

    Attributes
    ----------
    missing : "error" or "nan"
        Refuse a document that lacks a feature, or treat the feature as missing.
    unknown : "error" or "ignore"
        Refuse a feature name that the model does not have, or ignore it.
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
        Requests that wait for a thread or have one; more are answered 503.
    threads : int or None
        Requests that are processed at the same time; None is the number of cores.
    reload_seconds : float
        Interval at which model files are checked for changes; 0 disables this.
    keys : tuple of bytes
        Digests of the API keys; without any, every client is accepted.
    interleave : str or None
        Method that interleaves the lists of all models, or None.
    interleave_k : int
        Length of the interleaved lists.
    impressions : Path or None
        File to which interleaved lists and the clicks on them are appended.
    max_impressions : int
        Bytes at which that file is renamed and a new one is begun.
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
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise UsageError(f"--{name} is {choices[0]} or {choices[1]}, not '{value}'.")
        _check_positive(self, _POSITIVE)
        thread_count(self.threads)
        if (self.interleave is None) != (self.impressions is None):
            raise UsageError("--interleave METHOD and --impressions FILE go together; give both.")

    def lets_in(self, key: str) -> bool:
        """Return whether an API key is valid, in a time that reveals nothing about the keys."""
        digest, is_valid = _digest(key), False
        for valid in self.keys:
            is_valid |= hmac.compare_digest(digest, valid)
        return is_valid or not self.keys


@dataclass(frozen=True, slots=True)
class Listening:
    """Address of a server, and its limits on connections.

    Attributes
    ----------
    host, port : str, int
        Port 0 takes a free one.
    tls_cert, tls_key : Path or None
        Certificate and private key, for https.
    max_connections : int
        Connections at a time; requests on further ones are answered 503.
    idle_seconds : float
        Time that a connection stays open between requests, rounded up to whole seconds.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    max_connections: int = 1_000
    idle_seconds: float = 75.0

    def __post_init__(self) -> None:
        _check_positive(self, ("max_connections", "idle_seconds"))
        if self.tls_key is not None and self.tls_cert is None:
            raise UsageError("--tls-key needs --tls-cert, the certificate that it belongs to.")


def _check_positive(settings: Settings | Listening, names: Sequence[str]) -> None:
    for name in names:
        value, option = getattr(settings, name), f"--{name.replace('_', '-')}"
        if not math.isfinite(value):
            raise UsageError(f"{option} must be a finite number, not {value}.")
        if value <= 0:
            raise UsageError(f"{option} must be above 0, not {value}.")


# --- models ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """A model file, the name and version under which it is served, and its share of traffic."""

    name: str
    version: str
    path: Path
    share: float

    @property
    def pinned(self) -> str:
        """Name that selects this version only."""
        return f"{self.name}@{self.version}"


def parse_models(args: Sequence[str]) -> list[Version]:
    """Return the models named by ``args``; the shares of each name add up to 1."""
    files: dict[tuple[str, str], tuple[Path, float | None]] = {}
    for arg in args:
        match = _MODEL.fullmatch(arg)
        path = Path(match["file"] if match else arg)
        name = (match and match["name"]) or path.stem
        if match is None or not re.fullmatch(_NAME, name):
            raise UsageError(f"'{arg}' is not a model: write NAME=FILE, or NAME@VERSION=FILE:10%.")
        key = (name, match["version"] or FIRST_VERSION)
        if key in files:
            raise UsageError(
                f"there are two files for {key[0]}@{key[1]}; name the version of each: "
                "NAME@VERSION=FILE."
            )
        files[key] = path, None if match["share"] is None else float(match["share"]) / 100
    if not files:
        raise UsageError("name at least one model file.")
    names = dict.fromkeys(name for name, _ in files)
    return [version for name in names for version in _versions(name, files)]


def _versions(name: str, files: dict[tuple[str, str], tuple[Path, float | None]]) -> list[Version]:
    versions = [(version, *file) for (other, version), file in files.items() if other == name]
    total = sum(share for _, _, share in versions if share is not None)
    n_without_share = sum(share is None for _, _, share in versions)
    if total > 1 + 1e-9 or (n_without_share == 0 and abs(total - 1) > 1e-9):
        raise UsageError(f"the shares of {name} add up to {100 * total:g}%, not to 100%.")
    remainder = (1 - total) / max(1, n_without_share)
    return [
        Version(name, version, path, remainder if share is None else share)
        for version, path, share in versions
    ]


# --- API keys ----------------------------------------------------------------------------------


def with_keys(settings: Settings, file: Path | None) -> Settings:
    """Return the settings with the API keys of a file (one per line) and of the environment."""
    text = os.environ.get(KEYS_VARIABLE)
    keys = [] if text is None else _stripped(text.split(","))
    if text is not None and not keys:
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
            raise UsageError(f"{file} holds no API key; write one per line.")
        keys += lines
    return replace(settings, keys=tuple(map(_digest, keys)))


def _stripped(keys: Sequence[str]) -> list[str]:
    return [key.strip() for key in keys if key.strip()]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()

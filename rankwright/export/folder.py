"""The folder of an export: its files, ``parity.jsonl`` and ``export.json``; written, and verified.

``parity.jsonl`` has a vector per line: what it is for, its features (null: missing), the score that
the export should give it and how far off that may be. ``export.json`` names the format, the ranker,
versions, the version of the engine that it is written for and the oldest that it is right on,
precision, the policy for missing values, the features in order (of a category with its values,
whose places are the codes that the model takes), and the SHA-256 of every other file. A
folder of its own appears whole or not at all; beside other files (``force``), the export counts
from the moment its ``export.json`` is there, which comes last.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import __version__, registry
from rankwright.core.parameters import resolve_part
from rankwright.core.types import F64
from rankwright.data.streams import link_target, partial_beside, replace_folder
from rankwright.errors import DataError, RankwrightError, UsageError
from rankwright.export.target import (
    SINGLE,
    EngineTarget,
    Job,
    ParityError,
    Release,
    Target,
    Written,
    model_thresholds,
)
from rankwright.export.vectors import Vectors, parity_text, parity_vectors, read_parity
from rankwright.models.portable import forest_in, portable
from rankwright.rankers.base import Ranker

_RESERVED = {"name", "score"}  # words of other systems' schemas
ABOUT, PARITY = "export.json", "parity.jsonl"
FORMAT = 1


@dataclass(frozen=True)
class Verified:
    """What a replay of the parity vectors found.

    ``largest_difference`` is absolute up to scores of 1, relative above.
    """

    format: str
    evaluator: str
    vectors: int
    largest_difference: float


@dataclass(frozen=True)
class ReleaseCheck:
    """What a replay of the parity vectors found for versions of an engine.

    ``versions`` is such as ">=3.2,<3.8". ``missing`` says what becomes of missing values there, and
    ``error`` why the engine refuses the export, if it does.
    """

    engine: str
    versions: str
    setup: str
    right: bool
    vectors: int
    wrong: int
    missing: str
    error: str = ""


def export_model(
    ranker: Ranker,
    to: str | Target,
    folder: str | Path,
    *,
    name: str = "rankwright_model",
    engine_version: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write a fitted ranker for another system, with vectors that prove it.

    Parameters
    ----------
    to
        A name of ``rankwright list exports``, or a target of one's own.
    folder
        Where to; an earlier export there is replaced.
    name
        What the model is called in the other system.
    engine_version
        The version of the engine that it is for, such as "2.19"; the newest by default.
    force
        Write beside other files that the folder holds.

    Returns
    -------
    dict
        What ``export.json`` holds.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.export import export_model
    >>> ranker = rw.IntervalRank().fit(rw.synthetic("mq2008", queries=20))
    >>> export_model(ranker, "opensearch", "export")["format"]
    'opensearch'
    """
    target: Target = resolve_part("exports", to)
    folder = Path(folder)
    _check_folder(folder, force)
    if not (name.isidentifier() and name.isascii()):
        raise UsageError(f"a model is named with letters, digits and _, not '{name}'.")
    model = portable(ranker._fitted(), ranker.model_name)
    job = Job(ranker, model, feature_names(ranker), name, _release(target, engine_version))
    target.check(job)
    written = target.write(job)
    vectors = parity_vectors(job, written, single=target.single)
    files = {**written.files, PARITY: parity_text(vectors).encode()}
    about = _about(target, job, written, vectors, files, engine_version)
    files[ABOUT] = (json.dumps(about, indent=1, allow_nan=False) + "\n").encode()
    _write_folder(folder, files)
    return about


def verify_export(
    folder: str | Path, target: Target | None = None, *, engine: str | None = None
) -> Verified:
    """Replay the parity vectors of an export through an evaluator of its format.

    Parameters
    ----------
    target
        That of the format; by default the one that is registered under its name.
    engine
        The engine that the evaluator answers as, with its version, such as "opensearch:2.17"; by
        default the one that the export was written for.

    Raises
    ------
    ParityError
        If a file was altered, cannot be read by the evaluator, or scores differently. Vectors lie
        so far apart that none can change places with another while each scores as it should.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.export import export_model, verify_export
    >>> ranker = rw.IntervalRank().fit(rw.synthetic("mq2008", queries=20))
    >>> about = export_model(ranker, "opensearch", "export")
    >>> verify_export("export").largest_difference < 1e-6
    True
    """
    folder, about, target, vectors = _open_export(folder, target)
    if engine is None:
        with _as_parity_error(folder):
            found = target.scores(folder, about, vectors.X)
        where, hint = str(folder), ""
    else:
        name, _, version = engine.partition(":")
        release = _engine_target(target).release(name, version or None)
        with _as_parity_error(folder):
            found = _engine_target(target).scores_on(release, folder, about, vectors.X)
        where = f"{folder} on {engine}"
        hint = f" Export the model to {name} with --engine-version {version or release.version}."
    found = np.asarray(found, np.float64)
    _compare(where, vectors, found, hint)
    size = np.maximum(np.abs(vectors.scores), 1.0)
    return Verified(
        format=about["format"],
        evaluator=target.evaluator,
        vectors=len(found),
        largest_difference=float((np.abs(found - vectors.scores) / size).max(initial=0.0)),
    )


def check_releases(folder: str | Path, target: Target | None = None) -> list[ReleaseCheck]:
    """Return which engines and versions an export is right on, the newest first.

    Parameters
    ----------
    target
        That of the format; by default the one that is registered under its name.

    Raises
    ------
    ParityError
        If a file was altered or cannot be read.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.export import check_releases, export_model
    >>> ranker = rw.IntervalRank().fit(rw.synthetic("mq2008", queries=20))
    >>> about = export_model(ranker, "opensearch", "export")
    >>> check_releases("export")[0]
    ReleaseCheck(engine='elasticsearch', versions='>=8.11.4', setup='', right=True, ...
    """
    folder, about, target, vectors = _open_export(folder, target)
    engine_target, found = _engine_target(target), []
    newer: dict[tuple[str, str], str] = {}
    for release in engine_target.releases_for(about["model"]):
        key = release.engine, release.setup
        until = f",<{newer[key]}" if key in newer else ""
        newer[key] = release.version
        error = ""
        try:
            with _as_parity_error(folder):
                scores = engine_target.scores_on(release, folder, about, vectors.X)
            wrong = int((~(np.abs(scores - vectors.scores) <= vectors.tolerance)).sum())
        except ParityError as refused:
            wrong, error = len(vectors.scores), str(refused)
        found.append(
            ReleaseCheck(
                engine=release.engine,
                versions=f">={release.version}{until}",
                setup=release.setup,
                right=wrong == 0,
                vectors=len(vectors.scores),
                wrong=wrong,
                missing=release.missing,
                error=error,
            )
        )
    return found


@contextmanager
def _as_parity_error(folder: Path) -> Iterator[None]:
    """Raise `ParityError` where an evaluator does not find in a file what it reads."""
    try:
        yield
    except RankwrightError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ParityError(
            f"{folder} has a file that its evaluator cannot read ({error!r}); export the model "
            "again."
        ) from error


def _open_export(
    folder: str | Path, target: Target | None
) -> tuple[Path, dict[str, Any], Target, Vectors]:
    """Return the path of an export, its export.json, its target and its vectors."""
    folder = Path(folder)
    about = _read_about(folder)
    target = target or registry.resolve("exports", about["format"])()
    _check_digests(folder, about)
    return folder, about, target, read_parity(folder / PARITY, len(about["features"]))


def _engine_target(target: Target) -> EngineTarget:
    if isinstance(target, EngineTarget):
        return target
    raise UsageError(f"{target.name} has no versions of an engine to choose from.")


def _release(target: Target, version: str | None) -> Release | None:
    if version is None and not isinstance(target, EngineTarget):
        return None
    return _engine_target(target).release(target.name, version)


def feature_names(ranker: Ranker) -> tuple[str, ...]:
    """Return feature names that every target accepts: letters, digits and _, each once."""
    given = getattr(ranker, "feature_names_in_", None)
    if given is None:
        return tuple(f"feature_{j}" for j in range(1, ranker.n_features_in_ + 1))
    seen, names = set(_RESERVED), []
    for j, name in enumerate(map(str, given), 1):
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = f"feature_{plain}" if not plain or plain[0].isdigit() else plain
        while plain.lower() in seen:
            plain = f"{plain}_{j}"
        seen.add(plain.lower())
        names.append(plain)
    return tuple(names)


# --- writing -------------------------------------------------------------------------------------


def _check_folder(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder.")
    if not folder.absolute().parent.is_dir():
        raise UsageError(f"{folder.absolute().parent} does not exist; make it first.")
    others = _other_files(folder)
    if others and not force:
        raise UsageError(
            f"{folder} holds other files, such as {min(others)}; name another folder, or use "
            "--force to write beside them."
        )


def _other_files(folder: Path) -> set[str]:
    """Return what a folder holds besides an earlier export."""
    if not folder.is_dir():
        return set()
    try:
        own = {ABOUT, *json.loads((folder / ABOUT).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        own = set()
    return {path.name for path in folder.iterdir()} - own


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files to a folder beside and give it its name; other files stay where they are."""
    folder = link_target(folder)
    try:
        with partial_beside(folder.absolute(), folder=True) as partial:
            made = partial / "export"
            made.mkdir()
            for name, content in files.items():
                (made / name).write_bytes(content)
            if _other_files(folder):  # one by one: meanwhile there is no export, never half of one
                (folder / ABOUT).unlink(missing_ok=True)
                for name in sorted(files, key=lambda name: name == ABOUT):
                    os.replace(made / name, folder / name)
            else:
                replace_folder(made, folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}.") from None


def _about(
    target: Target,
    job: Job,
    written: Written,
    vectors: Vectors,
    files: Mapping[str, bytes],
    version: str | None,
) -> dict[str, Any]:
    kinds = {kind: vectors.kinds.count(kind) for kind in dict.fromkeys(vectors.kinds)}
    inexact = 0
    forest = forest_in(job.model)
    if written.thresholds is not None and forest is not None:
        own = model_thresholds(forest, target.single)
        inexact = int((own != written.thresholds)[forest.splits].sum())
    return {
        "rankwright_export": FORMAT,
        "format": target.name,
        "name": job.title,
        "ranker": job.ranker.name,
        "model": job.model.family,
        "versions": {"rankwright": __version__, **versions()},
        **_engine(job, written, version),
        "data": job.ranker.data_digest_,
        "features": _features(job, written),
        "missing": written.missing,
        "precision": {
            "features": "float32" if target.single else "float64",
            "numbers": "float32" if written.epsilon == SINGLE else "float64",
            "largest_tolerance": float(vectors.tolerance.max(initial=0.0)),
            "inexact_thresholds": inexact,
        },
        "score": {
            "scale": written.scale,
            "offset": written.offset,
            "function": "sigmoid" if written.sigmoid else "identity",
        },
        "parity": {"file": PARITY, "vectors": len(vectors.kinds), "kinds": kinds},
        "evaluator": target.evaluator,
        **({"upload": list(written.upload)} if written.upload else {}),
        "notes": list(written.notes),
        **written.more,
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
    }


def _engine(job: Job, written: Written, version: str | None) -> dict[str, Any]:
    if job.release is None or written.oldest is None:
        return {}
    own = {"name": job.release.engine, "version": version or job.release.version}
    return {"engine": {**own, "oldest_version": written.oldest.version}}


def _features(job: Job, written: Written) -> list[dict[str, Any]]:
    takes = np.broadcast_to(written.takes_missing, len(job.names)).tolist()
    given, known = getattr(job.ranker, "feature_names_in_", None), job.categories
    return [
        {
            "name": name,
            "column": j,
            "in_training": str(j + 1) if given is None else str(given[j]),
            "may_be_missing": may,
            **({"categories": list(known[name].values)} if name in known else {}),
        }
        for j, (name, may) in enumerate(zip(job.names, takes, strict=True))
    ]


def versions() -> dict[str, str]:
    """Return the versions of the libraries that a model rests on."""
    from importlib.metadata import version

    return {name: version(name) for name in ("numpy", "lightgbm")}


# --- verifying -----------------------------------------------------------------------------------


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        whole = (
            about["rankwright_export"] == FORMAT
            and all(isinstance(feature["name"], str) for feature in about["features"])
            and all(Path(name).name == name for name in about["files"])
            and about["name"].isidentifier()
            and isinstance(about["format"], str)
        )
    except OSError:
        raise DataError(f"{folder} is not an export: it has no {ABOUT}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise ParityError(f"{path} is damaged, or of another version; export the model again.")
    return about


def _check_digests(folder: Path, about: Mapping[str, Any]) -> None:
    for name, digest in about["files"].items():
        path = folder / name
        if not path.is_file():
            raise ParityError(f"{path} is missing; export the model again.")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ParityError(f"{path} was altered after the export; export the model again.")


def _compare(where: str, vectors: Vectors, found: F64, hint: str) -> None:
    if found.shape != vectors.scores.shape:
        raise ParityError(
            f"{where}: the evaluator gave {len(found)} scores for {len(vectors.scores)} vectors."
        )
    off = ~(np.abs(found - vectors.scores) <= vectors.tolerance)
    if off.any():
        i = int(np.argmax(off))
        raise ParityError(
            f"{where} does not hold: {int(off.sum())} of {len(off)} vectors score differently, "
            f"first line {i + 1} of {PARITY} ({vectors.kinds[i]}): {_score(found[i])} where the "
            f"model has {float(vectors.scores[i])!r}.{hint}"
        )


def _score(found: float) -> str:
    return "an error" if np.isnan(found) else repr(float(found))

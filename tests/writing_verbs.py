"""Every command that writes, run where it cannot: on a full disk, in a folder that is read-only.

``python tests/writing_verbs.py full-disk FOLDER`` (or ``read-only``, or both with a comma between
them) runs each command once as usual, and again where it cannot write; it prints a JSON object with
what was wrong with each, "" where nothing was: another exit status than 2, more or less than one
sentence, a file that was changed or left. Names of commands may follow.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "cli")]

from command import run  # noqa: E402
from small_data import small_data  # noqa: E402

from rankwright.data.files import save  # noqa: E402

EXPORTS = ("c", "json", "lightgbm", "onnx", "python", "ranklib", "solr", "vespa")
CONVERTED = ("txt", "txt.gz", "csv", "tsv", "parquet", "arrow", "store")


def commands(folder):
    """Return the words of each command by its name; all write below ``folder / "out"``.

    ``TURN`` stands for 1 in the first turn and 2 in the second.
    """
    data, out = folder / "data.txt", folder / "out"
    given = ("--train", data, "--valid", folder / "valid.txt")
    found = {
        "train": ("train", "ranksvm", *given, "--save", out / "model.rw"),
        "checkpoint": (
            *("train", "lambdamart", *given, "--set", "n_estimators=5", "--every", 1),
            *("--resume", "--checkpoint", out / "kept"),
        ),
        "tune": ("tune", "ranksvm", *given, "--trials", 1, "--save", out / "tuned.rw"),
        "tune storage": (
            *("tune", "ranksvm", *given, "--trials", "TURN"),
            *("--storage", f"sqlite:///{out / 'tuning.db'}"),
        ),
        "tune journal": (
            *("tune", "ranksvm", *given, "--trials", "TURN", "--storage", out / "tuning.log"),
        ),
        "evaluate": ("evaluate", data, "--feature", 1, "--per-query", out / "per-query.tsv"),
        "compare cache": (
            *("compare", data, "--rankers", "ranksvm:l2=TURN", "--folds", 3),
            *("--cache", out / "cache"),
        ),
        "synthetic": ("synthetic", "mq2008", out / "made.txt", "--queries", 5),
        "ranklib": ("ranklib", "-train", data, "-ranker", 4, "-save", out / "ranklib.txt"),
        "ranklib score": (
            *("ranklib", "-load", folder / "ranklib.txt", "-rank", data),
            *("-score", out / "ranklib.scores"),
        ),
        "interleave": (
            *("interleave", folder / "model.rw", folder / "ranklib.txt", data),
            *("-o", out / "lists.jsonl"),
        ),
        "interleave plot": (
            *("interleave", "score", folder / "log.jsonl", "--plot", out / "verdict.svg"),
        ),
    }
    for ending in ("trec", "csv", "parquet", "scores"):
        words = ("rank", folder / "model.rw", data, "-o", out / f"ranking.{ending}")
        found[f"rank {ending}"] = words
    for ending in ("html", "tex", "md", "csv", "json"):
        found[f"compare {ending}"] = (
            *("compare", data, "--rankers", "ranksvm", "--folds", 3),
            *("--cache", folder / "cache", "-o", out / f"report.{ending}"),
        )
    for ending in CONVERTED:
        found[f"convert {ending}"] = ("convert", data, out / f"converted.{ending}")
    for target in EXPORTS:
        words = ("export", folder / "model.rw", "--to", target, "-o", out / f"export-{target}")
        found[f"export {target}"] = words
    return found


def prepare(folder, queries=6):
    """Write what the commands read."""
    data = small_data(queries=queries, documents=10, features=3)
    save(data, folder / "data.txt")
    save(small_data(queries=6, documents=10, features=3, seed=1), folder / "valid.txt")
    read = ("--train", folder / "data.txt")
    run("train", "lambdamart", "--set", "n_estimators=3", *read, "--save", folder / "model.rw")
    ranklib = ("-ranker", 4, "-save", folder / "ranklib.txt")
    run("ranklib", "-train", folder / "data.txt", *ranklib)
    how = {"method": "team_draft", "rankers": ["A", "B"]}
    shown = {"query": "q", "documents": ["a", "b"], "clicks": [1, 0], "teams": [0, 1]}
    (folder / "log.jsonl").write_text(json.dumps(shown | {"interleaving": how}))
    (folder / "out" / "kept").mkdir(parents=True)


def contents(folder):
    """Return a digest of every file below a folder, and None for every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
        if "cache" not in path.parts or ".partial" in str(path)  # of whole runs
    }


@contextmanager
def full_disk(folder):
    """Let no file grow over some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only(folder):
    """Let nothing be made or removed below a folder."""
    below = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in below:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in below:
            path.chmod(0o755)


OBSTACLES = {"full-disk": full_disk, "read-only": read_only}


def run_all(kinds, folder, names=()):
    """Run the commands in a process of their own, with each kind of obstacle.

    Returns what is wrong with each by its kind and name.
    """
    done = subprocess.run(
        [sys.executable, __file__, ",".join(kinds), str(folder), *names],
        capture_output=True,
        text=True,
        preexec_fn=forget_what_root_may,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def forget_what_root_may():
    """Take from root the right to write to read-only folders, in this process's programs."""
    if sys.platform == "linux" and os.geteuid() == 0:
        import ctypes

        libc, drop = ctypes.CDLL(None), 24  # PR_CAPBSET_DROP
        for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(drop, right, 0, 0, 0)


def attack(words, folder, obstacle):
    """Return what is wrong with a command that cannot write; "" where nothing is."""
    out = folder / "out"
    first, second = ([str(word).replace("TURN", turn) for word in words] for turn in "12")
    if "--checkpoint" not in words:  # which would have nothing left to do
        run("-q", *first)
    before = contents(out)
    with obstacle(out):
        try:
            done = run("-q", *second, code=2)
        except AssertionError as error:
            return str(error)[-400:]
        except BaseException as error:
            return repr(error)
    lines = done.stderr.strip().splitlines()
    if len(lines) != 1 or not lines[0].startswith("rankwright: ") or not lines[0].endswith("."):
        return f"said {done.stderr[-400:]}"
    after = contents(out)
    if after != before:
        return f"changed {sorted(set(after.items()) ^ set(before.items()))}"
    return ""


def main(kinds, given, *names):
    """Run commands with obstacles; print what is wrong with each."""
    found = {}
    for kind in kinds.split(","):
        folder = Path(given) / kind
        folder.mkdir()
        prepare(folder)
        every = commands(folder)
        chosen = names or tuple(every)
        found[kind] = {name: attack(every[name], folder, OBSTACLES[kind]) for name in chosen}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Change every part of model files of all families in turn, seal the files again, and use them.

``python -m every_damage FOLDER`` prints the families and the number of files; it ends
with a traceback, or a signal, if a file is neither used nor refused. FOLDER/last names it.
"""

import functools
import json
import random
import signal
import sys
import warnings
from contextlib import suppress
from pathlib import Path

from attack_models import join_model, split_model, use_model, write_models
from damage import NUMBERS, VALUES, array_changes
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from rankwright import registry
from rankwright.errors import RankwrightError
from rankwright.persist import model_file

ARRAYS = "arrays.safetensors"


def changed_parts(parts, rng, *, receipts):
    """Yield labels and the parts of a model file with one change.

    Without ``receipts`` the receipt, which is alike for all families, stays as it is.
    """
    if receipts:
        for label, receipt in _receipts(json.loads(parts["receipt"]), rng):
            yield f"receipt: {label}", {**parts, "receipt": json.dumps(receipt).encode()}
    arrays = load_arrays(parts[ARRAYS])
    for name in sorted(arrays):
        others = {key: array for key, array in arrays.items() if key != name}
        yield f"{name} dropped", {**parts, ARRAYS: save_arrays(others)}
        for label, array in array_changes(arrays[name], rng.randrange(2**32)):
            yield f"{name} {label}", {**parts, ARRAYS: save_arrays({**others, name: array})}
    for name in sorted(set(parts) - {"receipt"}):
        yield f"{name}: dropped", {key: content for key, content in parts.items() if key != name}
        yield f"{name}: cut off", {**parts, name: parts[name][: len(parts[name]) // 2]}
        if name != ARRAYS:
            for label, text in _texts(parts[name].decode(), rng):
                yield f"{name}: {label}", {**parts, name: text.encode()}


def _receipts(receipt, rng):
    for key in sorted(receipt):
        yield f"{key} dropped", {k: v for k, v in receipt.items() if k != key}
        value = rng.choice(VALUES)
        yield f"{key} = {value!r}", {**receipt, key: value}
    for count in (1, 5):
        yield f"{count} features", {**receipt, "n_features": count, "feature_names": None}
    for family in ("linear", "trees", "network", "kernel"):
        yield f"of the family {family}", {**receipt, "model": family}


def _texts(text, rng):
    """Yield texts that are empty or repeated, or with a line or number changed."""
    yield "empty", ""
    yield "something else", "x"
    yield "twice", text + text
    lines = text.split("\n")
    for key in dict.fromkeys(line.partition("=")[0] for line in lines if "=" in line):
        at = rng.choice([k for k, line in enumerate(lines) if line.startswith(f"{key}=")])
        yield f"{key} dropped", "\n".join(lines[:at] + lines[at + 1 :])
        yield f"{key} twice", "\n".join([*lines[:at], lines[at], *lines[at:]])
        for value in rng.sample(NUMBERS, 4):
            numbers = lines[at].partition("=")[2].split(" ")
            numbers[rng.randrange(len(numbers))] = value.decode()
            line = f"{key}={' '.join(numbers)}"
            yield f"{key} with {value!r}", "\n".join([*lines[:at], line, *lines[at + 1 :]])


def main(folder):
    """Use every damaged file, each with one export."""
    model_file.version = functools.cache(model_file.version)  # of libraries, read at each save
    warnings.simplefilter("ignore")
    paths, exports = write_models(folder), list(registry.EXPORTS)
    rng, count = random.Random(0), 0
    for path in paths:
        use_model(path)  # which compiles kernels
        receipts = path.stem in ("linear", "trees")
        for label, parts in changed_parts(split_model(path), rng, receipts=receipts):
            (folder / "last").write_text(f"{path.stem}: {label}")
            join_model(folder / "damaged.rw", parts)
            signal.setitimer(signal.ITIMER_PROF, 5.0)  # CPU time, after which the process ends
            with suppress(RankwrightError):
                use_model(folder / "damaged.rw", [exports[count % len(exports)]])
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            count += 1
    sys.stdout.write(" ".join([*sorted(path.stem for path in paths), str(count)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

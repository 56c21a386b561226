"""Use damaged inputs of one kind in this process, which a crash or a hang ends.

``python -m attack_process NAME FOLDER SECONDS SEED`` exits with 0 if each input was used
or refused with a `RankwrightError`; FOLDER/damaged holds the last one.
"""

import resource
import shutil
import signal
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from damage import damaged_parts
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from rankwright.errors import RankwrightError

ATTACKS = {
    "models": "attack_models:MODEL_FILES",
    "imported": "attack_models:IMPORTED",
    "checkpoints": "attack_models:CHECKPOINTS",
    "exports": "attack_models:EXPORTS",
    "formats": "attack_data:FORMATS",
    "stores": "attack_data:STORES",
    "feature_logs": "attack_data:FEATURE_LOGS",
    "click_logs": "attack_data:CLICK_LOGS",
    "kernels": "attack_data:KERNELS",
    "requests": "attack_server:REQUESTS",
}
HANG_SECONDS = 30.0  # of CPU time, in which a kernel can be compiled
MOST_BYTES = 4 << 30


def attack_named(name):
    """Return an attack of `ATTACKS`."""
    module, _, attribute = ATTACKS[name].partition(":")
    return getattr(import_module(module), attribute)


def write_whole(attack, folder):
    """Write whole inputs to a folder and use each, which must succeed; return their paths."""
    (folder / "whole").mkdir()
    paths = attack.write(folder / "whole")
    for path in paths:
        _use(attack, path)
    return paths


def _use(attack, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attack.use(path)


def damage_test(attack, whole, folder, hang_seconds=0.0, max_examples=200):
    """Return a property test: damaged inputs are used, or refused with a `RankwrightError`."""
    target = folder / "damaged"

    @settings(
        deadline=None,
        database=None,
        max_examples=max_examples,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def damaged_inputs_are_used_or_refused(data):
        path = data.draw(st.sampled_from(whole))
        parts = data.draw(damaged_parts(attack.split(path)))
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        attack.join(target / path.name, parts)
        signal.setitimer(signal.ITIMER_PROF, hang_seconds)  # which ends the process
        with suppress(RankwrightError):
            _use(attack, target / path.name)
        signal.setitimer(signal.ITIMER_PROF, 0.0)

    return damaged_inputs_are_used_or_refused


def main(name, folder, seconds, number):
    """Use damaged inputs until the time is over, each round with another seed."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    attack = attack_named(name)
    whole = write_whole(attack, folder)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        sys.stdout.write(f"seed {number}\n")
        sys.stdout.flush()
        seed(number)(damage_test(attack, whole, folder, HANG_SECONDS))()
        number += 1


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))

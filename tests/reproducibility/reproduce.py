"""Run ``python -m reproducibility`` as its users do."""

from functools import partial

import command

run = partial(command.run, module="reproducibility")
run_json = partial(command.run_json, module="reproducibility")
sentence = partial(command.sentence, module="reproducibility")

"""Damaged inputs of every kind are used or refused: no crash, no hang, no other exception."""

import pytest
from attack_process import ATTACKS, attack_named, damage_test, write_whole
from damage import Attack
from soak import SECONDS, SEED, run_program

from rankwright.errors import DataError

QUICK = ("formats", "stores", "feature_logs", "click_logs")


@pytest.mark.parametrize("name", QUICK)
def test_a_few_damaged_inputs_are_used_or_refused(name, tmp_path):
    attack = attack_named(name)
    damage_test(attack, write_whole(attack, tmp_path), tmp_path, max_examples=40)()


@pytest.mark.soak
@pytest.mark.parametrize("name", ATTACKS)
def test_damaged_inputs_are_used_or_refused(name, tmp_path):
    child = run_program("attack_process", name, tmp_path, SECONDS, SEED)
    output = child.stdout[-4000:] + child.stderr[-4000:]
    assert child.returncode == 0, f"status {child.returncode}, input {tmp_path}/damaged: {output}"


def test_an_exception_that_is_not_ours_fails(tmp_path):
    def write(folder):
        (folder / "one.txt").write_text("12 12 12")
        return [folder / "one.txt"]

    def use(path):
        if path.read_bytes() != b"12 12 12":
            raise KeyError("not ours")

    def refuse(path):
        raise DataError("refused.")

    damage_test(Attack(write, refuse), write(tmp_path), tmp_path)()
    with pytest.raises(KeyError):
        damage_test(Attack(write, use), write(tmp_path), tmp_path)()

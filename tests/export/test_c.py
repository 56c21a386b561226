"""C: one file that a compiler takes, with numbers to the last bit."""

import re

import pytest
from exported_models import of_rules, of_weights

from rankwright.errors import UsageError
from rankwright.export.folder import export_model, verify_export


def test_weights_are_written_to_the_last_bit(tmp_path):
    export_model(of_weights([0.1, -2.0]), "c", tmp_path / "out")
    text = (tmp_path / "out" / "rankwright_model.c").read_text()
    written = [float.fromhex(number) for number in re.findall(r"-?0x[\d.a-f]+p[+-]\d+", text)]
    assert {0.1, -2.0} <= set(written)


def test_without_a_compiler_there_is_a_sentence(tmp_path, monkeypatch):
    export_model(of_rules([(0, 0.5, 1.0)]), "c", tmp_path / "out")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(UsageError, match="needs a compiler"):
        verify_export(tmp_path / "out")

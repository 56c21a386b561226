"""RankLib's command line as a whole."""

from rankwright.ranklib.command import run
from rankwright.ranklib.flags import flags_help


def test_without_flags_all_are_listed(capsys):
    run([])
    assert capsys.readouterr().out == flags_help() + "\n"

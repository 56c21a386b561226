"""RankLib's flags: every one of them, with its defaults, and what is wrong with others."""

from dataclasses import fields

import pytest

from rankwright.errors import UsageError
from rankwright.ranklib.command import run
from rankwright.ranklib.flags import NAMES, Flags, flags_help, parse_flags

# every flag of RankLib 2.18, hidden ones included
RANKLIBS = (
    "-train -ranker -feature -metric2t -metric2T -gmax -qrel -silent -missingZero -validate "
    "-tvs -save -test -tts -norm -sparse -kcv -kcvmd -kcvmn -epoch -layer -node -lr -round -tc "
    "-noeq -tolerance -max -r -i -reg -tree -leaf -shrinkage -mls -estop -gcc -bag -srate "
    "-frate -rtype -L2 -load -rank -score -indri -idv -thread -hr -nf -keep -t"
)


def test_every_flag_of_ranklib_is_there_and_two_more():
    assert set(NAMES) == set(RANKLIBS.split()) | {"-seed", "--strict"}
    for spelling in NAMES:
        assert spelling in flags_help()


def test_defaults_are_ranklibs():
    flags = Flags()
    assert (flags.ranker, flags.metric2t, flags.gmax, flags.kcv) == (4, "ERR@10", 4.0, -1)
    assert (flags.layer, flags.node, flags.max, flags.restarts, flags.iterations) == (
        1,
        10,
        5,
        5,
        25,
    )
    assert (flags.shrinkage, flags.mls, flags.estop, flags.gcc) == (0.1, 1, 100, 100)
    assert (flags.bag, flags.srate, flags.frate, flags.rtype, flags.l2) == (300, 1.0, 0.3, 0, 1e-10)


def test_flags_are_read_in_any_case_save_the_two_metrics():
    flags = parse_flags(["-TRAIN", "a", "-metric2t", "MAP", "-metric2T", "P@5", "-l2", "0.5"])
    assert (flags.train, flags.metric2t, flags.metric2test, flags.l2) == ("a", "MAP", "P@5", 0.5)


def test_every_flag_is_taken_with_a_value():
    for about in fields(Flags):
        spelling, kind = about.metadata["spelling"], about.metadata["kind"]
        value = {"ranker": "6", "norm": "sum", "rtype": "6", "tvs": "0.5", "tts": "0.5"}
        given = [spelling] if kind is None else [spelling, value.get(about.name, "3")]
        assert getattr(parse_flags(given), about.name) != about.default or about.name == "layer"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["-trian", "f"], "there is no flag of RankLib '-trian'; did you mean -train"),
        (["-train"], "-train needs a value"),
        (["-tree", "many"], "-tree takes a whole number, not 'many'"),
        (["-shrinkage", "x"], "-shrinkage takes a number, not 'x'"),
        (["-ranker", "10"], "-ranker is 0 to 9, not 10"),
        (["-norm", "max"], "-norm is sum, zscore or linear"),
        (["-rtype", "1"], "-rtype is 0 .MART. or 6"),
        (["-tvs", "1.5"], "-tvs is a share"),
        (["-silent"], "there is nothing to do"),
        (["-test", "a", "-test", "b"], "there are 0 models and 2 test files"),
        (["-rank", "a", "-score", "b"], "-rank needs a model"),
        (["-metric2t", "AUC", "-test", "f"], "'AUC' is not a metric of RankLib"),
    ],
)
def test_what_is_wrong_with_flags_is_said(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        run(given)


@pytest.mark.parametrize("flag", ["-tree", "-leaf", "-round", "-bag"])
def test_none_of_a_thing_is_refused_and_not_taken_for_the_default(flag):
    with pytest.raises(UsageError, match=f"{flag} must be 1 or more, not 0"):
        parse_flags([flag, "0"])

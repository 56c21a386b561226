"""The public names are frozen, and cost nothing until they are used."""

import os
import subprocess
import sys

import pytest

import rankwright

HEAVY = {"numba", "sklearn", "lightgbm", "torch", "dask", "pandas", "scipy.optimize", "polars"}


def test_the_public_names():
    assert set(rankwright.__all__) == {
        "BoltzRank",
        "Classification",
        "CofiRank",
        "AdaRank",
        "Checkpoint",
        "Convention",
        "CoordinateAscent",
        "Domination",
        "DORM",
        "FRank",
        "GBDT",
        "GBRank",
        "IRSVM",
        "IntervalRank",
        "JRank",
        "LambdaMART",
        "LambdaRank",
        "LinearRegression",
        "ListMLE",
        "ListNet",
        "MEMR",
        "MMMF",
        "MR",
        "NDCGGLM",
        "PAMIR",
        "OrdinalSVM",
        "PRank",
        "RandomForest",
        "RankCosine",
        "RankGP",
        "RankBoost",
        "QueryFolds",
        "RankNet",
        "RankSVM",
        "Ranking",
        "RankingData",
        "SVMPrecision",
        "SVMROCArea",
        "SoftRank",
        "XENDCG",
        "auto",
        "compare",
        "evaluate",
        "explain",
        "joint_convexity",
        "load",
        "load_model",
        "loss",
        "metric",
        "ranker",
        "synthetic",
        "train_valid_test_split",
    }


@pytest.mark.parametrize("name", rankwright.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(rankwright, name).__doc__


def test_a_name_that_is_not_there_raises():
    with pytest.raises(AttributeError, match="no attribute 'rnaker'"):
        rankwright.rnaker  # noqa: B018


def loaded_by(*arguments):
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}


@pytest.mark.parametrize("arguments", [("-c", "import rankwright"), ("-m", "rankwright", "--help")])
def test_start_up_loads_none_of_the_heavy_packages(arguments):
    assert loaded_by(*arguments) & HEAVY == set()

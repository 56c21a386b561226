"""``rankwright rank``: documents without grades, and what a ranking is written as."""

import numpy as np
import pandas as pd
import pytest
from command import run, run_json, sentence

import rankwright as rw

rng = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "qid": np.repeat([f"q{number}" for number in range(6)], 5),
        "doc_id": [f"doc{number}" for number in range(30)],
        "bm25": rng.normal(size=30),
        "age": rng.normal(size=30),
    }
)
GRADES = (FRAME["bm25"] > 0).astype(int)
MIXED = FRAME.iloc[rng.permutation(30)[:15]]  # rows of a query lie apart


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One model whose features have names, one whose features have none."""
    folder = tmp_path_factory.mktemp("models")
    X = FRAME[["bm25", "age"]]
    named = rw.LinearRegression().fit(X, GRADES, qid=FRAME["qid"].to_numpy())
    plain = rw.LinearRegression().fit(X.to_numpy(), GRADES, qid=FRAME["qid"].to_numpy())
    named.save(folder / "named.rw")
    plain.save(folder / "plain.rw")
    return {"named": folder / "named.rw", "plain": folder / "plain.rw", "ranker": named}


@pytest.fixture
def expected(models):
    """Rows of `MIXED` in the order of the ranking: query after query, best first."""
    scores = models["ranker"].predict(MIXED[["bm25", "age"]])
    table = MIXED.assign(row=range(15), score=scores, first=0)
    table["first"] = table.groupby("qid")["row"].transform("min")
    table = table.sort_values(["first", "score"], ascending=[True, False], ignore_index=True)
    return table.assign(rank=table.groupby("first").cumcount() + 1)


def letor(path, grade=""):
    lines = (
        f"{grade}qid:{row.qid} 1:{row.bm25!r} 2:{row.age!r} # {row.doc_id}\n"
        for row in MIXED.itertuples()
    )
    path.write_text("".join(lines))
    return path


def lines_of(expected):
    rows = expected.itertuples()
    return [f"{r.qid} Q0 {r.doc_id} {r.rank} {r.score!r} rankwright" for r in rows]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow"])
def test_a_table_without_grades_and_with_other_columns(models, expected, tmp_path, suffix):
    table = MIXED.assign(title="red, shoes", price=1.0)[
        ["title", "age", "price", "doc_id", "bm25", "qid"]
    ]
    path = tmp_path / f"new{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path)
    elif suffix == ".arrow":
        table.reset_index(drop=True).to_feather(path)
    else:
        table.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    assert run("rank", models["named"], path).stdout.splitlines() == lines_of(expected)


@pytest.mark.parametrize("grades", ["", "?", "x"])
def test_grades_of_a_table_are_not_looked_at(models, expected, tmp_path, grades):
    MIXED.assign(label=grades).to_csv(tmp_path / "new.csv", index=False)
    found = run("rank", models["named"], tmp_path / "new.csv").stdout
    assert found.splitlines() == lines_of(expected)


@pytest.mark.parametrize("grade", ["", "0 "])
def test_letor_lines_without_grades(models, expected, tmp_path, grade):
    path = letor(tmp_path / "new.txt", grade)
    found = run("rank", models["plain"], path, alone=not grade).stdout
    assert found.splitlines() == lines_of(expected)
    found = run("rank", models["plain"], "-", stdin=path.read_text()).stdout
    assert found.splitlines() == lines_of(expected)


def test_lines_without_grades_are_only_ranked(tmp_path):
    path = letor(tmp_path / "new.txt")
    assert "line 1: the grade before 'qid:" in sentence("inspect", path)
    assert rw.load(path, grades=False).y.tolist() == [0] * 15


def test_a_table_whose_features_have_no_names(models, expected, tmp_path):
    table = MIXED.rename(columns={"bm25": "f1", "age": "f2"}).assign(title="red shoes")
    table.to_csv(tmp_path / "new.csv", index=False)
    found = run("rank", models["plain"], tmp_path / "new.csv").stdout
    assert found.splitlines() == lines_of(expected)


def test_a_feature_that_is_missing_is_named(models, tmp_path):
    MIXED.rename(columns={"bm25": "bm52"}).to_csv(tmp_path / "new.csv", index=False)
    reported = sentence("rank", models["named"], tmp_path / "new.csv")
    assert "there is no column 'bm25'; did you mean bm52?" in reported


@pytest.mark.parametrize("options", [("a.csv",), ("a.tsv",), ("a.parquet",), ("a", "--to", "csv")])
def test_a_ranking_as_a_table(models, expected, tmp_path, options):
    MIXED.to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / options[0]
    reported = run_json("rank", models["named"], tmp_path / "new.csv", "-o", output, *options[1:])
    assert (reported["queries"], reported["documents"]) == (MIXED["qid"].nunique(), 15)
    if output.suffix == ".parquet":
        found = pd.read_parquet(output)
    else:
        found = pd.read_csv(output, sep="\t" if output.suffix == ".tsv" else ",")
    assert found.columns.tolist() == ["qid", "row", "rank", "score", "doc_id"]
    pd.testing.assert_frame_equal(found, expected[found.columns])


@pytest.mark.parametrize("options", [("a.scores",), ("a", "--to", "scores")])
def test_scores_come_one_per_line_in_the_order_of_rows(models, tmp_path, options):
    MIXED.to_csv(tmp_path / "new.csv", index=False)
    run("rank", models["named"], tmp_path / "new.csv", "-o", tmp_path / options[0], *options[1:])
    found = [float(line) for line in (tmp_path / options[0]).read_text().splitlines()]
    assert found == models["ranker"].predict(MIXED[["bm25", "age"]]).tolist()


def test_what_rank_writes_evaluate_reads(models, tmp_path):
    MIXED.to_csv(tmp_path / "new.csv", index=False)
    rows = zip(FRAME["qid"], FRAME["doc_id"], GRADES, strict=True)
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows))
    found = []
    for name in ("a.txt", "a.csv", "a.parquet"):
        run("rank", models["named"], tmp_path / "new.csv", "-o", tmp_path / name)
        judged = ("--run", tmp_path / name, "--qrels", tmp_path / "qrels")
        found.append(run_json("evaluate", *judged)["metrics"])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--to", "xlsx"), "there is no format of a ranking 'xlsx'"),
        (("--to", "scores", "--top", 3), "a file of scores has every row: leave out --top"),
        (("-o", "a.csv", "--dask", "local:1"), "--dask writes TREC runs, not csv"),
    ],
)
def test_mistakes_are_one_sentence(options, expected):
    assert expected in sentence("rank", "model.rw", "absent.txt", *options)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_queries_are_found_in_the_column_of_the_training_data(tmp_path, suffix):
    table = FRAME.rename(columns={"qid": "search"}).assign(query="one text", label=GRADES)
    path = tmp_path / f"data{suffix}"
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    model = tmp_path / "model.rw"
    drop = ["--read", "drop=query"]
    found = ["--read", "qid=search"]
    run("train", "linear_regression", "--train", path, *drop, *found, "--save", model)
    expected = run("rank", model, path, *found).stdout
    assert len({line.split()[0] for line in expected.splitlines()}) == 6
    assert run("rank", model, path).stdout == expected
    output = tmp_path / "run.txt"
    run("rank", model, path, "-o", output)
    assert output.read_text() == expected
    assert run_json("evaluate", path, "--load", model, *drop)["queries"] == 6
    assert "query q3" in run("explain", model, path, "--query", "q3", *drop).stdout

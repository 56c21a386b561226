"""Every preset reproduces the numbers of the tool it is named after.

The numbers were printed by the tools themselves (the folder ``golden`` beside the real data); those
of scikit-learn, SciPy and LightGBM are computed here as well.
"""

import json
import lzma
import re

import numpy as np
import pytest
from golden_files import RANKERS

from rankwright.data.ranking_data import RankingData
from rankwright.metrics.evaluation import evaluate

KS = range(1, 11)


def grades_only(lines):
    """Grades and query ids of a LETOR file."""
    fields = [line.split(None, 2) for line in lines if line.strip()]
    y = [float(field[0]) for field in fields]
    qid = [field[1].removeprefix("qid:") for field in fields]
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=qid)


def of_xz(path):
    with lzma.open(path, "rt") as stream:
        return grades_only(stream)


# --- the official LETOR scripts --------------------------------------------------------------


def letor3_tables(path):
    """{"precision": (queries, 10), "Map": (queries, 1), "NDCG": ...} and the line of means."""
    tables, means = {}, {}
    for line in path.read_text().splitlines():
        head, _, rest = line.partition(":")
        values = [float(x) for x in rest.split()]
        if values and " of query" in head:
            tables.setdefault(head.partition(" of ")[0].lower(), []).append(values)
        elif values:
            means[head.lower()] = values
    return {key: np.array(rows) for key, rows in tables.items()}, means


def letor4_tables(path):
    """{"P@1": {qid or "Average": value}}."""
    table, names = {}, []
    for line in path.read_text().splitlines():
        cells = line.split("\t")
        if cells[0] == "qid":
            names = cells[1:]
        elif len(cells) == len(names) + 1:
            for name, value in zip(names, cells[1:], strict=True):
                table.setdefault(name, {})[cells[0]] = float(value)
    return table


def test_letor3(data_dir, golden_dir):
    data = of_xz(data_dir / "OHSUMED_LETOR3/QueryLevelNorm/S5.txt.xz")
    scores = np.loadtxt(golden_dir / "letor/ohsumed.scores.txt")
    tables, means = letor3_tables(golden_dir / "letor/ohsumed.letor3.txt")
    found = evaluate(data, scores, "p@1:10,ndcg@1:10,map", convention="letor3")
    ours = {
        "precision": [f"p@{k}" for k in KS],
        "ndcg": [f"ndcg@{k}" for k in KS],
        "map": ["map"],
    }
    assert set(tables) == set(means) == set(ours)
    for key, names in ours.items():
        per_query = np.column_stack([found.per_query[name] for name in names])
        np.testing.assert_allclose(per_query, tables[key], atol=2e-15)  # 15 digits are printed
        np.testing.assert_allclose([found[name] for name in names], means[key], atol=2e-15)


@pytest.mark.parametrize(
    ("convention", "data_file", "name"),
    [
        ("letor4", "MQ2008/S5.txt.xz", "mq2008"),
        ("mslr", "OHSUMED_LETOR3/QueryLevelNorm/S5.txt.xz", "ohsumed"),
    ],
)
def test_letor4_and_mslr(data_dir, golden_dir, convention, data_file, name):
    data = of_xz(data_dir / data_file)
    scores = np.loadtxt(golden_dir / f"letor/{name}.scores.txt")
    golden = letor4_tables(golden_dir / f"letor/{name}.{convention}.txt")
    found = evaluate(data, scores, "p@1:10,map,ndcg@1:10,ndcg", convention=convention)
    assert len(golden) == len(found) == 22
    for printed, values in golden.items():
        ours = "ndcg" if printed == "MeanNDCG" else printed.lower()
        expected = [values[qid] for qid in data.qid.tolist()]
        np.testing.assert_allclose(found.per_query[ours], expected, atol=5.1e-5)
        assert f"{found[ours]:.4f}" == f"{values['Average']:.4f}"


# --- RankLib ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def ranklib_test(golden_dir):
    return grades_only((golden_dir / "ranklib/test.txt").read_text().splitlines())


@pytest.mark.parametrize("ranker", RANKERS)
def test_ranklib_to_the_last_digit(golden_dir, ranklib_test, ranker):
    folder = golden_dir / "ranklib" / ranker
    lines = (folder / "scores.txt").read_text().splitlines()
    scores = [float(line.split("\t")[2]) for line in lines]
    files = sorted(folder.glob("idv.*.txt"))
    assert len(files) == 7
    for path in files:
        printed = path.name.removeprefix("idv.").removesuffix(".txt")
        name = re.sub("^rr", "mrr", printed.lower())
        found = evaluate(ranklib_test, scores, name, convention="ranklib")
        rows = [line.split() for line in path.read_text().splitlines()]
        assert [row[1] for row in rows] == [*ranklib_test.qid.tolist(), "all"]
        values = [float(row[2]) for row in rows]
        assert found.per_query[name].tolist() == values[:-1]
        assert found[name] == pytest.approx(values[-1], rel=1e-14)
        metrics = (folder / "metrics.txt").read_text()
        mean = re.search(rf"^{printed} on test data: (.*)$", metrics, re.MULTILINE)[1]
        assert found[name] == pytest.approx(float(mean), abs=5.1e-5)


# --- the same arrays through other tools -----------------------------------------------------


@pytest.fixture(scope="session")
def golden(golden_dir):
    return json.loads((golden_dir / "metrics.json").read_text())


@pytest.fixture(scope="session")
def arrays(golden):
    sizes = [len(labels) for labels in golden["labels"]]
    y, s = np.concatenate(golden["labels"]), np.concatenate(golden["scores"])
    names = [f"d{i:02d}" for size in sizes for i in range(size)]
    x = np.zeros((len(y), 1))
    return RankingData.from_arrays(x, y, group_sizes=sizes, doc_id=names), s


OUR_NAMES = {
    "lightgbm 4.7.0": {
        **{f"ndcg@{k}": f"ndcg@{k}" for k in (1, 3, 5, 10)},
        **{f"map@{k}": f"map@{k}" for k in (1, 3, 5, 10)},
    },
    "xgboost 3.2.0": {
        **{f"ndcg@{k}": f"ndcg@{k}" for k in (1, 3, 5, 10)},
        "ndcg": "ndcg",
        "ndcg@5-": "ndcg@5-",
        "ndcg@10-": "ndcg@10-",
        "map (labels>0)": "map",
        "map@5 (labels>0)": "map@5",
        "map- (labels>0)": "map-",
        "pre@5 (labels>0)": "p@5",
    },
    "catboost 1.2.10": {
        "NDCG": "ndcg",
        "NDCG:top=5": "ndcg@5",
        "NDCG:top=5;type=Exp": "ndcg(gain=exp2)@5",
        "NDCG:top=10;type=Exp": "ndcg(gain=exp2)@10",
        "NDCG:type=Exp;denominator=Position": "ndcg(gain=exp2,discount=reciprocal)",
        "DCG:top=5;type=Exp": "dcg(gain=exp2)@5",
        "MAP:top=5": "map@5",
        "PrecisionAt:top=5": "p@5",
        "RecallAt:top=5": "recall@5",
        "MRR": "mrr",
    },
    "trec_eval via pytrec_eval (doc names dNN by file order)": {
        "map": "map",
        "ndcg": "ndcg",
        "ndcg_cut_5": "ndcg@5",
        "ndcg_cut_10": "ndcg@10",
        "P_5": "p@5",
        "P_10": "p@10",
        "recip_rank": "mrr",
        "recall_5": "recall@5",
        "Rprec": "rprec",
        "bpref": "bpref",
        "map_cut_5": "map@5",
    },
    "ranx": {
        "ndcg@5": "ndcg@5",
        "ndcg@10": "ndcg@10",
        "ndcg": "ndcg",
        "ndcg_burges@5": "ndcg(gain=exp2)@5",
        "ndcg_burges@10": "ndcg(gain=exp2)@10",
        "map": "map",
        "mrr": "mrr",
        "precision@5": "p@5",
        "recall@5": "recall@5",
        "r-precision": "rprec",
        "dcg@5": "dcg@5",
        "rbp.80": "rbp(p=0.8)",
    },
}


@pytest.mark.parametrize("tool", ["lightgbm 4.7.0", "xgboost 3.2.0", "catboost 1.2.10"])
def test_means_of_the_boosting_libraries(golden, arrays, tool):
    names = OUR_NAMES[tool]
    assert set(names) == set(golden["tools"][tool])
    found = evaluate(*arrays, list(names.values()), convention=tool.partition(" ")[0])
    for theirs, ours in names.items():
        assert found[ours] == pytest.approx(golden["tools"][tool][theirs], rel=1e-14), theirs


@pytest.mark.parametrize("ids", [True, False], ids=["with document ids", "without"])
def test_trec_eval_per_query(golden, arrays, ids):
    tool = "trec_eval via pytrec_eval (doc names dNN by file order)"
    data, s = arrays
    if not ids:
        data = RankingData.from_arrays(data.X, data.y, group_sizes=data.sizes)
    assert set(OUR_NAMES[tool]) == set(golden["tools"][tool])
    found = evaluate(data, s, list(OUR_NAMES[tool].values()), convention="trec_eval")
    for theirs, ours in OUR_NAMES[tool].items():
        np.testing.assert_allclose(
            found.per_query[ours], golden["tools"][tool][theirs], rtol=1e-12, err_msg=theirs
        )


def test_scikit_learn_per_query(golden, arrays):
    values = golden["tools"]["scikit-learn 1.9.1"]
    assert len(values) == 10
    for theirs, expected in values.items():
        expected = np.array(expected, float)
        k = re.search(r"k=(\w+)", theirs)[1]
        at = "" if k == "None" else f"@{k}"
        if theirs.startswith("ndcg_score k"):
            found = evaluate(*arrays, f"ndcg{at}", convention="sklearn").per_query[f"ndcg{at}"]
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=theirs)
        else:  # ignore_ties leaves their order to an unstable sort
            low, high = (
                evaluate(*arrays, name, convention="sklearn").per_query[name]
                for name in (f"ndcg(gain=exp2,ties=worst){at}", f"ndcg(gain=exp2,ties=best){at}")
            )
            kept = ~np.isnan(expected)
            np.testing.assert_array_equal(np.isnan(low), ~kept)
            assert (low[kept] - 1e-12 <= expected[kept]).all()
            assert (expected[kept] <= high[kept] + 1e-12).all()
            assert (high[kept] - low[kept] < 1e-12).sum() >= 18


def test_ranx_within_the_interval_of_its_undefined_ties(golden, arrays):
    names, values = OUR_NAMES["ranx"], golden["tools"]["ranx"]
    assert set(names) == set(values)
    found = evaluate(*arrays, list(names.values()), convention="ranx")
    intervals = found.tie_intervals()
    untied = 0
    for theirs, ours in names.items():
        low, _, high = intervals[ours]
        assert low - 1e-12 <= values[theirs] <= high + 1e-12, theirs
        if high - low < 1e-12:  # no tie straddles the cut
            untied += 1
            assert found[ours] == pytest.approx(values[theirs], rel=1e-12), theirs
    assert untied >= 6


# --- tools that are here ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def tied():
    """Lists of 2 to 30 documents with tied scores, each with grades 0 and more."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 30, 60)
    y = rng.integers(0, 3, sizes.sum()).astype(float)
    y[np.cumsum(sizes) - 1], y[np.cumsum(sizes) - sizes] = 2, 0
    data = RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=sizes)
    return data, rng.integers(0, 8, len(y)).astype(float)


def each_query(function, data, s):
    ends = data.indptr[1:-1]
    return [function(y, x) for y, x in zip(np.split(data.y, ends), np.split(s, ends), strict=True)]


def test_scikit_learn_with_ties(tied):
    from sklearn import metrics as theirs

    found = evaluate(*tied, "ndcg@5,dcg@7,ndcg,map,auc", convention="sklearn").per_query
    same = {
        "ndcg@5": lambda y, s: theirs.ndcg_score([y], [s], k=5),
        "ndcg": lambda y, s: theirs.ndcg_score([y], [s]),
        "dcg@7": lambda y, s: theirs.dcg_score([y], [s], k=7),
        "map": lambda y, s: theirs.average_precision_score(y >= 1, s),
        "auc": lambda y, s: theirs.roc_auc_score(y >= 1, s),
    }
    for name, function in same.items():
        np.testing.assert_allclose(found[name], each_query(function, *tied), rtol=1e-12)


def test_scipy_kendall_and_somers(tied):
    from scipy import stats

    found = evaluate(*tied, "kendall,pair_error").per_query
    tau = each_query(lambda y, s: stats.kendalltau(y, s).statistic, *tied)
    np.testing.assert_allclose(found["kendall"], tau, rtol=1e-12)
    somers = np.array(each_query(lambda y, s: stats.somersd(y, s).statistic, *tied))
    varied = ~np.isnan(tau)  # SciPy has no value where all scores are equal
    assert varied.sum() > 50
    ours = 1 - 2 * found["pair_error"][varied]
    np.testing.assert_allclose(ours, somers[varied], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm_and_its_unweighted_empty_queries(weighted):
    import lightgbm

    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 20, 50)
    y = rng.integers(0, 4, sizes.sum()).astype(float)
    for q in (3, 8, 20):  # empty queries
        y[np.cumsum(sizes)[q - 1] : np.cumsum(sizes)[q]] = 0
    s = rng.permutation(len(y)).astype(float)
    weight = rng.uniform(0.5, 2, len(sizes)) if weighted else None
    rows = None if weight is None else np.repeat(weight, sizes)
    data = lightgbm.Dataset(
        s[:, None], y, group=sizes, weight=rows, init_score=s, params={"verbose": -1}
    )
    found = {}
    lightgbm.train(
        {
            "objective": "lambdarank",
            "metric": ["ndcg", "map"],
            "eval_at": [1, 3, 10],
            "learning_rate": 1e-9,
            "verbose": -1,
            "num_threads": 1,
        },
        data,
        1,
        valid_sets=[data],
        callbacks=[lightgbm.record_evaluation(found)],
    )
    ours = RankingData.from_arrays(s[:, None], y, group_sizes=sizes, query_weight=weight)
    (theirs,) = found.values()
    values = evaluate(ours, s, list(theirs), convention="lightgbm")
    for name, (value,) in theirs.items():
        assert values[name] == pytest.approx(value, rel=1e-6), name

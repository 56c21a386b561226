"""Runs with missing, unjudged and tied documents: our figures beside those of trec_eval's code."""

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rankwright as rw

THEIRS = {
    "ndcg": "ndcg",
    "ndcg@1": "ndcg_cut_1",
    "ndcg@3": "ndcg_cut_3",
    "map": "map",
    "map@2": "map_cut_2",
    "p": "set_P",
    "p@2": "P_2",
    "p@5": "P_5",
    "recall": "set_recall",
    "recall@2": "recall_2",
    "f1": "set_F",
    "rprec": "Rprec",
    "mrr": "recip_rank",
    "bpref": "bpref",
    "hit@1": "success_1",
    "hit@3": "success_3",
}
_MEASURES = {
    "ndcg", "ndcg_cut.1,3", "map", "map_cut.2", "set_P", "P.2,5", "set_recall", "recall.2", "set_F",
    "Rprec", "recip_rank", "bpref", "success.1,3",
}  # fmt: skip

# Few documents and few scores: most pairs of a run and its judgments differ in what they hold,
# and ties abound. 1 + 1e-9 is 1 in single precision, in which trec_eval compares scores.
DOCUMENTS = st.sampled_from(["d1", "d10", "d2", "D3", "é", "x-7"])
SCORES = st.sampled_from([-1.0, 0.0, 1.0, 1.0 + 1e-9, 2.5, 1e-3])
QUERIES = st.sampled_from(["1", "2", "q3", "q4"])


def by_document(values, **size):
    return st.dictionaries(QUERIES, st.dictionaries(DOCUMENTS, values, **size), min_size=1)


def without_negative(qrels):
    """Return judgments without negative ones, on which pytrec_eval overwrites its memory.

    A query keeps a judgment, of a document that is not retrieved, so that it counts.
    """
    kept = {q: {d: g for d, g in docs.items() if g >= 0} for q, docs in qrels.items()}
    return {q: docs or {"unretrieved": 0} for q, docs in kept.items()}


def theirs(run, qrels, level, complete):
    """Means over queries as the main program of trec_eval takes them."""
    evaluator = pytrec_eval.RelevanceEvaluator(
        without_negative(qrels), _MEASURES, relevance_level=level
    )
    found = evaluator.evaluate(run)
    queries = list(qrels) if complete else list(found)
    means = {
        name: sum(found[q][key] if q in found else 0.0 for q in queries) / max(len(queries), 1)
        for name, key in THEIRS.items()
    }
    return found, queries, means


@settings(max_examples=300, deadline=None)
@given(
    run=by_document(SCORES),
    qrels=by_document(st.integers(-2, 4), min_size=1),
    level=st.integers(1, 3),
    complete=st.booleans(),
)
@example(
    run={"q3": {"d1": 1.0, "d2": 1.0, "x-7": 1.0 + 1e-9}},
    qrels={"q3": {"d1": 0, "d10": 3, "x-7": 2}, "q4": {"d1": -1}},
    level=1,
    complete=True,
)
@pytest.mark.filterwarnings("ignore:no document of the run is judged")
@pytest.mark.filterwarnings("ignore:the run is empty")
@pytest.mark.filterwarnings("ignore:the run and the judgments have no query in common")
def test_every_shared_metric_of_random_runs(run, qrels, level, complete):
    found, queries, means = theirs(run, qrels, level, complete)
    if not queries:
        with pytest.raises(rw.errors.DataError, match="no query in common"):
            rw.evaluate_run(run, qrels)
        return
    ours = rw.evaluate_run(
        run, qrels, list(THEIRS), complete=complete, relevance_level=level, n_jobs=1
    )
    assert sorted(ours.qid.tolist()) == sorted(queries)
    assert set(ours.left_out) == (set(run) | set(qrels)) - set(queries)
    for name, key in THEIRS.items():
        expected = [found[q][key] if q in found else 0.0 for q in ours.qid.tolist()]
        np.testing.assert_allclose(ours.per_query[name], expected, atol=1e-12, err_msg=name)
        assert ours[name] == pytest.approx(means[name], abs=1e-12), name


def large(seed):
    """Return a run of 40 queries with up to 300 documents, and judgments of half as many."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(40):
        names = [f"doc{number}" for number in rng.permutation(600)]
        scores = np.round(rng.normal(size=rng.integers(1, 300)), 1)  # tied
        run[f"r{query}"] = dict(zip(names, scores.tolist(), strict=False))
        judged = rng.permutation(names)[:150].tolist()
        grades = rng.choice([-1, 0, 0, 0, 1, 2, 3], size=150).tolist()
        qrels[f"r{query + 5}"] = dict(zip(judged, grades, strict=True))
    return run, qrels


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("level", [1, 2])
def test_every_shared_metric_of_long_runs(level, complete, tmp_path):
    run, qrels = large(level)
    _, queries, means = theirs(run, qrels, level, complete)
    assert len(queries) == (40 if complete else 35)
    options = {"complete": complete, "relevance_level": level}
    ours = rw.evaluate_run(run, qrels, list(THEIRS), **options)
    assert dict(ours) == pytest.approx(means, abs=1e-12)
    (tmp_path / "a.run").write_text(
        "".join(f"{q} Q0 {d} 0 {s!r} t\n" for q, docs in run.items() for d, s in docs.items())
    )
    (tmp_path / "a.qrels").write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, docs in qrels.items() for d, g in docs.items())
    )
    files = tmp_path / "a.run", tmp_path / "a.qrels"
    assert dict(rw.evaluate_run(*files, list(THEIRS), **options)) == dict(ours)


def test_ir_measures_counts_every_judged_query():
    run, qrels = large(7)
    theirs = {
        "ndcg@10": ir_measures.nDCG @ 10,
        "map(min_grade=2)": ir_measures.AP(rel=2),
        "mrr": ir_measures.RR,
        "bpref": ir_measures.Bpref,
    }
    expected = ir_measures.calc_aggregate(theirs.values(), without_negative(qrels), run)
    ours = rw.evaluate_run(run, qrels, list(theirs), complete=True)
    assert dict(ours) == pytest.approx({name: expected[key] for name, key in theirs.items()})


def test_a_reciprocal_rank_that_is_cut_off():
    """trec_eval has none: its own, 0 beyond the cut-off; without ties also that of MS MARCO.

    The script of MS MARCO, which ir_measures calls for RR@5, puts the lowest of tied ids first.
    """
    run, qrels = large(7)
    found, _, _ = theirs(run, qrels, 1, complete=False)
    whole = [values["recip_rank"] for values in found.values()]
    expected = sum(value for value in whole if value > 1 / 6 + 1e-9) / len(qrels)
    ours = rw.evaluate_run(run, qrels, "mrr@5", complete=True)
    assert ours["mrr@5"] == pytest.approx(expected)
    for documents in run.values():
        documents.update({doc: float(n) for n, doc in enumerate(documents)})
    measure = ir_measures.RR @ 5
    expected = ir_measures.calc_aggregate([measure], without_negative(qrels), run)[measure]
    ours = rw.evaluate_run(run, qrels, "mrr@5", complete=True)
    assert ours["mrr@5"] == pytest.approx(expected)


def test_a_negative_judgment_is_none():
    """What trec_eval's code gave for these: bpref passes over b and e, all else has them at 0."""
    run = {"q": {"b": 5, "c": 4, "a": 3, "x": 2, "e": 1}}
    with_c = {"q": {"a": 1, "b": -1, "c": 0, "d": 2, "e": -2}}
    without_c = {"q": {"a": 1, "b": -1, "d": 2}}
    found = rw.evaluate_run(run, with_c, "map,bpref,p,f1,ndcg,mrr")
    ideal = 2 + 1 / np.log2(3)
    expected = [(1 / 3) / 2, 0, 1 / 5, 2 / 7, (1 / np.log2(4)) / ideal, 1 / 3]
    assert list(found.values()) == pytest.approx(expected)
    assert rw.evaluate_run(run, without_c, "bpref")["bpref"] == 1 / 2


# --- names of other tools ----------------------------------------------------------------------


NAMES = [
    "P_5", "P_10", "ndcg_cut_10", "ndcg", "map", "map_cut_5", "recip_rank", "Rprec", "bpref",
    "recall_100", "success_1", "set_P", "set_recall", "set_F", "11pt_avg", "num_ret", "num_rel_ret",
    *(f"iprec_at_recall_{level / 10:.2f}" for level in range(11)),
]  # fmt: skip
SUMS = ("num_ret", "num_rel_ret")


def by_their_names(run, qrels, level):
    """Values of each query and summaries by pytrec_eval, under trec_eval's names."""
    judgments = without_negative(qrels)
    measures = pytrec_eval.supported_measures  # with their usual cut-offs
    evaluator = pytrec_eval.RelevanceEvaluator(judgments, measures, relevance_level=level)
    found = evaluator.evaluate(run)
    sums = {name: sum(values[name] for values in found.values()) for name in [*NAMES, "gm_map"]}
    n = len(found)
    means = {name: sums[name] if name in SUMS else sums[name] / n for name in NAMES}
    return found, means | {"gm_map": np.exp(sums["gm_map"] / n)}


@settings(max_examples=100, deadline=None)
@given(
    run=by_document(SCORES, min_size=1),
    qrels=by_document(st.integers(-2, 4), min_size=1),
    level=st.integers(1, 3),
)
@example(run=large(3)[0], qrels=large(3)[1], level=2)
@pytest.mark.filterwarnings("ignore:no document of the run is judged")
def test_the_names_of_trec_eval_have_its_values(run, qrels, level):
    if not run.keys() & qrels.keys():
        return
    found, means = by_their_names(run, qrels, level)
    ours = rw.evaluate_run(run, qrels, [*NAMES, "gm_map"], relevance_level=level, n_jobs=1)
    for name in NAMES:
        expected = [found[q][name] for q in ours.qid.tolist()]
        np.testing.assert_allclose(ours.per_query[name], expected, atol=1e-12, err_msg=name)
    assert dict(ours) == pytest.approx(means, abs=1e-12)


OF_IR_MEASURES = [
    "nDCG@10", "nDCG", "nDCG(dcg='exp-log2')@10", "AP", "AP@5", "AP(rel=2)", "RR", "P@5",
    "P(rel=2)@5", "R@10", "Rprec", "Bpref", "Success@1", "IPrec@0.1", "IPrec@0.5", "SetP", "SetR",
    "SetF", "NumRet", "NumRet(rel=1)", "Judged@10",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_names_of_ir_measures_have_its_values(seed):
    """Its own summaries, in which every judged query counts."""
    run, qrels = ({q[1:]: docs for q, docs in part.items()} for part in large(seed))
    for documents in run.values():  # Judged has another order of ties
        documents.update({doc: float(n) for n, doc in enumerate(documents)})
    theirs = {name: ir_measures.parse_measure(name) for name in OF_IR_MEASURES}
    expected = ir_measures.calc_aggregate(theirs.values(), without_negative(qrels), run)
    ours = rw.evaluate_run(run, without_negative(qrels), OF_IR_MEASURES, complete=True)
    for name, measure in theirs.items():
        digits = 1e-5 if "exp" in name else 1e-9  # gdeval prints five digits
        assert ours[name] == pytest.approx(expected[measure], abs=digits), name
    relevant = sum(g >= 1 for documents in qrels.values() for g in documents.values())
    found = rw.evaluate_run(run, qrels, "NumRel", complete=True)
    assert found["NumRel"] == relevant  # ir_measures does not count queries that are not in the run


def test_the_example_of_ir_measures():
    """The run and judgments of its documentation, https://ir-measur.es/en/latest/."""
    qrels = {"Q0": {"D0": 0, "D1": 1}, "Q1": {"D0": 0, "D3": 2}}
    run = {"Q0": {"D0": 1.2, "D1": 1.0}, "Q1": {"D0": 2.4, "D3": 3.6}}
    names = ["nDCG@20", "P(rel=1)@10", "AP", "RR"]
    theirs = {name: ir_measures.parse_measure(name) for name in names}
    expected = ir_measures.calc_aggregate(theirs.values(), qrels, run)
    ours = rw.evaluate_run(run, qrels, names)
    assert dict(ours) == pytest.approx({name: expected[m] for name, m in theirs.items()})

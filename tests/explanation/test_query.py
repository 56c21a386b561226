"""The ranking of a query, split against its mean, in the caller's names."""

import pytest
from explained import DATA, fitted_of

import rankwright
from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.explanation import explain


def test_the_ranking_of_a_query_is_split_against_its_mean():
    fitted = fitted_of("trees")
    found = explain(fitted, DATA, query=DATA.qid[0])
    s = fitted.predict(DATA)[: DATA.indptr[1]]
    assert [standing.place.rank for standing in found.documents] == list(range(1, len(s) + 1))
    for standing in found.documents:
        row = int(standing.place.document) - 1
        assert standing.above_mean == pytest.approx(s[row] - s.mean(), abs=1e-6)
        assert sum(standing.parts.values()) == pytest.approx(standing.above_mean, abs=1e-6)


def test_names_of_documents_queries_and_features_are_the_callers():
    names = ("price", "margin", "weight_kg", "age", "size", "stock")
    data = RankingData.from_arrays(
        DATA.X[:9], DATA.y[:9], qid=["q"] * 9, doc_id=list("abcdefghi"), feature_names=names
    )
    fitted = rankwright.ranker("ranksvm").fit(data)
    text = str(explain(fitted, data, query="q", docs=("a", "b")))
    assert text.startswith("query q: ")
    assert "ranks above" in text
    assert "they swap when" in text
    assert any(name in text for name in names)
    with pytest.raises(UsageError, match=r"query q has no document 'z'; it has a, b, c, d"):
        explain(fitted, data, query="q", docs=("a", "z"))
    with pytest.raises(UsageError, match="there is no query 'r'; the data has q"):
        explain(fitted, data, query="r")


@pytest.mark.parametrize(("count", "shown"), [(5, "a, b, c, d, e"), (6, "a, b, c, d, e, …")])
def test_an_unknown_document_is_reported_with_the_first_that_are_there(count, shown):
    names = list("abcdefgh"[:count])
    data = RankingData.from_arrays(DATA.X[:count], DATA.y[:count], qid=["q"] * count, doc_id=names)
    fitted = rankwright.ranker("ranksvm").fit(data)
    with pytest.raises(UsageError, match=f"it has {shown}$"):
        explain(fitted, data, query="q", docs=("z",))


def test_what_cannot_be_explained_is_reported():
    with pytest.raises(UsageError, match="one or two documents, not 3"):
        explain(fitted_of("linear"), DATA, query=DATA.qid[0], docs=(1, 2, 3))
    with pytest.raises(UsageError, match="name one document"):
        explain(fitted_of("linear"), DATA, query=DATA.qid[0], against=fitted_of("trees"))
    users = registry.resolve("rankers", "cofirank")().fit(DATA)
    with pytest.raises(UsageError, match="scores users and items"):
        explain(users, DATA, query=DATA.qid[0], docs=(1, 2))

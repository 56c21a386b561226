"""Feature sets to log with: the names in their order, in the form that each engine takes."""

import json

import pytest

from rankwright.errors import UsageError
from rankwright.export.feature_sets import ENGINES, feature_set

NAMES = ["title_bm25", "body_bm25"]


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_the_plugins_take_a_templated_query_per_feature(engine):
    features = json.loads(feature_set(NAMES, engine))["featureset"]["features"]
    assert [feature["name"] for feature in features] == NAMES
    assert features[0]["template"] == {"match": {"title_bm25": "{{keywords}}"}}
    assert features[0]["params"] == ["keywords"]


def test_solr_takes_features_of_a_store():
    features = json.loads(feature_set(NAMES, "solr", title="films"))
    assert [(one["name"], one["store"]) for one in features] == [(name, "films") for name in NAMES]
    assert features[1]["params"] == {"q": "{!field f=body_bm25}${keywords}"}


def test_vespa_logs_functions_and_rank_features():
    text = feature_set(["title_bm25", "bm25(body)"], "vespa", title="logging")
    assert text == (
        "rank-profile logging {\n"
        "    function title_bm25() {\n        expression: bm25(title_bm25)\n    }\n"
        "    first-phase {\n        expression: nativeRank\n    }\n"
        "    match-features {\n        title_bm25\n        bm25(body)\n    }\n}\n"
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_names_that_engines_refuse_are_refused(engine):
    for names in (["a-b"], ["1"], ["a", "a"], ["a b"], [""]):
        with pytest.raises(UsageError, match="the feature name"):
            feature_set(names, engine)
    with pytest.raises(UsageError, match="no engine with feature sets 'sol'; did you mean solr"):
        feature_set(NAMES, "sol")

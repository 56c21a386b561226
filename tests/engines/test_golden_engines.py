"""The readers behind ``verify`` answer as the engines' own code did, mistakes included.

``golden/engines`` has models that were exported by version 0.1.0, and the scores that the published
classes of each engine gave them; its README says how each engine was fed.
"""

import json

import numpy as np
import pytest

from rankwright import registry
from rankwright.export import ltr_plugin
from rankwright.export.target import ParityError

MODELS = (
    "lambdamart", "linear_regression", "memr", "random_forest", "rankboost", "ranknet",
    "ranksvm_std",
)  # fmt: skip
RELEASES = {
    "elasticsearch-ltr-1.5.12": ("elasticsearch", "9.0.8"),
    "elasticsearch-ltr-1.5.8": ("elasticsearch", "8.9.2"),
    "opensearch-ltr-main": ("opensearch", "3.8.0"),
    "opensearch-ltr-3.8.0": ("opensearch", "3.8.0"),
    "opensearch-ltr-3.7.0": ("opensearch", "3.7.0"),
    "opensearch-ltr-3.1.0": ("opensearch", "3.1.0"),
    "solr-10.0.0": ("solr", "10.0.0"),
    "solr-9.1.1": ("solr", "9.1.1"),
    "ranklib-2.18": ("ranklib", "2.18"),
    "vespa-8.738-java": ("vespa", "8.738"),
}
SETUPS = {
    "": "",
    "nan": "",  # the script answers NaN, or its 'missing'
    "absent": "features by queries",
    "missingZero": "-missingZero",
}
TARGETS = ("elasticsearch", "opensearch", "ranklib", "solr", "vespa")
CASES = [(target, model) for target in TARGETS for model in MODELS]
VARIANTS = [
    ("ranklib", "ranklib-key0", "linear_regression"),
    ("solr", "solr-missing", "lambdamart"),
    ("solr", "solr-missing", "random_forest"),
    ("solr", "solr-missing", "rankboost"),
]


@pytest.fixture(scope="module")
def golden(golden_dir):
    return golden_dir / "engines"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def vectors_of(golden, model):
    """Return the features of each vector, NaN where missing."""
    rows = [line["features"] for line in lines_of(golden / "vectors" / f"{model}.jsonl")]
    return np.array([[np.nan if x is None else x for x in row] for row in rows], float)


def release_of(target, column):
    """Return the release whose answers a column of ``scores.jsonl`` has."""
    engine, _, setup = column.partition(":")
    name, version = RELEASES[engine]
    since = target.release(name, version).since
    (found,) = [
        own for own in target.releases
        if (own.engine, own.since, own.setup) == (name, since, SETUPS[setup])
    ]  # fmt: skip
    return found


def reader_scores(target, release, folder, about, X):
    """Return the reader's scores; of the LTR plugins, those of the ranker alone."""
    if not isinstance(target, ltr_plugin.LtrPlugin):
        return target.scores_on(release, folder, about, X)
    names = [feature["name"] for feature in about["features"]]
    features = ltr_plugin.read_features(folder / "featureset.json", names)
    x, _ = ltr_plugin.feature_values(features, names, X, release.unset)
    own = [feature.name for feature in features]
    return ltr_plugin.model_scores(folder / "model.json", own, x, release)


def check(golden, to, model, folder):
    """Compare the reader with every column of the scores in ``folder``."""
    target = registry.resolve("exports", to)()
    about = json.loads((golden / to / model / "export.json").read_text())
    X, rows = vectors_of(golden, model), lines_of(folder / "scores.jsonl")
    refused = json.loads((golden / "refused.json").read_text())
    refused = refused.get(folder.relative_to(golden).as_posix(), {})
    columns = [key for key in rows[0] if key not in ("id", "expected")]
    for column in columns:
        release = release_of(target, column)
        if column in refused:
            with pytest.raises(ParityError, match="would be refused"):
                reader_scores(target, release, folder, about, X)
            continue
        answers = [row[column] for row in rows]  # numbers, "NaN", or an error
        wanted = np.array([np.nan if isinstance(a, dict) else float(a) for a in answers])
        found = reader_scores(target, release, folder, about, X)
        # Vespa's exp is Java's
        np.testing.assert_allclose(
            found, wanted, rtol=3e-16 if to == "vespa" else 0.0, atol=0.0, err_msg=column
        )
    return columns


@pytest.mark.parametrize(("to", "model"), CASES)
def test_a_reader_scores_as_its_engine_did(golden, to, model):
    columns = check(golden, to, model, golden / to / model)
    versions = {"elasticsearch": 2, "opensearch": 4, "ranklib": 1, "solr": 2, "vespa": 1}
    assert len({column.partition(":")[0] for column in columns}) == versions[to]


@pytest.mark.parametrize(("to", "variant", "model"), VARIANTS)
def test_a_reader_scores_better_files_as_its_engine_did(golden, to, variant, model):
    assert check(golden, to, model, golden / "variants" / variant / model)


def test_every_engine_that_was_run_has_a_release(golden):
    assert json.loads((golden / "engines.json").read_text()).keys() == RELEASES.keys()

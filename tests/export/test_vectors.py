"""Parity vectors: beside every threshold, with the model's scores, and read back as written."""

import numpy as np
import pytest
from exported_models import chain, fitted_rankers, of_rules

from rankwright.export.folder import PARITY, export_model
from rankwright.export.target import ParityError
from rankwright.export.vectors import parity_text, read_parity


@pytest.fixture
def path(tmp_path):
    export_model(of_rules([(0, 0.5, 1.0), (1, 3.0, 4.0)], initial=0.25), "json", tmp_path / "out")
    return tmp_path / "out" / PARITY


def test_thresholds_are_met_from_both_sides_with_the_scores_of_the_model(path):
    vectors = read_parity(path, 2)
    for feature, threshold in ((0, 0.5), (1, 3.0)):
        x = vectors.X[:, feature]
        assert (x == threshold).any()
        assert (x == np.nextafter(threshold, np.inf)).any()
    first, second = (vectors.X > [0.5, 3.0]).T  # a missing value exceeds nothing
    np.testing.assert_allclose(vectors.scores, 0.25 + first + 4.0 * second, rtol=1e-15)
    assert {"random", "threshold", "missing"} <= set(vectors.kinds)


def test_a_split_that_no_number_reaches_makes_no_infinite_vector(tmp_path):
    ranker, highest = chain(2), np.finfo(np.float64).max
    forest = ranker.model_
    forest.threshold[0], forest.feature[1] = highest, 1
    export_model(ranker, "json", tmp_path / "out")
    assert not np.isinf(read_parity(tmp_path / "out" / PARITY, 2).X).any()


def test_a_target_that_ends_in_a_sigmoid_has_its_scores(tmp_path):
    ranker = fitted_rankers()["network-sigmoid"]
    about = export_model(ranker, "ranklib", tmp_path / "out")
    assert about["score"]["function"] == "sigmoid"
    vectors = read_parity(tmp_path / "out" / PARITY, ranker.model_.n_features)
    raw = about["score"]["scale"] * ranker.model_.scores(vectors.X) + about["score"]["offset"]
    np.testing.assert_allclose(vectors.scores, 1 / (1 + np.exp(-raw)), rtol=1e-12)


def test_they_come_back_as_written(path):
    assert parity_text(read_parity(path, 2)) == path.read_text()


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"kind": "random", "features": [1.0]}', b"\xff"])
def test_what_is_no_vector_is_named_with_its_line(path, line):
    path.write_bytes(path.read_bytes().splitlines()[0] + b"\n" + line + b"\n")
    with pytest.raises(ParityError, match=rf"{PARITY}, line 2: this is no parity vector"):
        read_parity(path, 2)


def test_bytes_that_are_no_text_are_refused(path):
    path.write_bytes(path.read_bytes()[:20] + b"\xff\n")
    with pytest.raises(ParityError, match=rf"{PARITY}, line 1: this is no parity vector"):
        read_parity(path, 2)
    path.unlink()
    with pytest.raises(ParityError, match="cannot be read: No such file"):
        read_parity(path, 2)


def test_a_file_without_vectors_is_refused(path):
    path.write_text("")
    with pytest.raises(ParityError, match="has no vectors; export the model again"):
        read_parity(path, 2)

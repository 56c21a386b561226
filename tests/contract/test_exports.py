"""Every target holds what it claims, scores as the model does, and refuses the rest."""

import sys

import numpy as np
import pytest
from cases import each
from exported_models import fitted_rankers, scored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankwright import registry
from rankwright.errors import MissingExtraError, UsageError
from rankwright.export.folder import PARITY, export_model, verify_export
from rankwright.export.target import ParityError
from rankwright.models.portable import portable
from rankwright.testing import check_export
from rankwright.testing import exports as contract

SUBPROCESS = {"c", "lightgbm", "python"}  # too slow to be called a hundred times
CASES = [
    "linear", "linear-listnet", "linear-intercept", "linear-zero", "linear-mean", "trees",
    "trees-gaps", "trees-initial", "trees-categories", "trees-forest", "additive", "additive-gaps",
    "network-flat", "network-relu", "network-elu", "network-tanh", "network-sigmoid",
    "linear-blend", "trees-blend", "network-blend", "blend", "blend-smooth", "blend-gaps",
]  # fmt: skip
REFUSED = {
    "elasticsearch": {"blend"},
    "lightgbm": {"linear", "network", "blend"},
    "opensearch": {"blend"},
    "ranklib": {"blend"},
    "solr": {"blend"},
    "xgboost-json": {"network", "blend"},
}
NO_CATEGORIES = {
    "elasticsearch", "onnx", "opensearch", "ranklib", "solr", "vespa", "xgboost-json",
}  # fmt: skip
SIGMOID_ALONE = {"elasticsearch", "opensearch", "ranklib"}


@pytest.fixture(scope="session")
def rankers():
    found = fitted_rankers()
    assert list(found) == CASES
    return found


def is_held(to, case):
    family = case.partition("-")[0]
    if family in REFUSED.get(to, ()) or (case == "trees-categories" and to in NO_CATEGORIES):
        return False
    if family == "network" and to in SIGMOID_ALONE:
        return case in ("network-flat", "network-sigmoid", "network-blend")
    return not (to == "solr" and case == "network-elu")


def two_held(rankers, to):
    """Return two rankers that the target holds, of trees where it holds them."""
    first, second = [case for case in ("trees", "trees-initial", *CASES) if is_held(to, case)][:2]
    return rankers[first], rankers[second]


@pytest.mark.parametrize("to", registry.EXPORTS)
def test_every_export_keeps_what_exports_promise(to):
    check_export(to)


@pytest.mark.parametrize("to", registry.EXPORTS)
@each("case", CASES)
def test_an_export_verifies_or_is_refused_with_a_sentence(rankers, tmp_path, to, case):
    target = registry.resolve("exports", to)()
    folder = tmp_path / case / "out"
    folder.parent.mkdir()
    if not is_held(to, case):
        contract.refuse_unheld(target, rankers[case], folder)
        return
    about = contract.verify_written(target, rankers[case], folder)
    if case.startswith(("trees", "additive")) and case != "trees-categories":
        assert about["parity"]["kinds"]["threshold"] > 30


@pytest.mark.parametrize("to", registry.EXPORTS)
def test_the_families_a_target_names_are_those_it_holds(to):
    target = registry.resolve("exports", to)()
    assert target.name == to
    families = {"linear", "additive", "trees", "network", "blend"}
    assert target.families == families - REFUSED.get(to, set())


ODD = [
    (to, case)
    for to in sorted(registry.EXPORTS.keys() - SUBPROCESS)
    for case in ("linear-mean", "trees-gaps", "additive-gaps", "network-sigmoid", "blend-gaps")
    if is_held(to, case)
]


@pytest.mark.parametrize(("to", "case"), ODD)
def test_odd_vectors_score_as_in_the_model(rankers, tmp_path_factory, to, case):
    ranker, folder = rankers[case], tmp_path_factory.mktemp("odd") / "out"
    about = export_model(ranker, to, folder)
    target = registry.resolve("exports", to)()
    single = about["precision"]["features"] == "float32"
    may = np.array([feature["may_be_missing"] for feature in about["features"]])
    forest = case.startswith(("trees", "additive"))
    number = (
        st.floats(-1e6, 1e6, width=32) if not forest else st.floats(-(2.0**100), 2.0**100, width=32)
    )
    # numbers this near to 0 are between Solr's thresholds, and 0 for LightGBM
    number = number.map(lambda x: 0.0 if abs(x) < 1e-5 else x)
    rows = st.lists(
        st.lists(number | st.just(float("nan")), min_size=5, max_size=5), min_size=1, max_size=20
    )

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(rows)
    def check(sampled):
        X = np.array(sampled)
        X = np.where(np.isnan(X) & ~may, 1.0, X)
        raw = ranker.model_.scores(X)
        score = about["score"]
        expected = raw * score["scale"] + score["offset"]
        if score["function"] == "sigmoid":
            expected = 1.0 / (1.0 + np.exp(-expected))
        epsilon = 2.0**-23 if single else 2.0**-52
        allowed = abs(score["scale"]) * portable(ranker._fitted(), ranker.model_name).error(
            X, epsilon
        ) + epsilon * (np.abs(expected) + 4.0)
        found = target.scores(folder, about, X)
        assert (np.abs(found - expected) <= allowed).all()

    check()


def test_a_blend_of_several_kinds_is_refused_with_who_holds_it(rankers, tmp_path):
    sentence = (
        r"solr holds one kind of model, and this blend has parts of several \(linear, trees and "
        r"network\); export it to c, json, onnx, python or vespa, blend members of one kind"
    )
    with pytest.raises(UsageError, match=sentence):
        export_model(rankers["blend"], "solr", tmp_path / "out")


def test_trees_and_weights_of_a_blend_are_merged(rankers):
    def parts(case):
        return portable(rankers[case]._fitted(), "blend")

    trees = [len(parts(case).roots) for case in ("trees-gaps", "additive-gaps", "trees-forest")]
    assert len(parts("trees-blend").roots) == sum(trees)
    assert parts("linear-blend").family == "linear"
    assert [part.family for part in parts("blend").parts] == ["linear", "trees", "network"]
    gaps = [part.family for part in parts("blend-gaps").parts]
    assert gaps == ["linear", "linear", "trees", "network"]  # missing values count differently


# --- what verify refuses ---------------------------------------------------------------------


@pytest.mark.parametrize("to", registry.EXPORTS)
def test_an_altered_file_is_refused(rankers, tmp_path, to):
    target = registry.resolve("exports", to)()
    contract.alter_each(target, two_held(rankers, to)[0], tmp_path / "out")


@pytest.mark.parametrize("to", registry.EXPORTS)
def test_scores_that_are_not_the_models_are_found_by_the_replay(rankers, tmp_path, to):
    """Another model's export under this one's vectors, sealed again."""
    target = registry.resolve("exports", to)()
    contract.swap_models(target, *two_held(rankers, to), tmp_path)


@pytest.mark.parametrize("to", sorted(registry.EXPORTS.keys() - {"python", "c"}))
def test_a_file_cut_in_half_is_refused_by_its_reader(rankers, tmp_path, to):
    about = export_model(two_held(rankers, to)[0], to, tmp_path / "out")
    model = max(
        (tmp_path / "out" / name for name in about["files"] if name != PARITY),
        key=lambda path: path.stat().st_size,
    )
    content = model.read_bytes()
    model.write_bytes(content[: len(content) // 2])
    contract.reseal(tmp_path / "out")
    with pytest.raises(ParityError, match=r"[.…]$|:"):
        verify_export(tmp_path / "out")


@pytest.mark.parametrize(("to", "package"), [("onnx", "onnxruntime"), ("xgboost-json", "xgboost")])
def test_an_evaluator_that_is_not_installed_is_named(rankers, tmp_path, monkeypatch, to, package):
    export_model(rankers["trees"], to, tmp_path / "out")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"needs {package}.*pip install"):
        verify_export(tmp_path / "out")


@pytest.mark.parametrize("to", registry.EXPORTS)
def test_the_same_model_gives_the_same_bytes(rankers, tmp_path, to):
    target = registry.resolve("exports", to)()
    contract.write_twice(target, two_held(rankers, to)[0], tmp_path)


OF_EACH_FAMILY = {
    "trees": ("lambdamart", {"n_estimators": 30}),
    "linear": ("ranksvm", {}),
    "additive": ("rankboost", {"n_rounds": 50}),
    "network": ("ranknet", {"hidden_layer_sizes": (8,), "activation": "sigmoid", "epochs": 5}),
}


@pytest.fixture(scope="module")
def on_ohsumed(ohsumed):
    """Rankers of each family and real documents in float32."""
    import rankwright as rw

    train = rw.load(ohsumed / "Fold1" / "train.txt")
    documents = rw.load(ohsumed / "Fold1" / "vali.txt").with_n_features(train.n_features)
    made = {f: rw.ranker(name, **own).fit(train) for f, (name, own) in OF_EACH_FAMILY.items()}
    return made, documents, np.asarray(documents.X, np.float32).astype(float)


@pytest.mark.parametrize("to", registry.EXPORTS)
@each("family", OF_EACH_FAMILY)
def test_real_models_order_real_documents_alike(on_ohsumed, tmp_path, to, family):
    made, documents, X = on_ohsumed
    if family in REFUSED.get(to, ()):
        return  # test_an_export_verifies_or_is_refused_with_a_sentence has it
    found, about = scored(made[family], to, tmp_path / family, X)
    raw = made[family].model_.scores(X) * about["score"]["scale"] + about["score"]["offset"]
    if about["score"]["function"] == "sigmoid":
        raw = 1.0 / (1.0 + np.exp(-raw))
    near = 4 * about["precision"]["largest_tolerance"]
    for a, b in zip(documents.indptr[:-1], documents.indptr[1:], strict=True):
        apart = raw[a:b, None] - raw[None, a:b] > near
        assert (found[a:b, None] > found[None, a:b])[apart].all()
    assert np.abs(found - raw).max() <= about["precision"]["largest_tolerance"]


@pytest.mark.parametrize("family", OF_EACH_FAMILY)
def test_a_model_that_ranklib_wrote_can_be_exported_again(on_ohsumed, tmp_path, family):
    from rankwright.ranklib.conversion import load_ranklib

    made, _, X = on_ohsumed
    first, _ = scored(made[family], "ranklib", tmp_path / "ranklib", X)
    again = load_ranklib(tmp_path / "ranklib" / "model.txt")
    for to in ("json", "c"):
        found, _ = scored(again, to, tmp_path / to, X)
        verify_export(tmp_path / to)
        assert found == pytest.approx(first, abs=1e-4 * np.abs(first).max())

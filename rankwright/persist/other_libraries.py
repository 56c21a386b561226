"""Models of LightGBM, XGBoost and CatBoost as fitted rankers: from their files or their objects.

Nothing is unpickled and none of the libraries is needed for a file. What is read is checked before
it is scored, since kernels check no bounds.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright import registry
from rankwright.core.types import FittedModel
from rankwright.errors import IncompatibleError, MissingExtraError, RankwrightError, UsageError
from rankwright.persist.container import ModelFileError
from rankwright.persist.imported import ImportedModel

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_FIRST_BYTES = 4096
_BEGINNINGS = (
    (rb"tree\r?\nversion=", "LightGBM"),
    (rb"\{L\0\0\0\0\0\0\0.(learner|version)", "XGBoost"),
    (rb'\s*\{\s*"(learner"|version"\s*:\s*\[)', "XGBoost"),
    (rb'\s*\{\s*"(features_info|oblivious_trees|ctr_data|scale_and_bias|model_info)"', "CatBoost"),
    (rb'\s*\{\s*"trees"\s*:\s*\[\s*\{\s*"(left|right|split|value|weight)"', "CatBoost"),
)
_FAULTS = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


def library_of(path: str | Path) -> str | None:
    """Return the library whose model a file holds, by its first bytes; None where it is another."""
    try:
        with Path(path).open("rb") as stream:
            first = stream.read(_FIRST_BYTES)
    except OSError:
        return None
    return next((name for known, name in _BEGINNINGS if re.match(known, first)), None)


def read_other(path: str | Path) -> ImportedModel | None:
    """Return the model of a file of another library; None where the file is none."""
    library = library_of(path)
    if library is None:
        return None
    try:
        return _reader(library)(Path(path).read_bytes())
    except (RankwrightError, *_FAULTS) as fault:
        raise _refused(str(path), library, fault) from None


def import_model(model: Any, *, categories: Sequence[str] | None = None) -> Ranker:
    """Return a model of LightGBM, XGBoost or CatBoost as a fitted ranker.

    It scores as the library does, to the last bit: ``predict`` gives what the library calls raw
    scores (margins), which for ranking and regression objectives are its predictions. Its trees
    are those that the object's own ``predict`` takes, up to the best iteration where it stops
    there.

    Parameters
    ----------
    model : lightgbm.Booster or LGBMModel, xgboost.Booster or XGBModel, catboost.CatBoost
        Fitted; `load_model` reads their files.
    categories : list of str, optional
        Columns of the type category in the frame that LightGBM was trained on, in order. Models
        of LightGBM contain the categories without the names of their columns; without this
        list, an imported model takes the codes of the categories.

    Examples
    --------
    >>> import lightgbm, numpy as np, rankwright as rw
    >>> X, y = np.random.default_rng(0).normal(size=(40, 3)), np.tile([0, 1, 2, 3], 10)
    >>> booster = lightgbm.LGBMRanker(n_estimators=5, verbose=-1).fit(X, y, group=[20, 20])
    >>> ranker = rw.import_model(booster)
    >>> bool((ranker.predict(X) == booster.predict(X)).all())
    True
    """
    if isinstance(model, str | Path):
        raise UsageError("import_model takes a fitted object; rankwright.load_model reads a file.")
    for package, (library, taken) in _OBJECTS.items():
        if package in _packages(model):
            if categories is not None and library != "LightGBM":
                raise UsageError(
                    f"categories= is for models of LightGBM; one of {library} holds its own."
                )
            more = {} if categories is None else {"frame_columns": list(categories)}
            try:
                return as_ranker(taken(model, **more))
            except (RankwrightError, *_FAULTS) as fault:
                raise _refused(f"this {type(model).__name__}", library, fault) from None
    raise UsageError(
        "import_model takes a fitted model of LightGBM, XGBoost or CatBoost, not "
        f"{type(model).__name__}."
    )


def is_importable(model: Any) -> bool:
    """Whether an object is one of those that `import_model` takes."""
    return not _packages(model).isdisjoint(_OBJECTS)


def _packages(model: Any) -> set[str]:
    """Return the packages that the classes of an object come from; none is imported for it."""
    return {kind.__module__.partition(".")[0] for kind in type(model).__mro__}


def as_ranker(imported: ImportedModel) -> Ranker:
    """Return an imported model as a fitted ranker."""
    from rankwright.models.imported_trees import ImportedTrees

    part = ImportedTrees(imported.library, imported.objective)
    made: Ranker = registry.resolve("rankers", "ranker")(loss=None, model=part)
    give_model(made, imported.model, best_iteration=imported.rounds)
    if imported.names is not None:
        made.feature_names_in_ = np.array(imported.names, object)
    if imported.categories:
        made.categories_ = dict(imported.categories)
    return made


def give_model(ranker: Ranker, model: FittedModel, *, best_iteration: int) -> None:
    """Make a ranker one that was fitted, with a model that came from elsewhere."""
    ranker.model_ = model
    ranker.n_features_in_ = model.n_features
    ranker.data_digest_ = ""
    ranker.curve_, ranker.evals_result_ = {}, {}
    ranker.best_iteration_ = best_iteration
    ranker.interrupted_ = False


def _reader(library: str) -> Callable[..., ImportedModel]:
    if library == "LightGBM":
        from rankwright.persist.lightgbm_model import read_lightgbm

        return read_lightgbm
    if library == "XGBoost":
        from rankwright.persist.xgboost_model import read_xgboost

        return read_xgboost
    from rankwright.persist.catboost_model import read_catboost

    return read_catboost


def _refused(what: str, library: str, fault: Exception) -> RankwrightError:
    """Return the one sentence on a model that cannot be imported."""
    if isinstance(fault, IncompatibleError):
        return IncompatibleError(f"{what} is a model of {library} that cannot be imported: {fault}")
    if isinstance(fault, UsageError | MissingExtraError):
        return fault
    reason = f"{fault}" if isinstance(fault, RankwrightError) else f"{type(fault).__name__} {fault}"
    return ModelFileError(
        f"{what} is a model of {library} that is damaged, or of another version: "
        f"{reason[:200].rstrip('.')}; save it again with {library}."
    )


# --- objects -----------------------------------------------------------------------------------


def _from_lightgbm(model: Any, frame_columns: Sequence[str] | None = None) -> ImportedModel:
    if not hasattr(model, "model_to_string"):  # of scikit-learn's interface
        if not model.__sklearn_is_fitted__():
            raise _not_fitted(model)
        model = model.booster_
    content = model.model_to_string().encode()  # up to its best iteration
    return _reader("LightGBM")(content, frame_columns)


def _from_xgboost(model: Any) -> ImportedModel:
    from rankwright.persist.xgboost_model import model_of

    booster, rounds = model, None
    if hasattr(model, "get_booster"):  # of scikit-learn's interface
        if not model.__sklearn_is_fitted__():
            raise _not_fitted(model)
        if not np.isnan(model.missing):
            raise UsageError(
                f"this {type(model).__name__} takes {model.missing} for a missing value, which a "
                "ranker does not; train it on data with NaN in its place."
            )
        booster = model.get_booster()
        best = booster.attr("best_iteration")
        rounds = None if best is None else int(best) + 1
    return model_of(json.loads(booster.save_raw("json")), rounds)


def _from_catboost(model: Any) -> ImportedModel:
    if not model.is_fitted():
        raise _not_fitted(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception as fault:  # of categories, whose tables it cannot write without data
            raise IncompatibleError(
                f"CatBoost cannot write it as JSON ({str(fault).splitlines()[-1][:120]}); train on "
                "numeric features."
            ) from None
        return _reader("CatBoost")(path.read_bytes())


def _not_fitted(model: Any) -> UsageError:
    return UsageError(f"this {type(model).__name__} is not fitted yet: call its fit first.")


_OBJECTS: dict[str, tuple[str, Callable[..., ImportedModel]]] = {
    "lightgbm": ("LightGBM", _from_lightgbm),
    "xgboost": ("XGBoost", _from_xgboost),
    "catboost": ("CatBoost", _from_catboost),
}

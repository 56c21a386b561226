"""Import models of LightGBM, XGBoost and CatBoost, from files or objects, as fitted rankers.

Nothing is unpickled. Files do not need the libraries, except ``.ubj`` files of XGBoost. Models are
checked before scoring, because kernels check no bounds.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
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
_ERRORS = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


def library_of(path: str | Path) -> str | None:
    """Return the library of a model file, by its first bytes; None for other files."""
    try:
        with Path(path).open("rb") as stream:
            first = stream.read(_FIRST_BYTES)
    except OSError:
        return None
    return next((name for pattern, name in _BEGINNINGS if re.match(pattern, first)), None)


def read_other(
    path: str | Path, *, categories: Sequence[str] | None = None
) -> ImportedModel | None:
    """Return the model of a file of another library; None for other files.

    ``categories`` is as in `import_model`.
    """
    library = library_of(path)
    if library is None:
        return None
    options = _category_options(library, categories)
    try:
        return _reader(library)(Path(path).read_bytes(), **options)
    except (RankwrightError, *_ERRORS) as error:
        raise _import_error(str(path), library, error) from None


def import_model(model: Any, *, categories: Sequence[str] | None = None) -> Ranker:
    """Return a model of LightGBM, XGBoost or CatBoost as a fitted ranker.

    The scores are equal to the scores of the library, bit for bit: ``predict`` returns raw scores
    (margins), which are the predictions of ranking and regression objectives. The number of trees
    is as in ``predict`` of the library, for example up to the best iteration.

    Parameters
    ----------
    model : lightgbm.Booster or LGBMModel, xgboost.Booster or XGBModel, catboost.CatBoost
        Fitted; `load_model` reads their files.
    categories : list of str, optional
        Names of the columns of the type category in the frame that LightGBM was trained on. Its
        models contain the categories without the names of their columns; without this list, an
        imported model takes the codes of the categories.

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
    for package, (library, read) in _OBJECTS.items():
        if package in _packages(model):
            options = _category_options(library, categories)
            try:
                return as_ranker(read(model, **options))
            except (RankwrightError, *_ERRORS) as error:
                raise _import_error(f"this {type(model).__name__}", library, error) from None
    raise UsageError(
        "import_model takes a fitted model of LightGBM, XGBoost or CatBoost, not "
        f"{type(model).__name__}."
    )


def _category_options(library: str, categories: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the options of the reader of a library, which only LightGBM's has."""
    if categories is None:
        return {}
    if library != "LightGBM":
        raise UsageError(
            f"categories= is for models of LightGBM; models of {library} contain theirs."
        )
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise UsageError(f"categories= takes a list of names: [{categories!r}].")
    return {"categories": [str(name) for name in categories]}


def is_importable(model: Any) -> bool:
    """Return whether `import_model` supports an object."""
    return not _packages(model).isdisjoint(_OBJECTS)


def _packages(model: Any) -> set[str]:
    """Return the packages of the classes of an object, without imports."""
    return {kind.__module__.partition(".")[0] for kind in type(model).__mro__}


def as_ranker(imported: ImportedModel) -> Ranker:
    """Return an imported model as a fitted ranker."""
    from rankwright.models.imported_trees import ImportedTrees

    trees = ImportedTrees(imported.library, imported.objective)
    ranker: Ranker = registry.resolve("rankers", "ranker")(loss=None, model=trees)
    give_model(ranker, imported.model, best_iteration=imported.rounds)
    if imported.names is not None:
        ranker.feature_names_in_ = np.array(imported.names, object)
    if imported.categories:
        ranker.categories_ = dict(imported.categories)
    return ranker


def give_model(ranker: Ranker, model: FittedModel, *, best_iteration: int) -> None:
    """Set the learned attributes of a ranker to a model that was fitted by other software."""
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


def _import_error(what: str, library: str, error: Exception) -> RankwrightError:
    """Return the error for a model that cannot be imported."""
    if isinstance(error, IncompatibleError):
        return IncompatibleError(f"{what} is a model of {library} that cannot be imported: {error}")
    if isinstance(error, UsageError | MissingExtraError):
        return error
    reason = str(error) if isinstance(error, RankwrightError) else f"{type(error).__name__} {error}"
    return ModelFileError(
        f"{what} is a model of {library} that is damaged, or of another version: "
        f"{reason[:200].rstrip('.')}; save it again with {library}."
    )


# --- objects -----------------------------------------------------------------------------------


def _from_lightgbm(model: Any, categories: Sequence[str] | None = None) -> ImportedModel:
    if not hasattr(model, "model_to_string"):  # the scikit-learn interface
        if not model.__sklearn_is_fitted__():
            raise _not_fitted(model)
        model = model.booster_
    content = model.model_to_string().encode()  # up to its best iteration
    return _reader("LightGBM")(content, categories)


def _from_xgboost(model: Any) -> ImportedModel:
    from rankwright.persist.xgboost_model import model_of

    booster, rounds = model, None
    if hasattr(model, "get_booster"):  # the scikit-learn interface
        if not model.__sklearn_is_fitted__():
            raise _not_fitted(model)
        if not np.isnan(model.missing):
            raise UsageError(
                f"this {type(model).__name__} uses {model.missing} for missing values, and rankers "
                "use NaN; train it on data with NaN instead."
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
        except Exception as error:  # tables of categories cannot be written without data
            raise IncompatibleError(
                f"CatBoost cannot write it as JSON ({str(error).splitlines()[-1][:120]}); train on "
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

"""Named rankers as keyword-only dataclasses, and the parameters that several of them share.

A named ranker lists its loss, its default model and the parameters that differ from its groups::

    @named_ranker
    class ListMLE(LinearParameters):
        loss_class = "listmle"

        calibration: float = 0.0
        targets: str | tuple[float, ...] = "linear"
        solver: Any = "lbfgs"

A group contains only parameters that all its rankers have. Each parameter is described once, in the
docstring of the group or of the ranker that declares it; `named_ranker` composes these descriptions
and the default values into the docstring of the ranker.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar, dataclass_transform

from rankwright.metrics.base import AnyMetric, check_metric
from rankwright.rankers.base import Ranker, Rounds, checked_parameters

R = TypeVar("R", bound=Ranker)

_HEADING = re.compile(r"^\w[\w ]*\n-{3,}$", re.M)
_SECTION = re.compile(rf"^Parameters\n-{{10}}\n(.*?)\n*(?={_HEADING.pattern}|\Z)", re.DOTALL | re.M)
_ENTRY = re.compile(r"^(\w+) : (.+)\n((?:    .*\n?)+)", re.M)


@dataclass_transform(kw_only_default=True, eq_default=False)
def parameter_group(cls: type[R]) -> type[R]:
    """Make a class a keyword-only dataclass."""
    return dataclass(eq=False, repr=False, kw_only=True)(cls)


@dataclass_transform(kw_only_default=True, eq_default=False)
def named_ranker(cls: type[R]) -> type[R]:
    """Give a ranker the constructor of its fields, and the documentation of all parameters.

    The parameters of the ranker come first in both, then those of its groups.
    """
    cls = parameter_group(cls)
    defaults = {field.name: field.default for field in fields(cls)}
    declared = [name for kind in cls.__mro__ for name in vars(kind).get("__annotations__", {})]
    names = [name for name in dict.fromkeys(declared) if name in defaults]
    init = checked_parameters(cls.__init__)
    signature = inspect.signature(init)
    instance = signature.parameters["self"]
    ordered = [instance, *(signature.parameters[name] for name in names)]
    init.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    cls.__init__ = init  # type: ignore[method-assign]
    if cls.__doc__ is not None:  # python -OO drops docstrings
        cls.__doc__ = _documentation(cls, {name: defaults[name] for name in names})
    return cls


def _documentation(cls: type[Ranker], defaults: dict[str, Any]) -> str:
    """Return the docstring of a ranker with the descriptions of all its parameters."""
    entries: dict[str, tuple[str, str]] = {}
    for kind in reversed(cls.__mro__):
        if found := _SECTION.search(inspect.cleandoc(kind.__doc__ or "")):
            entries |= {name: (kinds, text) for name, kinds, text in _ENTRY.findall(found[1])}
    lines = ["Parameters", "----------"]
    for name, default in defaults.items():
        kinds, text = entries[name]
        lines += [f"{name} : {kinds.partition(', default ')[0]}, default {default!r}"]
        lines += [text.rstrip()]
    own = _SECTION.sub("", inspect.cleandoc(cls.__doc__ or ""))
    heading = _HEADING.search(own)
    start = len(own) if heading is None else heading.start()
    return "\n".join([own[:start].rstrip(), "", *lines, "", own[start:]])


@parameter_group
class Common(Ranker):
    """Parameters of all named rankers.

    Parameters
    ----------
    model : model, str or None
        Replaces the default model: an object such as ``models.Linear(l2=1)`` or a name from
        ``rankwright list models``. None uses the default model with the parameters of this ranker.
    metric : str, Metric or callable
        Metric that selects the iteration, and parameters set to "auto", on the validation set.
    convention : str
        Convention that metrics follow, from ``rankwright list conventions``.
    random_state : int, RandomState, Generator or None
        Seed of all random sampling. The same int gives the same model; None does not.
    n_jobs : int or None
        Number of threads. None and -1 use all CPUs available to the process. The result does not
        depend on it.
    verbose : bool
        Write a line per iteration to standard error.
    """

    model: Any = None
    metric: Any = "ndcg@10"
    convention: str = "standard"
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool = False


@parameter_group
class StoppingParameters(Common):
    """Parameters of rankers that stop early.

    Parameters
    ----------
    early_stopping_rounds : int or None
        Stop after this many iterations without improvement on the validation set. None disables
        early stopping.
    """

    early_stopping_rounds: Rounds = None


@parameter_group
class MissingParameters(Common):
    """Parameters of rankers that do not accept missing values by default.

    Parameters
    ----------
    missing : {"mean", "zero"} or None
        Value that replaces a missing feature value. None raises an error for missing values.
    """

    missing: str | None = None


@parameter_group
class MetricParameters(Common):
    """Parameters of rankers that optimise a metric.

    Parameters
    ----------
    metric : str, Metric or callable
        Metric to optimise. It also selects the iteration on the validation set unless
        ``select_metric`` is set.
    select_metric : str, Metric, callable or None
        Metric for selection on the validation set. None uses ``metric``.
    """

    metric: Any = "ndcg@10"
    select_metric: Annotated[AnyMetric, check_metric] | None = None


@parameter_group
class LinearParameters(MissingParameters):
    """Parameters of rankers with a linear model.

    Parameters
    ----------
    l2 : float or "auto"
        Ridge penalty. "auto" tries 1000, 100, …, 1e-6 and selects the best on the validation set.
    scale : bool
        Apply the penalty as if all features had unit standard deviation.
    solver : solver, str or None
        Solver that minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name from
        ``rankwright list solvers``. None selects one that suits the loss.
    max_iter : int or "auto"
        Maximum number of solver iterations; for sgd and online, passes over the data. "auto" uses
        the default of the solver.
    tol : float or "auto"
        Stopping tolerance of the solver. "auto" uses the default of the solver.
    """

    model_class = "linear"

    l2: float | str = 1e-3
    scale: bool = True
    solver: Any = None
    max_iter: int | str = "auto"
    tol: float | str = "auto"


@parameter_group
class TreeParameters(StoppingParameters):
    """Parameters of rankers with trees.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    learning_rate : float or "auto"
        Factor by which the output of each tree is multiplied. "auto" depends on the size of the
        data, here and below; see `rankwright.models.Trees.resolve`.
    num_leaves : int or "auto"
        Maximum number of leaves of a tree.
    max_depth : int or None
        Maximum depth of a tree. None sets no limit.
    min_child_samples : int
        Minimum number of documents in a leaf.
    colsample_bytree : float or "auto"
        Fraction of the features that is sampled for each tree.
    reg_lambda : float
        L2 penalty on leaf values.
    early_stopping_rounds : int, None or "auto"
        Stop after this many iterations without improvement on the validation set. None disables
        early stopping. "auto" stops 50 rounds after the maximum of the validation curve, smoothed
        over 21 rounds.
    """

    model_class = "trees"

    n_estimators: int = 100
    learning_rate: float | str = "auto"
    num_leaves: int | str = "auto"
    max_depth: int | None = None
    min_child_samples: int = 20
    colsample_bytree: float | str = "auto"
    reg_lambda: float = 0.0
    early_stopping_rounds: Rounds = "auto"


@parameter_group
class SplitParameters(TreeParameters):
    """Parameters of rankers with trees whose splits can be restricted by feature.

    Parameters
    ----------
    min_child_weight : float
        Minimum sum of curvature in a leaf.
    monotone_constraints : mapping, sequence or None
        1 for features with which the score must not fall, -1 for features with which it must not
        rise; a mapping from names or columns, or one entry per feature.
    categorical_feature : sequence or None
        Features that contain category numbers, by name or column. Columns of a categorical type are
        recognised without it.
    """

    min_child_weight: float = 1e-3
    monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None
    categorical_feature: Sequence[str | int] | None = None


@parameter_group
class NetworkParameters(MissingParameters, StoppingParameters):
    """Parameters of rankers with a network.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Number of units of each hidden layer. () gives a linear score.
    activation : {"sigmoid", "relu", "tanh", "elu"}
        Activation of the hidden units.
    epochs : int
        Number of passes over the data.
    learning_rate : float
        Step size of Adam.
    batch_size : int
        Number of documents per step, rounded to whole queries.
    weight_decay : float
        Weight decay of the weight matrices; biases have none.
    device : {"auto", "cpu", "cuda"}
        Device for training. "auto" uses a GPU if one is available. Scores are computed on the CPU.
    """

    model_class = "network"

    hidden_layer_sizes: tuple[int, ...] = (32,)
    activation: str = "sigmoid"
    epochs: int = 60
    learning_rate: float = 3e-3
    batch_size: int = 1024
    weight_decay: float = 0.0
    device: str = "auto"


@parameter_group
class FactorParameters(StoppingParameters):
    """Parameters of rankers with user and item factors.

    Parameters
    ----------
    n_factors : int
        Length of the user and item vectors.
    l2 : float or "auto"
        Penalty on the vectors. "auto" tries fractions of the smallest penalty for which all vectors
        are 0 and selects the best on the validation set; without one, it uses half of that penalty.
    l2_bias : float
        Penalty on the biases, and on the level of each user if the loss depends on it.
    biases : bool
        Fit a bias for each item. Users without ratings are scored by the biases.
    method : {"auto", "als", "joint", "alternating"}
        "als": closed-form steps for users and items in turns (alternating least squares), for
        ratings without item_features and a smooth convex loss with a curvature. "joint": the solver
        changes both at once; needs a smooth loss. "alternating": the solver in turns. "auto" uses
        the first of these that is possible.
    solver : solver, str or None
        lbfgs, or bundle (in turns) for losses with kinks. None uses als, or the solver that the
        loss needs.
    max_iter : int or "auto"
        Number of als rounds ("auto" is 30), or of solver steps, in each turn if in turns ("auto" is
        100 for lbfgs and 40 for bundle).
    tol : float or "auto"
        als stops when a round lowers the objective by less than this fraction ("auto" is 2e-5);
        otherwise the tolerance of the solver ("auto" is 1e-6 for lbfgs and 1e-3 for bundle).
    n_rounds : int
        Number of turns of method "alternating".
    """

    model_class = "factorization"

    n_factors: int = 10
    l2: float | str = "auto"
    l2_bias: float = 1e-3
    biases: bool = True
    method: str = "auto"
    solver: Any = None
    max_iter: int | str = "auto"
    tol: float | str = "auto"
    n_rounds: int = 10

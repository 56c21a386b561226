"""A ranker of each family, fitted once to the same data."""

from functools import cache

from small_data import small_data

import rankwright
from rankwright.models import Kernel

DATA = small_data()
RANKERS = {
    "linear": ("ranksvm", {}),
    "trees": ("lambdamart", {"n_estimators": 20}),
    "network": ("ranknet", {"epochs": 5}),
    "in lists": ("ranknet", {"epochs": 5, "list_context": 2}),
    "rules": ("rankboost", {"n_rounds": 30}),
    "formula": ("rankgp", {"n_generations": 3, "population": 50}),
    "kernel": ("ranksvm", {"model": Kernel(l2=0.1)}),
}


@cache
def fitted_of(family):
    name, parameters = RANKERS[family]
    return rankwright.ranker(name, **parameters).fit(DATA)

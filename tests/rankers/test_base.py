"""What a ranker says of itself."""

from concurrent.futures import Future
from importlib import import_module

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from small_data import small_data

import rankwright as rw
from rankwright.comparison.auto import Candidate
from rankwright.rankers.base import Ranker
from rankwright.rankers.fitting import EvaluationHistory

auto_module = import_module("rankwright.comparison.auto")
compare_module = import_module("rankwright.comparison.compare")


def test_a_ranker_has_a_loss_unless_it_optimises_a_metric():
    assert rw.LambdaMART().has_loss
    assert rw.Ranker(loss="listnet").has_loss
    assert not rw.AdaRank().has_loss


# --- Ctrl-C ----------------------------------------------------------------------------------

DATA = small_data(queries=12, documents=6)


@pytest.fixture
def fits(monkeypatch):
    """Press Ctrl-C in the third round of the first fit; return the names of all fits."""
    begun, fit, evaluate = [], Ranker.fit, EvaluationHistory.__call__

    def counted(self, *args, **more):
        begun.append(self.name)
        return fit(self, *args, **more)

    def interrupted(self, round_):
        if round_.number == 3 and begun.count("gbdt") == 1:
            raise KeyboardInterrupt
        return evaluate(self, round_)

    monkeypatch.setattr(Ranker, "fit", counted)
    monkeypatch.setattr(EvaluationHistory, "__call__", interrupted)
    monkeypatch.setattr(compare_module, "warm_up", lambda *_: None)
    monkeypatch.setattr(auto_module, "candidates", lambda _: (Candidate("gbdt", "", ""),) * 2)
    return begun


@pytest.mark.usefixtures("fits")
def test_ctrl_c_in_a_fit_keeps_the_best_rounds_and_is_raised():
    ranker = rw.GBDT(n_estimators=9)
    with pytest.raises(KeyboardInterrupt, match="gbdt keeps the best of the rounds so far"):
        ranker.fit(DATA)
    assert ranker.interrupted_
    assert ranker.best_iteration_ == 2
    assert (ranker.predict(DATA) == rw.GBDT(n_estimators=2).fit(DATA).predict(DATA)).all()


class Here:
    """An executor that runs each call when it is submitted."""

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future


def tuned(**more):
    pytest.importorskip("optuna")
    space = {"learning_rate": (0.1, 0.5)}
    rw.tune(rw.GBDT(n_estimators=9), DATA, space=space, folds=3, trials=2, **more)


def searched():
    search = GridSearchCV(rw.GBDT(), {"num_leaves": [3, 7]}, cv=rw.QueryFolds(3))
    with config_context(enable_metadata_routing=True):
        search.fit(DATA.X, DATA.y, qid=np.repeat(DATA.qid, DATA.sizes))


LOOPS = {
    "cross_validate": lambda _: rw.cross_validate(rw.GBDT(), DATA, cv=3),
    "compare": lambda folder: rw.compare(DATA, "gbdt,memr", folds=3, cache=folder, jobs=1),
    "tune": lambda _: tuned(),
    "tune elsewhere": lambda _: tuned(executor=Here(), at_once=2),
    "out_of_fold": lambda _: rw.out_of_fold("gbdt", DATA, 3),
    "blend on folds": lambda _: rw.Blend(["gbdt", "memr"], folds=2).fit(DATA),
    "blend on all": lambda _: rw.Blend(["gbdt", "memr"], folds=2, weights=[1, 1]).fit(
        DATA.select([0])
    ),
    "GridSearchCV": lambda _: searched(),
    "auto": lambda _: rw.auto(DATA),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_ctrl_c_in_a_fit_ends_the_loop_around_it(loop, fits, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        loop(tmp_path)
    assert fits[-1] == "gbdt"
    assert fits.count("gbdt") == 1

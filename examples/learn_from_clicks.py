"""Learn from a click log: estimate position bias, correct it, and train on the result.

The log is simulated, so that the true grades are known; `clicks.load_log` reads a real one.
"""

import numpy as np

import rankwright as rw
from rankwright import clicks


def main() -> None:
    """Compare clicks as grades with corrected clicks."""
    data = rw.synthetic("mq2008", queries=200)
    train, test = data.select(np.arange(150)), data.select(np.arange(150, 200))
    # A poor ranker by one feature showed the lists; for a few sessions they were shuffled.
    log = clicks.simulate(train, 41, eta=1, sessions=100)
    shuffled = clicks.simulate(train, 41, eta=1, sessions=20, swaps="all", random_state=1)
    print(log)

    propensity = clicks.estimate_propensity(shuffled, "randomised")
    print("examination by position:", propensity.examination.round(2))

    by_clicks = clicks.debias(log, clicks.Propensity(np.ones(10)))
    corrected = clicks.debias(log, propensity)
    for name, grades in (("clicks as grades", by_clicks), ("corrected clicks", corrected)):
        ranker = rw.LambdaMART(n_estimators=50).fit(grades)
        print(f"{name}: {rw.evaluate(test, ranker.predict(test), 'ndcg@10')}")


if __name__ == "__main__":
    main()

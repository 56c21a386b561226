"""Files for runs of RankLib's command line."""

import numpy as np
import pytest


@pytest.fixture
def files(tmp_path):
    """A train, vali and test file: grade 2 where feature 1 is high; names after #."""
    random = np.random.default_rng(5)
    for name, queries in (("train", 12), ("vali", 6), ("test", 6)):
        lines = []
        for q in range(queries):
            for doc in range(6):
                a, b, c = (float(f"{value:.3f}") for value in random.normal(size=3))
                grade = 2 if a > 0.5 else int(a > -0.3)
                lines.append(f"{grade} qid:{name}{q} 1:{a} 2:{b} 3:{c} # {name}-{q}-{doc}\n")
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    return tmp_path

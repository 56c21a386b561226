"""The weights of a linear model, a line each."""

import numpy as np

from rankwright.export.target import DOUBLE, REFUSED, ParityError, Target, Written


class Weights(Target):
    """A text file with a name and a weight per line."""

    families = frozenset({"linear"})
    single = False
    evaluator = "a reader of the lines"

    def write(self, job):
        """Return weights.txt."""
        lines = [f"{n} {w!r}\n" for n, w in zip(job.names, job.model.coef.tolist(), strict=True)]
        return Written(
            files={"weights.txt": "".join(lines).encode()},
            epsilon=DOUBLE,
            missing=REFUSED,
            takes_missing=np.zeros(len(job.names), bool),
        )

    def scores(self, folder, about, X):
        """Return the scores of the weights in the file."""
        try:
            lines = (folder / "weights.txt").read_text(encoding="utf-8").splitlines()
            return X @ np.array([float(line.split()[1]) for line in lines])
        except (ValueError, IndexError) as error:
            raise ParityError(f"weights.txt cannot be read: {error}") from None

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
        weights = [*job.model.coef.tolist(), job.model.intercept]
        names = (*job.names, "intercept")
        lines = [f"{name} {w!r}\n" for name, w in zip(names, weights, strict=True)]
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
            *weights, intercept = [float(line.split()[1]) for line in lines]
            return X @ np.array(weights) + intercept
        except (ValueError, IndexError) as error:
            raise ParityError(f"weights.txt cannot be read: {error}") from None

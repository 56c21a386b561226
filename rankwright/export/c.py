"""``c``: C99 source without dependencies: ``double NAME_score(const double *features)``.

Numbers are hexadecimal, so that no digit is lost; trees are tables and one loop, which compile in
no time whatever their number. Missing features are NaN: do not compile with -ffast-math.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.export.target import (
    DOUBLE,
    KEPT,
    REFUSED,
    Job,
    Target,
    Written,
    accepts_missing,
    as_scores,
    run_evaluator,
)
from rankwright.models.portable import RULES, Blend, Linear, Network, OneKind, PortableForest

_TOP = """/* {title}: family {family}, written by rankwright; x <= threshold goes left. */
#include <math.h>
#include "{title}.h"

"""
_FOREST = """
{function}(const double *x) {{
  double total = 0.0;
  int t;
  for (t = 0; t < {n}; t++) {{
    long i = root{s}[t];
    while (feature{s}[i] >= 0) {{
      double v = x[feature{s}[i]];
      int left = v <= threshold{s}[i];
      switch (rule{s}[i]) {{
        case 0: left = (isnan(v) ? 0.0 : v) <= threshold{s}[i]; break;
        case 1: left = isnan(v) || left; break;
        case 2: break;
        case 3: left = isnan(v) || fabs(v) <= 1.0000000180025095e-35 || left; break;
        case 4: left = !(isnan(v) || fabs(v) <= 1.0000000180025095e-35) && left; break;
        default: {{
          long k;
          left = rule{s}[i] == 7 && isnan(v);
          if (rule{s}[i] == 5 || v >= 0.0)
          for (k = (long)threshold{s}[i]; k < (long)value{s}[i]; k++)
            if (v > -1.0 && v < 2147483648.0 && (long)v == category{s}[k]) left = 1;
        }}
      }}
      i = left ? left_child{s}[i] : right_child{s}[i];
    }}
    total += value{s}[i];
  }}
  return {initial} + total;
}}
"""
_ACTIVATIONS = {
    "relu": "z > 0.0 ? z : 0.0",
    "sigmoid": "1.0 / (1.0 + exp(-z))",
    "tanh": "tanh(z)",
    "elu": "z > 0.0 ? z : expm1(z)",
}
_DRIVER = """#include <stdio.h>
#include "{title}.h"
int main(void) {{
  double x[{width}];
  while (fread(x, sizeof(double), {width}, stdin) == {width}) {{
    double score = {title}_score(x);
    fwrite(&score, sizeof(double), 1, stdout);
  }}
  return 0;
}}
"""


class C(Target):
    """A C source file and its header."""

    families = frozenset({"linear", "additive", "trees", "network", "blend"})
    single = False
    evaluator = "a C compiler, and the program it makes"

    def write(self, job: Job) -> Written:
        """Return NAME.c and NAME.h."""
        model, title = job.model, job.title
        score = f"double {title}_score"
        if isinstance(model, Blend):
            numbers = range(1, len(model.parts) + 1)
            parts = [
                _part(part, f"static double part_{k}", f"_{k}")
                for k, part in zip(numbers, model.parts, strict=True)
            ]
            total = " + ".join(f"part_{k}(x)" for k in numbers)
            body = "".join(parts) + f"\n{score}(const double *x) {{\n  return {total};\n}}\n"
        else:
            body = _part(model, score, "")
        lines = [f"   features[{j}]: {name}" for j, name in enumerate(job.names)]
        about = f"/* The score of a document, higher is better; {len(lines)} features, in order:"
        declared = f"double {title}_score(const double *features);"
        header = "\n".join([about, *lines, "   A missing one is NaN. */", declared, ""])
        source = _TOP.format(title=title, family=model.family) + body
        takes = accepts_missing(model)
        return Written(
            files={f"{title}.c": source.encode(), f"{title}.h": header.encode()},
            epsilon=DOUBLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores of the compiled program."""
        compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
        if not compiler or not shutil.which(compiler):
            raise UsageError("verifying an export to C needs a compiler: install gcc, or set CC.")
        title, source = about["name"], folder / f"{about['name']}.c"
        with tempfile.TemporaryDirectory() as scratch:
            driver, program = Path(scratch) / "driver.c", Path(scratch) / "program"
            driver.write_text(_DRIVER.format(title=title, width=X.shape[1]))
            built = [compiler, "-std=c99", "-O1", "-ffp-contract=off", f"-I{folder}"]
            command = [*built, "-o", str(program), str(driver), str(source), "-lm"]
            run_evaluator(command, b"", f"{source} does not compile")
            failure = f"the program made of {source} fails"
            answer = run_evaluator([str(program)], np.ascontiguousarray(X).tobytes(), failure)
        return as_scores(answer, len(X), failure)


def _array(name: str, values: Any, kind: str = "double") -> str:
    written = [_hex(v) if kind == "double" else str(v) for v in np.asarray(values).tolist()] or [
        "0"
    ]
    rows = [", ".join(written[k : k + 8]) for k in range(0, len(written), 8)]
    return f"static const {kind} {name}[] = {{\n  " + ",\n  ".join(rows) + "\n};\n"


def _hex(value: float) -> str:
    return float(value).hex() if math.isfinite(value) else "INFINITY" if value > 0 else "-INFINITY"


def _part(model: OneKind, function: str, suffix: str) -> str:
    """Return the tables of a model, with a suffix to their names, and the function of its score."""
    if isinstance(model, PortableForest):
        return _forest(model, function, suffix)
    if isinstance(model, Linear):
        return _filled(model.fill, suffix) + _linear(model, function, suffix)
    return _filled(model.fill, suffix) + _network(model, function, suffix)


def _filled(fill: F64 | None, s: str) -> str:
    if fill is None:
        return f"#define FEATURE{s}(j) (x[j])\n"
    table = _array(f"fill{s}", fill)
    return f"{table}#define FEATURE{s}(j) (isnan(x[j]) ? fill{s}[j] : x[j])\n"


def _linear(model: Linear, function: str, s: str) -> str:
    return (
        f"{_array(f'weight{s}', model.coef)}"
        f"\n{function}(const double *x) {{\n  double total = {_hex(model.intercept)};\n  int j;\n"
        f"  for (j = 0; j < {model.n_features}; j++) total += weight{s}[j] * FEATURE{s}(j);\n"
        "  return total;\n}\n"
    )


_NUMBERED = (
    "plain", "nan_left", "nan_right", "zero_left", "zero_right", "category", "member",
    "member_or_nan",
)  # fmt: skip
_CODES = np.array([_NUMBERED.index(name) for name in RULES])


def _forest(model: PortableForest, function: str, s: str) -> str:
    leaf = model.is_leaf
    threshold, value = model.threshold.copy(), model.value.copy()
    categories: list[int] = []
    for node, found in model.categories.items():  # where its categories begin and end
        threshold[node] = len(categories)
        categories += found
        value[node] = len(categories)
    return (
        _array(f"root{s}", model.roots, "long")
        + _array(f"feature{s}", np.where(leaf, -1, model.feature), "int")
        + _array(f"rule{s}", _CODES[model.rule], "signed char")
        + _array(f"threshold{s}", threshold)
        + _array(f"left_child{s}", model.left, "long")
        + _array(f"right_child{s}", model.right, "long")
        + _array(f"value{s}", value)
        + _array(f"category{s}", np.array(categories, np.int64), "long")
        + _FOREST.format(function=function, s=s, n=len(model.roots), initial=_hex(model.offset))
    )


def _network(model: Network, function: str, s: str) -> str:
    tables, steps = [], []
    before, width = f"FEATURE{s}(j)", model.n_features
    for k, (weight, constant) in enumerate(model.layers, 1):
        last, size = k == len(model.layers), weight.shape[1]
        tables += [
            _array(f"weight{k}{s}", weight.T.ravel()),
            _array(f"constant{k}{s}", constant),
        ]
        after = "z" if last else f"({_ACTIVATIONS[model.activation]})"
        steps.append(
            f"  double h{k}[{size}];\n  for (i = 0; i < {size}; i++) {{\n    double z = 0.0;\n"
            f"    for (j = 0; j < {width}; j++) z += weight{k}{s}[i * {width} + j] * {before};\n"
            f"    z += constant{k}{s}[i];\n    h{k}[i] = {after};\n  }}\n"
        )
        before, width = f"h{k}[j]", size
    body = "".join(steps)
    return (
        f"{''.join(tables)}\n{function}(const double *x) {{\n  int i, j;\n{body}"
        f"  return h{len(model.layers)}[0];\n}}\n"
    )

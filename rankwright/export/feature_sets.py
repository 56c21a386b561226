"""Feature sets to log with, before there is a model: one query per feature, to be replaced.

Each feature matches the user's ``keywords`` in the field of its own name: a start, in the form that
the engine takes, with your names in your order. An export holds the feature set of its model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from rankwright.errors import UsageError
from rankwright.registry import unknown

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def feature_set(names: Sequence[str], engine: str, *, title: str = "rankwright_model") -> str:
    """Return a feature set for an engine, as the text of a file.

    Parameters
    ----------
    names
        Of the features: letters, digits and _, as all engines take them. For Vespa a name may also
        be a rank feature, such as ``bm25(title)``.
    engine : {"elasticsearch", "opensearch", "solr", "vespa"}
    title
        What the feature store of Solr and the rank profile of Vespa are called.
    """
    if engine not in ENGINES:
        raise UsageError(unknown("engine with feature sets", engine, ENGINES))
    for at, name in enumerate(names):
        if name in names[:at]:
            raise UsageError(f"the feature name '{name}' is used twice.")
        if not (_PLAIN.fullmatch(name) or (engine == "vespa" and "(" in name)):
            raise UsageError(
                f"the feature name '{name}' has signs besides letters, digits and _, or begins "
                "with a digit; rename it."
            )
    return ENGINES[engine](names, title)


def _plugin(names: Sequence[str], _: str) -> str:
    features = [
        {
            "name": name,
            "params": ["keywords"],
            "template_language": "mustache",
            "template": {"match": {name: "{{keywords}}"}},
        }
        for name in names
    ]
    return json.dumps({"featureset": {"features": features}}, indent=1) + "\n"


def _solr(names: Sequence[str], title: str) -> str:
    features = [
        {
            "store": title,
            "name": name,
            "class": "org.apache.solr.ltr.feature.SolrFeature",
            "params": {"q": f"{{!field f={name}}}${{keywords}}"},
        }
        for name in names
    ]
    return json.dumps(features, indent=1) + "\n"


def _vespa(names: Sequence[str], title: str) -> str:
    own = [name for name in names if _PLAIN.fullmatch(name)]
    functions = [f"    function {n}() {{\n        expression: bm25({n})\n    }}\n" for n in own]
    logged = "".join(f"        {name}\n" for name in names)
    return (
        f"rank-profile {title} {{\n"
        + "".join(functions)
        + "    first-phase {\n        expression: nativeRank\n    }\n"
        + f"    match-features {{\n{logged}    }}\n}}\n"
    )


ENGINES: dict[str, Callable[[Sequence[str], str], str]] = {
    "elasticsearch": _plugin,
    "opensearch": _plugin,
    "solr": _solr,
    "vespa": _vespa,
}
"""The engines that log features."""

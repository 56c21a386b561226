"""Which column of a table is what: told by the caller, or by its usual name.

===================  ==================================================
query id             ``qid``, ``query``, ``query_id``, ``group_id``
grade                ``label``, ``grade``, ``rel``, ``relevance``, ``y``
``doc_id``           ``doc_id``, ``docid``, ``doc``
``query_weight``     ``query_weight``
``sample_weight``    ``sample_weight``, ``weight``
``group``            ``group``, ``host``
``position``         ``position``
features             every other column
===================  ==================================================

Case and blanks around a name do not matter. Two columns that could both play one role are an error,
never a guess. The index that pandas writes to a Parquet file is no feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rankwright.errors import DataError
from rankwright.registry import unknown

USUAL_NAMES = {
    "qid": ("qid", "query", "query_id", "group_id"),
    "label": ("label", "grade", "rel", "relevance", "y"),
    "query_weight": ("query_weight",),
    "sample_weight": ("sample_weight", "weight"),
    "doc_id": ("doc_id", "docid", "doc"),
    "group": ("group", "host"),
    "position": ("position",),
}

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_MOST_NAMES = 12


def choose_columns(
    names: Sequence[str],
    given: dict[str, str | None],
    *,
    features: str | Sequence[str] | None = None,
    drop: str | Iterable[str] = (),
    grades: bool = True,
) -> tuple[dict[str, str], list[str]]:
    """Return role -> column, and the feature columns, of a table with the columns ``names``.

    Parameters
    ----------
    given
        Role -> column, for each role of ``USUAL_NAMES``; None: find it by its usual names; ``""``:
        there is none, as for the grade of documents that are only to be ranked.
    features, drop
        Columns that are features (by default all that play no role), and that are not; names, or
        one text with commas.
    grades
        False: the documents are only to be ranked, and a column of grades is passed over.
    """
    wanted, dropped = listed(features), listed(drop) or []
    given = {role: None if column is None else str(column) for role, column in given.items()}
    named = [name for name in given.values() if name]
    for name in [*named, *(wanted or []), *dropped]:
        if name not in names:
            raise DataError(unknown("column", name, names))
    free = [name for name in names if name not in {*named, *(wanted or []), *dropped}]
    found = {
        role: usual_column(role, free) if column is None else column
        for role, column in given.items()
    }
    if not found["qid"]:
        raise _not_found("qid", "query id", names)
    if found["label"] is None and grades:
        raise _not_found("label", "label", names)
    roles = {role: column for role, column in found.items() if column}
    if wanted is None:
        used = {*roles.values(), *dropped}
        wanted = [name for name in names if name not in used and not _PANDAS_INDEX.fullmatch(name)]
    if "" in wanted:
        raise DataError(
            "a column has no name (the index of a frame?); name it, or leave it out with drop=[''] "
            "(--read drop=)."
        )
    if not grades:
        roles.pop("label", None)
    return roles, wanted


def listed(names: str | Iterable[str] | None) -> list[str] | None:
    """Return names as a list; one text may hold several with commas between."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return None if names is None else [str(name) for name in names]


def usual_column(role: str, names: Sequence[str]) -> str | None:
    """Return the one of ``names`` that is usual for a role; None where none is."""
    fitting = [name for name in names if name.strip().lower() in USUAL_NAMES[role]]
    if len(fitting) > 1:
        raise DataError(
            f"columns {' and '.join(map(repr, fitting))} could each be the {role}; specify it with "
            f"{role}=..., and leave the other out with drop=... or name it in features=..."
        )
    return fitting[0] if fitting else None


def _not_found(role: str, what: str, names: Sequence[str]) -> DataError:
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return DataError(
        f"no {what} column found ({', '.join(USUAL_NAMES[role])}); the columns are "
        f"{shown}{more}. Specify it with {role}=NAME (--read {role}=NAME)."
    )

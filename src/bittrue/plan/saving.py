"""Plan files are written: a zip of NumPy arrays with one JSON description, without pickles.

A file holds what was planned (graphs, numerics, shapes) and, for whoever reads it, the plan itself. Only the first is
believed: see `loading`.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BittrueError, InputError
from ..files import written
from ..numerics import find as find_numerics
from ..records import replace
from .description import NamedArrays, as_bytes, plan_entry, source_entry

if TYPE_CHECKING:
    from .plan import Plan

FORMAT = "bittrue-plan-3"
DESCRIPTION = "plan.json"
# Of all members: the same plan gives the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)


def save_plan(plan: Plan, path: object) -> None:
    """Write `plan` to `path` (str or PathLike), whole or not at all. The same plan gives the same bytes.

    Raises:
        InputError: the plan does not follow from a numerics that has a name, so that nobody could check the file.
        OutputError: the file could not be written.
    """
    description, arrays = described(plan)
    if plan.source is None:
        raise InputError("BT-PLAN-SAVE", "a plan made by hand, without what it was planned from, cannot be saved")
    try:
        source = replace(plan.source, numerics=find_numerics(plan.source.numerics.name))
        derived, others = described(source.planner(source, plan.notes))
        difference = first_difference(description, derived) or first_array(description, arrays, others)
    except BittrueError as error:
        difference = str(error)
    if difference:
        raise InputError(
            "BT-PLAN-SAVE",
            f"the plan was changed after planning, or is no whole plan of the table '{plan.numerics}' ({difference})",
            place="plan",
            advice="save the plan of a session that was prepared with a named numerics",
        )
    with written(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, DESCRIPTION, as_text(description))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            _add(archive, f"{name}.npy", buffer.getvalue())


def described(plan: Plan) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file of a plan holds: its description, and the arrays that this names."""
    from .. import __version__

    kept = NamedArrays()
    head = {"format": FORMAT, "version": __version__}
    body = {**plan_entry(plan, kept), "source": source_entry(plan.source, kept) if plan.source else None}
    return {**head, **body}, kept.arrays


def as_text(description: dict[str, Any]) -> bytes:
    """The bytes of a description, as a file holds them."""
    return json.dumps(description, indent=1, allow_nan=False).encode()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, DATE), data)


def first_difference(found: Any, derived: Any, place: str = "") -> str:
    """Where two descriptions differ first, for people; empty when nowhere."""
    if not place and json.dumps(found) == json.dumps(derived):
        return ""
    if isinstance(found, dict) and isinstance(derived, dict):
        for key in (*derived, *found):
            inner = f"{place}.{key}".removeprefix(".")
            if key not in found:
                return f"{inner} is missing"
            if key not in derived:
                return f"{inner} is unknown to this version of bittrue"
            difference = first_difference(found[key], derived[key], inner)
            if difference:
                return difference
        return ""
    if isinstance(found, list) and isinstance(derived, list):
        pairs = enumerate(zip(found, derived, strict=False))
        differences = (first_difference(one, other, f"{place}[{i}]") for i, (one, other) in pairs)
        lengths = f"{place}: the file has {len(found)} entries, this version of bittrue derives {len(derived)}"
        return next(filter(None, differences), "") or lengths * (len(found) != len(derived))
    if type(found) is type(derived) and repr(found) == repr(derived):
        return ""
    return f"{place}: the file says {_shown(found)}, this version of bittrue derives {_shown(derived)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def first_array(description: dict[str, Any], found: dict[str, np.ndarray], derived: dict[str, np.ndarray]) -> str:
    """The first array that differs, likewise; both descriptions are equal."""
    for name, one in derived.items():
        if name not in found:
            return f"array '{name}' ({_user(description, name)}) is missing"
        other = found[name]
        if (one.dtype, one.shape) != (other.dtype, other.shape) or not np.array_equal(as_bytes(one), as_bytes(other)):
            return f"array '{name}' ({_user(description, name)}) is not the one that this version of bittrue derives"
    unused = [name for name in found if name not in derived]
    return f"array '{unused[0]}' is used by nothing" if unused else ""


def _user(value: Any, name: str, place: str = "") -> str:
    """The first place that names an array."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        where = f"{place}.{key}" if isinstance(key, str) else f"{place}[{key}]"
        if inner == name and key != "name":
            return where.removeprefix(".")
        deeper = _user(inner, name, where)
        if deeper:
            return deeper
    return ""

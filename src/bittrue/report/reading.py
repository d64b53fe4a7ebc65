"""Results read back from JSON: every field is checked before a page is made of it.

The shapes below are those of `CompareResult.to_dict` (``bittrue-compare-1``), `CheckResult.to_dict`
(``bittrue-check-1``), `ConformResult.to_dict` (``bittrue-conform-1``) and `bittrue.evaluate`
(``bittrue-evaluation-1``). Fields that have a default there may be
missing; fields that are not known here are ignored, so that newer results of the same format can be read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import read_file
from ..names import short
from ..visible import visible

COMPARE, CHECK, CONFORM = "bittrue-compare-1", "bittrue-check-1", "bittrue-conform-1"
EVALUATE = "bittrue-evaluation-1"

# A field: what turns a value into a checked one (or raises), given the value and its place.
Kind = Callable[[Any, str], Any]
_REQUIRED = object()
_DEEPEST = 16
# Texts occur several times in a page: the middle of longer ones is left out.
_LONGEST = 4_000
# Counts of elements fit 64 bits; larger numbers come from damaged files.
_LARGEST_COUNT = 2**63
_LARGEST = 10**30


def load(path: str | Path) -> dict[str, Any]:
    """The result in a JSON file, checked.

    Raises:
        InputError: BT-RESULT: it is not JSON, not a result of a format known here, or damaged; names the field.
        OSError: it cannot be read.
    """
    try:
        result = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise InputError("BT-RESULT", f"this is no JSON: {reason}", place=str(path), advice=_ADVICE) from None
    try:
        return checked(result)
    except InputError as error:
        place = f"{path}: {error.place}" if error.place else str(path)
        raise InputError(error.code, error.message, place=place, advice=error.advice) from None


def checked(result: object) -> dict[str, Any]:
    """The same result with every field checked, missing optional ones filled in, and control characters made visible.

    Raises:
        InputError: BT-RESULT, with the place of the first field that is missing or wrong.
    """
    if not isinstance(result, Mapping):
        raise _wrong("", "expected an object", result)
    name = result.get("format")
    shapes = {
        COMPARE: _COMPARE_RESULT,
        CHECK: _CHECK_RESULT,
        CONFORM: _CONFORM_RESULT,
        EVALUATE: _evaluation,
    }
    if not isinstance(name, str) or name not in shapes:
        found = "nothing" if name is None else repr(name)
        raise InputError(
            "BT-RESULT",
            f"expected {', '.join(map(repr, shapes))}, found {found}",
            place="format",
            advice=_ADVICE,
        )
    fields: dict[str, Any] = shapes[name](result, "")
    fields["format"] = name
    return fields


_ADVICE = (
    "results are what `bittrue compare`, `bittrue check`, `bittrue conform` and `bittrue evaluate` print with --json, "
    "and the folders of `bittrue evaluate -o`"
)


def _wrong(place: str, expected: str, value: object) -> InputError:
    found = "nothing" if value is None else _short(value)
    return InputError("BT-RESULT", f"{expected}, found {found}", place=place, advice=_ADVICE)


def _short(value: object) -> str:
    text = visible(repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise _wrong(place, "expected text", value)
    return _shown(value)


def _shown(text: str) -> str:
    return short(visible(text), _LONGEST)


def _flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(place, "expected true or false", value)
    return value


def _count(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_COUNT:
        raise _wrong(place, "expected an integer from 0 on", value)
    return value


def _whole(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _LARGEST:
        raise _wrong(place, "expected an integer of a size that occurs", value)
    return value


def _number(value: Any, place: str) -> int | float:
    """A number; what JSON has no number for may come as text."""
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return _whole(value, place)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise _wrong(place, "expected a number", value)


def _real(value: Any, place: str) -> float:
    return float(_number(value, place))


def _share(value: Any, place: str) -> float:
    number = _real(value, place)
    if not 0 <= number <= 1:
        raise _wrong(place, "expected a share from 0 to 1", value)
    return number


def _scalar(value: Any, place: str) -> Any:
    return (
        value if isinstance(value, bool) else _text(value, place) if isinstance(value, str) else _number(value, place)
    )


def _plain(value: Any, place: str, depth: int = 0) -> Any:
    """Any JSON, not too deep."""
    if depth > _DEEPEST:
        raise InputError("BT-RESULT", f"nested deeper than {_DEEPEST} levels", place=place, advice=_ADVICE)
    if isinstance(value, Mapping):
        return {_shown(str(key)): _plain(item, f"{place}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)]
    return None if value is None else _scalar(value, place)


def _optional(kind: Kind) -> Kind:
    return lambda value, place: None if value is None else kind(value, place)


def _list(kind: Kind, length: int | None = None) -> Kind:
    def read(value: Any, place: str) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise _wrong(place, "expected a list", value)
        if length is not None and len(value) != length:
            raise _wrong(place, f"expected a list of {length}", value)
        return [kind(item, f"{place}[{i}]") for i, item in enumerate(value)]

    return read


def _mapping(kind: Kind) -> Kind:
    def read(value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _wrong(place, "expected an object", value)
        return {_shown(str(key)): kind(item, f"{place}.{key}") for key, item in value.items()}

    return read


def _record(**fields: Kind | tuple[Kind, Any]) -> Kind:
    """An object with these fields: a kind, or a kind and the default of a field that may be missing."""

    def read(value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _wrong(place, "expected an object", value)
        found = {}
        for name, field in fields.items():
            kind, default = field if isinstance(field, tuple) else (field, _REQUIRED)
            where = f"{place}.{name}" if place else name
            if name in value:
                found[name] = kind(value[name], where)
            elif default is _REQUIRED:
                raise InputError("BT-RESULT", "this field is missing", place=where, advice=_ADVICE)
            else:
                found[name] = type(default)(default) if isinstance(default, (list, dict)) else default
        return found

    return read


def _shares(value: Any, place: str) -> list[float]:
    # Images and channels are most of a result: their places are spelled out only where something is wrong.
    if isinstance(value, (list, tuple)) and all(type(x) is float and 0 <= x <= 1 for x in value):
        return list(value)
    return [*_list(_share)(value, place)]


_statistics_fields = _record(
    elements=_count,
    differing=_count,
    largest=(_optional(_real), None),
    bias=(_optional(_real), None),
    histogram=(_mapping(_count), {}),
    worst=(_optional(_record(element=_list(_whole), a=_number, b=_number)), None),
    per_channel=(_shares, []),
    plane=(_list(_shares), []),
)


def _statistics(value: Any, place: str) -> dict[str, Any]:
    found: dict[str, Any] = _statistics_fields(value, place)
    if found["differing"] > found["elements"]:
        raise _wrong(
            f"{place}.differing", f"expected at most {found['elements']}, the number of elements", found["differing"]
        )
    if len({len(row) for row in found["plane"]}) > 1:
        raise InputError("BT-RESULT", "rows of different lengths", place=f"{place}.plane", advice=_ADVICE)
    return found


_LINE = _record(label=_text, value=_text, remark=(_text, ""))

_EXPLANATION: dict[str, Any] = {
    "tensor": (_text, ""),
    "element": (_list(_whole), []),
    "operator": (_text, ""),
    "source": (_text, ""),
    "node": (_optional(_whole), None),
    "numerics": (_text, ""),
    "rules": (_mapping(_text), {}),
    "lines": (_list(_LINE), []),
    "stored": _scalar,
    "numbers": (_mapping(_scalar), {}),
}

_WITNESS = _record(**_EXPLANATION, theirs=(_optional(_scalar), None), other=(_optional(_record(**_EXPLANATION)), None))


def _witness(value: Any, place: str) -> Any:
    return None if value in ({}, None) else _WITNESS(value, place)


_CAUSE = _record(
    name=_text,
    text=_text,
    kind=_text,
    benign=_flag,
    slot=(_text, ""),
    rule=(_text, ""),
    instead=(_text, ""),
    numerics=(_list(_text), []),
    elements=(_count, 0),
    formula=(_text, ""),
)

_VERDICT = _record(
    differing=_count,
    causes=(_list(_CAUSE), []),
    exact=(_flag, False),
    unexplained=(_count, 0),
    text=(_text, ""),
    also=(_list(_text), []),
    alike=(_list(_text), []),
    described=(_list(_text), []),
    witness=(_witness, None),
    command=(_text, ""),
    accumulators=(_optional(_list(_whole, 3)), None),
    ties=(_list(_list(_real, 2)), []),
)

_SIDE = _record(
    label=_text,
    spec=_text,
    title=_text,
    numerics=(_text, ""),
    model=(_text, ""),
    sha256=(_text, ""),
    format=(_text, ""),
    notes=(_list(_text), []),
)

_PAIR = _record(
    a=_text,
    b=_text,
    node=_optional(_whole),
    source=_text,
    operator=_text,
    dtype_a=_text,
    dtype_b=_text,
    shape=_list(_count),
    layout=_text,
    how=_text,
    cumulative=_statistics,
    isolated=(_optional(_statistics), None),
    verdict=(_optional(_VERDICT), None),
    note=(_text, ""),
    is_output=(_flag, False),
)


def _reached(value: Any, place: str) -> list[Any]:
    pair = _list(_plain, 2)(value, place)
    return [_text(pair[0], f"{place}[0]"), _share(pair[1], f"{place}[1]")]


_DOWNSTREAM = _record(
    tensor=_text,
    reached=(_list(_reached), []),
    outputs=(_mapping(_statistics), {}),
    labels=(_list(_list(_whole, 2)), []),
)


def _host(value: Any, place: str) -> str:
    if value not in ("A", "B", ""):
        raise _wrong(place, "expected 'A', 'B' or ''", value)
    return str(value)


_COMPARE_RESULT = _record(
    host=(_host, "A"),
    a=_SIDE,
    b=_SIDE,
    inputs=_list(_text),
    pairs=_list(_PAIR),
    unmatched_a=(_list(_text), []),
    unmatched_b=(_list(_text), []),
    amplification=(_list(_DOWNSTREAM), []),
    passes=(_mapping(_plain), {}),
    seconds=(_real, 0.0),
    version=(_text, ""),
    date=(_text, ""),
    notes=(_list(_text), []),
)


def _severity(value: Any, place: str) -> str:
    if value not in ("error", "warning", "note"):
        raise _wrong(place, "expected 'error', 'warning' or 'note'", value)
    return str(value)


_FINDING = _record(
    code=_text,
    severity=_severity,
    message=_text,
    graph=(_text, ""),
    node=(_optional(_whole), None),
    source=(_text, ""),
    tensor=(_text, ""),
    place=(_text, ""),
    expected=(_text, ""),
    found=(_text, ""),
    advice=(_text, ""),
    numbers=(_mapping(_scalar), {}),
)

_RULE = _record(
    code=_text,
    name=_text,
    severity=_severity,
    what=(_text, ""),
    why=(_text, ""),
    enforced=(_text, ""),
    fix=(_text, ""),
    source=(_text, ""),
    formats=(_list(_text), []),
)

_CHECK_RESULT = _record(
    model=_text,
    numerics=(_text, ""),
    sha256=(_text, ""),
    model_format=(_text, ""),
    findings=_list(_FINDING),
    rules=(_list(_RULE), []),
    failures=(_list(_record(code=_text, message=_text)), []),
    notes=(_list(_text), []),
    seconds=(_real, 0.0),
    version=(_text, ""),
    date=(_text, ""),
)

_LEVEL = _optional(_whole)

_DEVIATION = _record(
    elements=(_count, 0),
    differing=(_count, 0),
    above=(_count, 0),
    largest=(_optional(_whole), 0),
    total=(_optional(_whole), 0),
    squares=(_optional(_whole), 0),
)

_LIMIT = _record(largest=_whole, bias=_real, mean_square=_real)

_BOUND = _record(largest=_whole, bias=_real, mean_square=_real, wide=(_mapping(_LIMIT), {}))

_CLASS = _record(name=_text, text=_text, kind=_text, legal=(_flag, False), also=(_list(_text), []))

_FAILING = _record(
    identity=_text,
    note=_text,
    output=_text,
    element=_list(_count),
    expected=_number,
    got=_number,
    numerics=_text,
    numbers=(_mapping(_number), {}),
    lines=(_list(_list(_text, 3)), []),
    reduced=(_optional(_list(_record(input=_text, position=_count, value=_number))), None),
    reduced_expected=(_optional(_number), None),
    reduced_got=(_optional(_number), None),
    replay=(_text, ""),
)

_OUTPUT = _record(name=_text, dtype=_text, shape=_list(_count), sha256=_text)

_CASE = _record(
    identity=_text,
    sha256=_text,
    aim=_text,
    note=_text,
    outcome=_text,
    text=(_text, ""),
    outputs=(_list(_OUTPUT), []),
    seconds=(_real, 0.0),
)

_OPERATOR = _record(
    operator=_text,
    types=_text,
    verdict=_text,
    level=_LEVEL,
    text=_text,
    matches=(_list(_record(names=_list(_text), deciding=(_list(_text), []))), []),
    refuses=(_flag, True),
    every=(_flag, False),
    reference=(_text, ""),
    cause=(_optional(_CLASS), None),
    known=(_text, ""),
    counts=(_mapping(_count), {}),
    skipped=(_mapping(_count), {}),
    deviation=(_DEVIATION, {}),
    bound=(_optional(_BOUND), None),
    failing=(_optional(_FAILING), None),
    cases=(_list(_CASE), []),
)

_CONFORM_RESULT = _record(
    suite=_text,
    suite_title=_text,
    suite_version=_text,
    selection=_record(
        operators=(_list(_text), []),
        types=(_list(_text), []),
        aims=(_list(_text), []),
        cases=(_list(_text), []),
        shard=(_text, ""),
    ),
    numerics=_text,
    device=_text,
    device_title=_text,
    repeat=_count,
    operators=_list(_OPERATOR),
    models=(
        _list(
            _record(
                name=_text,
                sha256=_text,
                inputs=_list(_text),
                inputs_sha256=_text,
                outputs_sha256=_text,
                matches=_list(_text),
                counts=_mapping(_count),
                text=(_text, ""),
            )
        ),
        [],
    ),
    level=(_LEVEL, None),
    refuses=(_flag, True),
    claimed=(_list(_text), []),
    claim=(_text, ""),
    seconds=(_real, 0.0),
    version=(_text, ""),
    date=(_text, ""),
    notes=(_list(_text), []),
    digest=(_text, ""),
)


def _finite(value: Any, place: str) -> float:
    number = _real(value, place)
    if not math.isfinite(number):
        raise _wrong(place, "expected a finite number", value)
    return number


def _figure(value: Any, place: str) -> int | float | None:
    """A figure; None where there is none, or no finite one."""
    number = None if value is None else _number(value, place)
    return None if number is None or not math.isfinite(number) else number


# What is counted of a class, and the figure that it has, depend on the task.
_PER_CLASS_FIELDS: dict[str, Any] = {
    "class": _whole,
    "name": _text,
    **dict.fromkeys(("samples", "right", "pixels", "objects"), (_optional(_count), None)),
    **dict.fromkeys(("iou", "map"), (_figure, None)),
}
_PER_CLASS = _list(_record(**_PER_CLASS_FIELDS))
_CONFUSION = _list(_list(_whole, 3))


def _figures(value: Any, place: str) -> dict[str, Any]:
    """Figures of one arithmetic: those of classes have a form, others are plain data."""
    found: dict[str, Any] = _mapping(_plain)(value, place)
    for name, one in found.items():
        if isinstance(one, float) or one in ("nan", "inf", "-inf"):
            found[name] = _figure(one, f"{place}.{name}")
    for name, kind in (("per_class", _PER_CLASS), ("confusion", _CONFUSION)):
        if name in found:
            found[name] = kind(value[name], f"{place}.{name}")
    return found


_FLIP = _record(
    position=_count,
    id=_text,
    label=(_plain, None),
    predictions=_list(_plain, 2),
    margin=(_optional(_real), None),
    command=(_text, ""),
)

_FLIPS = _record(
    pair=_list(_text, 2),
    count=_count,
    gained=(_optional(_count), None),
    lost=(_optional(_count), None),
    samples=(_list(_FLIP), []),
)

_CHANGE = _record(numerics=_text, metrics=(_mapping(_list(_figure, 2)), {}), outputs=(_count, 0), answers=_FLIPS)


def _image(value: Any, place: str) -> str:
    """An image as a data URL: nothing else may stand where a page shows one."""
    if not isinstance(value, str) or not re.fullmatch("data:image/(png|jpeg);base64,[A-Za-z0-9+/]+=*", value):
        raise _wrong(place, "expected an image", value)
    return value


def _colour(value: Any, place: str) -> str:
    if not isinstance(value, str) or not re.fullmatch("#[0-9a-f]{6}", value):
        raise _wrong(place, "expected a colour", value)
    return value


_BOX_FIELDS: dict[str, Any] = {
    "place": _list(_share, 4),
    "class": _text,
    "score": (_optional(_real), None),
    "missing": (_list(_text), []),
}
_THUMBNAIL = _record(
    image=(_optional(_image), None),
    curve=(_list(_share), []),
    what=(_text, ""),
    size=(_list(_count, 2), [0, 0]),
    boxes=(_mapping(_list(_record(**_BOX_FIELDS))), {}),
    masks=(_mapping(_image), {}),
    differ=(_list(_record(pair=_list(_text, 2), mask=_image)), []),
    legend=(_list(_record(name=_text, colour=_colour)), []),
)


_EVALUATE_FIELDS = _record(
    bittrue=(_text, ""),
    given=(_mapping(_text), {}),
    model=(_list(_text), []),
    data=_record(kind=_text, samples=_count, classes=(_list(_text), [])),
    recipe=_record(name=_text, digest=_text, libraries=(_mapping(_text), {})),
    task=_text,
    numerics=_list(_text),
    against=(_mapping(_text), {}),
    reset=(_flag, True),
    limit=(_optional(_count), None),
    shard=(_list(_count, 2), [1, 1]),
    samples=_count,
    labelled=_count,
    errors=(_mapping(_count), {}),
    headline=_text,
    metrics=_mapping(_figures),
    flips=_list(_FLIPS),
    digests=_mapping(_text),
    digest=_text,
    unmet=(_list(_text), []),
    notes=(_list(_text), []),
    seconds=(_real, 0.0),
    baseline=(
        _optional(
            _record(
                folder=_text,
                digest=(_text, ""),
                differs=(_list(_text), []),
                sources=(_count, 0),
                errors=(_count, 0),
                changes=_list(_CHANGE),
            )
        ),
        None,
    ),
    examples=(_mapping(_list(_record(position=_count, id=_text, error=_text))), {}),
    margins=(
        _optional(_record(edges=_list(_finite), samples=_mapping(_list(_count)), flips=_list(_list(_count)))),
        None,
    ),
    scores=(
        _optional(
            _record(
                edges=_list(_finite),
                counts=_mapping(_list(_list(_count), 2)),
                roc=_mapping(_list(_list(_share, 2))),
            )
        ),
        None,
    ),
    worst=(
        _optional(_record(numerics=_text, samples=_list(_record(position=_count, id=_text, wrong=_real)))),
        None,
    ),
    thumbnails=(_mapping(_THUMBNAIL), {}),
    thumbnails_note=(_text, ""),
)


def _evaluation(value: Any, place: str) -> dict[str, Any]:
    """An evaluation whose lists fit each other."""
    found: dict[str, Any] = _EVALUATE_FIELDS(value, place)
    names = [*found["numerics"], *found["against"]]
    metrics, margins, scores = (found[name] for name in ("metrics", "margins", "scores"))
    _same("numerics", 1, min(len(names), 1))
    _same("digests", sorted(names), sorted(found["digests"]))
    if metrics:
        _same("metrics", sorted(names), sorted(metrics))
    if margins is not None:
        _same("margins.samples", sorted(names), sorted(margins["samples"]))
        _same("margins.flips", len(found["flips"]), len(margins["flips"]))
        for counts in (*margins["samples"].values(), *margins["flips"]):
            _same("margins, counts", max(1, len(margins["edges"]) - 1), len(counts))
    if scores is not None:
        _same("scores.counts", sorted(names), sorted(scores["counts"]))
        for counts in (some for both in scores["counts"].values() for some in both):
            _same("scores, counts", max(1, len(scores["edges"]) - 1), len(counts))
    return found


def _same(place: str, expected: object, value: object) -> None:
    if expected != value:
        raise _wrong(place, f"expected {_short(expected)}", value)

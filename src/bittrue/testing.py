"""Equal bytes or a failed test: `assert_bit_equal`, for any test runner. Importing it takes NumPy and nothing else."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError

if TYPE_CHECKING:
    from .api import Session

# Differences that the histogram shows one by one; the rest is counted in one place.
_SHOWN = 9
_NAMES = 6


def assert_bit_equal(
    actual: Any,
    expected: Any,
    *,
    name: str = "",
    session: Session | None = None,
    inputs: Mapping[str, Any] | None = None,
    model: str = "MODEL",
    replay: str = "",
) -> None:
    """Fail unless `actual` has the type, the shape and the bytes of `expected`.

    -0.0 is not 0.0, and two NaN are equal when their payloads are. There is no tolerance.

    Args:
        actual, expected: arrays or anything that NumPy makes an array of; or mappings or lists of them, nested as one
            likes, which must have the same names or length.
        name: what failures call the tensor; mappings add their keys.
        session: the prepared model whose tensors these are. A failure then works out the first differing element:
            accumulator, multiplier, exponent, zero point, which of both values this arithmetic gives, and which other
            rule or fault gives every byte of the other array.
        inputs: what the session was fed, by input name.
        model: path of the session's model, for the command that replays the element.
        replay: options of that command that make the same inputs, for example ``"--input x.npy"``. Without them a
            failure keeps `inputs` in a new temporary folder and names the file.

    Raises:
        AssertionError: they differ. The text names the first differing element, how many of how many differ, the
            largest difference, the histogram of ``actual - expected`` and its mean.
        InputError: something that is no array of numbers, or a session without inputs.

    >>> import numpy as np
    >>> assert_bit_equal(np.int8([1, 2]), np.int8([1, 2]))
    >>> assert_bit_equal({"y": np.int8([1, 4])}, {"y": np.int8([1, 2])})
    Traceback (most recent call last):
    ...
    AssertionError: tensor 'y': 1 of 2 elements differ (50 %), int8 [2]
      first:     element [1]: expected 2, got 4 (+2)
      largest:   2, at element [1]
      histogram: +2: 1  (got - expected)
      bias:      +1 (mean of got - expected over all elements)
    """
    __tracebackhide__ = True
    if session is not None and inputs is None:
        raise InputError("BT-USAGE", "a session explains a difference only with what it was fed", advice="pass inputs=")
    found: list[_Pair] = []
    structure = _gather(actual, expected, name, name, found)
    if structure:
        raise AssertionError(structure)
    different = [pair for pair in found if not pair.equal]
    if not different:
        return
    text = _text(different[0])
    if session is not None and inputs is not None:
        text += _worked_out(different[0], session, inputs, model, replay)
    if len(found) > 1:
        names = [pair.name for pair in different]
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        listed = ", ".join(f"'{n}'" for n in names[:_NAMES])
        text = f"{len(different)} of {len(found)} arrays differ: {listed}{more}; the first:\n{text}"
    raise AssertionError(text)


class _Pair:
    """Two arrays, and where their bytes differ."""

    def __init__(self, name: str, tensor: str, actual: np.ndarray, expected: np.ndarray) -> None:
        self.name = name
        self.tensor = tensor
        self.actual = actual
        self.expected = expected
        self.comparable = actual.dtype == expected.dtype and actual.shape == expected.shape
        size = actual.dtype.itemsize
        bytes_a, bytes_e = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (actual, expected))
        # One flag per element, in C order.
        self.differs = np.zeros(0, bool)
        if self.comparable and size:
            self.differs = (bytes_a != bytes_e).reshape(-1, size).any(axis=1)

    @property
    def equal(self) -> bool:
        return self.comparable and not self.differs.any()

    @property
    def title(self) -> str:
        return f"tensor '{self.name}'" if self.name else "arrays"

    def index(self, position: int) -> tuple[int, ...]:
        """Index of an element by its position in C order."""
        return tuple(int(i) for i in np.unravel_index(position, self.expected.shape))


def _gather(actual: Any, expected: Any, name: str, tensor: str, found: list[_Pair]) -> str:
    """Collect pairs of arrays under the innermost name; what is wrong with the structure, or nothing."""
    where = f"'{name}': " if name else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, more = [k for k in expected if k not in actual], [k for k in actual if k not in expected]
        if missing or more:
            both = (("missing", missing), ("not expected", more))
            parts = [f"{what}: {', '.join(repr(key) for key in keys)}" for what, keys in both if keys]
            return f"{where}names differ; {'; '.join(parts)}"
        pairs = [(actual[key], expected[key], f"{name}.{key}" if name else str(key), str(key)) for key in expected]
    elif _is_list(actual) and _is_list(expected):
        if len(actual) != len(expected):
            return f"{where}expected {len(expected)} arrays, got {len(actual)}"
        pairs = [(a, e, f"{name}[{i}]", tensor) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    elif isinstance(actual, Mapping) or isinstance(expected, Mapping):
        return f"{where}expected {_kind(expected)}, got {_kind(actual)}"
    else:
        found.append(_Pair(name, tensor, _array(actual, name, "actual"), _array(expected, name, "expected")))
        return ""
    for a, e, inner, innermost in pairs:
        wrong = _gather(a, e, inner, innermost, found)
        if wrong:
            return wrong
    return ""


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _kind(value: Any) -> str:
    return f"a mapping of {len(value)} arrays" if isinstance(value, Mapping) else f"{type(value).__name__}"


def _array(value: Any, name: str, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError("BT-ARRAY", f"NumPy makes no array of it: {error}", place=f"{what} {name}".strip()) from None
    if array.dtype.hasobject:
        raise InputError(
            "BT-ARRAY",
            f"{type(value).__name__} is no array of numbers: its elements have no bytes",
            place=f"{what} {name}".strip(),
        )
    return array


def _text(pair: _Pair) -> str:
    a, e = pair.actual, pair.expected
    if not pair.comparable:
        lines = [f"{pair.title}: types or shapes differ, so no element was compared"]
        lines += [f"  {what} {x.dtype} {list(x.shape)}" for what, x in (("expected", e), ("got     ", a))]
        return "\n".join(lines)
    count, total = int(pair.differs.sum()), pair.differs.size
    positions = np.flatnonzero(pair.differs)
    first = int(positions[0])
    flat_a, flat_e = a.reshape(-1), e.reshape(-1)
    share = f"{count:,} of {total:,} elements differ ({100 * count / total:.3g} %)"
    lines = [f"{pair.title}: {share}, {a.dtype} {list(a.shape)}"]
    apart = _apart(flat_a[positions], flat_e[positions])
    step = "" if apart is None or not np.isfinite(float(apart[0])) else f" ({_signed(apart[0])})"
    values = f"expected {_show(flat_e[first])}, got {_show(flat_a[first])}{step}"
    lines.append(f"  first:     element {list(pair.index(first))}: {values}")
    if apart is None:
        return "\n".join(lines)
    finite = np.isfinite(apart.astype(np.float64))
    if not finite.all():
        lines.append(f"  not finite: {int((~finite).sum()):,} of them, on one side or both")
    apart, positions = apart[finite], positions[finite]
    if len(apart) == 0:
        return "\n".join(lines)
    far = int(np.argmax(np.abs(apart)))
    lines.append(f"  largest:   {_show_number(abs(apart[far]))}, at element {list(pair.index(int(positions[far])))}")
    lines.append(f"  histogram: {_histogram(apart)}  (got - expected)")
    mean = sum(apart.tolist()) / total
    lines.append(f"  bias:      {_signed(mean)} (mean of got - expected over all elements)")
    return "\n".join(lines)


def _apart(a: np.ndarray, e: np.ndarray) -> np.ndarray | None:
    """Got - expected; exact for integers, as objects where 64 bits do not hold it. None for what has no difference."""
    if a.dtype.kind in "iu":
        if a.dtype.itemsize < 8:
            return a.astype(np.int64) - e.astype(np.int64)
        return a.astype(object) - e.astype(object)
    if a.dtype.kind == "b":
        return a.astype(np.int64) - e.astype(np.int64)
    if a.dtype.kind not in "fV":
        return None
    try:
        # Kind V: narrow types that other packages add, for example bfloat16.
        with np.errstate(invalid="ignore", over="ignore"):
            return a.astype(np.float64) - e.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _histogram(apart: np.ndarray) -> str:
    """Counts per difference: the most frequent ones where there are many."""
    if apart.dtype.kind == "f":
        signs = (("< 0", apart < 0), ("= 0", apart == 0), ("> 0", apart > 0))
        return ", ".join(f"{sign}: {int(held.sum()):,}" for sign, held in signs if held.any())
    counts: dict[int, int] = {}
    for value in apart.tolist():
        counts[value] = counts.get(value, 0) + 1
    shown = sorted(sorted(counts, key=lambda v: (-counts[v], abs(v)))[:_SHOWN])
    rest = sum(n for value, n in counts.items() if value not in shown)
    return ", ".join(f"{value:+d}: {counts[value]:,}" for value in shown) + (f", other: {rest:,}" if rest else "")


def _signed(value: Any) -> str:
    return f"{int(value):+d}" if isinstance(value, int | np.integer) else f"{float(value):+.9g}"


def _show_number(value: Any) -> str:
    return str(int(value)) if isinstance(value, int | np.integer) else f"{float(value):.9g}"


def _show(value: np.generic) -> str:
    """The value; for real numbers also the bytes, which tell zeros and payloads apart."""
    if value.dtype.kind in "iub":
        return str(value)
    return f"{value} (0x{np.asarray(value).tobytes()[::-1].hex()})"


def _worked_out(pair: _Pair, session: Session, inputs: Mapping[str, Any], model: str, replay: str) -> str:
    """The step that computes the first differing element, its arithmetic, and the command that replays it."""
    from .compare.archive import write_arrays
    from .compare.one_tensor import verdict_on
    from .explain.mismatch import mismatch_text
    from .files import scratch

    name = pair.tensor or (session.outputs[0].name if len(session.outputs) == 1 else "")
    known = [tensor.name for tensor in session.plan.tensors]
    if name not in known:
        return f"\n  not worked out: the session has no tensor '{name}'; name the tensor with name="
    if not pair.comparable:
        return ""
    if not replay:
        kept = Path(tempfile.mkdtemp(prefix="bittrue-mismatch-")) / "inputs.npz"
        with scratch(kept) as file:
            write_arrays(file, {key: np.asarray(value) for key, value in inputs.items()})
        replay = f"--input {shlex.quote(str(kept))}"
    first = int(np.flatnonzero(pair.differs)[0])
    expected, got = pair.expected.reshape(-1)[first], pair.actual.reshape(-1)[first]
    trace = session.trace(inputs)
    text = mismatch_text(session, trace, name, pair.index(first), expected, got, model, replay)
    # Its first line says again which element it is.
    lines = text.splitlines()[1:]
    # The session gives one of the two; the verdict is on the other.
    sides = (("got", pair.expected, pair.actual), ("expected", pair.actual, pair.expected))
    for word, own, theirs in sides:
        if name in trace and trace[name].tobytes() == own.tobytes() and trace[name].shape == own.shape:
            verdict = verdict_on(session.plan, trace, name, theirs)
            # The command stays last.
            lines[-1:-1] = [f"  verdict on what was {word}: {verdict.text}"] if verdict is not None else []
    return "".join(f"\n{line}" for line in lines)

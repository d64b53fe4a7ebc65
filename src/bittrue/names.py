"""Names that people read and type: long ones shortened, tensors found by number, near ones offered for misspelt ones;
shards of a run.

Converters join the names of everything that a tensor was made of, so names run to hundreds of characters; of one model
they begin alike or end alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from reprlib import Repr

from .errors import InputError

_MARK = "…"
_REPR = Repr()
_REPR.maxstring = 60
_SEPARATORS = "[/;:.]"
_PART = "[^/;:.]*[/;:.]+(?=.)"
_NUMBER = r"(#?)([0-9]{1,9})(?::([0-9]{1,9}))?"
_SHARD = "([0-9]{1,9})/([0-9]{1,9})"
# Shares of the room that the end of a name gets; the first under which all names of a list stay apart is taken.
_ENDS = (0.5, 0.25, 0.75, 0.0, 1.0)


def brief(name: str) -> str:
    """A name for `repr` of what it belongs to: in quotes, escaped, without the middle where it is long.

    >>> print(brief("conv1"), brief("a" * 40 + "b" * 40))
    'conv1' 'aaaaaaaaaaaaaaaaaaaaaaaaaaa...bbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    return _REPR.repr(name)


def short(name: str, width: int = 56) -> str:
    """A name within `width` characters: long ones lose their middle.

    >>> short("a/very/long/name/Conv2D", 12)
    'a/ver…Conv2D'
    """
    return _cut(name, width, 0.5)


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Names that are shown together, each within `width` characters, different ones still different.

    What the long ones have in common at either end goes first, then what tells them apart least.

    >>> distinct(["net/block_1/BatchNorm_Fold/bias", "net/block_2/BatchNorm_Fold/bias", "x"], 14)
    ['…block_1…', '…block_2…', 'x']
    >>> distinct(["mobilenet/conv_one/relu;a", "mobilenet/pool/average"], 14)
    ['…conv_o…relu;a', '…pool/average']
    """
    long = list(dict.fromkeys(name for name in names if len(name) > width))
    start = _start_of_most(long)
    cores = {name: name.removeprefix(start) for name in long}
    end = _whole_parts(_common([core[::-1] for core in cores.values()]))[::-1] if len(long) > 1 else ""
    if len(end) > 4 and any(len(core) + bool(start) > width for core in cores.values()):
        cores = {name: core.removesuffix(end) for name, core in cores.items()}
    marked = {name: _MARK if name.startswith(start) and start else "" for name in long}
    shorter = [f"{marked[name]}{core}{'' if name.endswith(core) else _MARK}" for name, core in cores.items()]
    shown = dict(zip(long, _apart(shorter, max(width, 1)), strict=True))
    return [shown.get(name, name) for name in names]


def _start_of_most(names: Sequence[str]) -> str:
    """The longest start, up to a separator, that at least two thirds of the names have and that leaves none empty."""
    start = ""
    while True:
        parts = [
            found[0] for name in names if name.startswith(start) and (found := re.match(_PART, name[len(start) :]))
        ]
        best = max(dict.fromkeys(parts), key=parts.count, default="")
        if not best or len(names) < 2 or 3 * parts.count(best) < 2 * len(names):
            return start
        start += best


def _apart(names: list[str], width: int) -> list[str]:
    """Different names, shortened; those that would be alike show where they begin to differ."""
    tried = ([_cut(name, width, share) for name in names] for share in _ENDS)
    found = max(tried, key=lambda shown: len(set(shown)))
    if len(set(found)) == len(names) or width < 4:
        return found
    groups: dict[str, list[int]] = {}
    for position, text in enumerate(found):
        groups.setdefault(text, []).append(position)
    for positions in groups.values():
        if len(positions) > 1:
            shared = len(_common([names[i] for i in positions]))
            # Each round looks at less of fewer names.
            for i, text in zip(positions, _apart([names[i][shared:] for i in positions], width - 1), strict=True):
                found[i] = f"{_MARK}{text}"
    return found


def _cut(name: str, width: int, share: float) -> str:
    if len(name) <= width:
        return name
    end = round((width - 1) * share)
    return f"{name[: max(width - 1 - end, 0)]}{_MARK}{name[len(name) - end :]}"


def _common(names: Sequence[str]) -> str:
    """What names begin with."""
    first, last = min(names), max(names)
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _whole_parts(shared: str) -> str:
    """What names have in common, up to the last separator; of the ends, which come turned round, likewise."""
    return shared[: max(map(shared.rfind, "/;:.")) + 1]


def by_number(text: str, known: Collection[str], outputs: Callable[[int], Sequence[str] | None], nodes: int) -> str:
    """The name of the tensor that a user means: a name, or the number of the node that computes it.

    Args:
        text: a name, which wins; ``"3"``: what node 3 computes; ``"#3"``: the same though a tensor may be called "3";
            ``"3:1"``: its second output.
        known: names of tensors.
        outputs: names of the outputs of the node with a number; None where there is no such node.
        nodes: how many nodes there are, for messages.

    Raises:
        InputError: no such node or output.

    >>> by_number("1:1", ["a", "b", "c"], [["a"], ["b", "c"]].__getitem__, 2)
    'c'
    """
    found = re.fullmatch(_NUMBER, text)
    if found is None or (not found[1] and text in known):
        return text
    names = outputs(int(found[2]))
    if names is None:
        advice = f"nodes are numbered from 0 to {nodes - 1}" if nodes else "there are no nodes"
        raise InputError("BT-NODE-NUMBER", f"there is no node {int(found[2])}", place=f"'{text}'", advice=advice)
    position = int(found[3] or 0)
    if position >= len(names):
        some = "no outputs" if not names else "1 output" if len(names) == 1 else f"{len(names)} outputs"
        raise InputError("BT-NODE-NUMBER", f"node {int(found[2])} has {some}", place=f"'{text}'")
    return names[position]


def near(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The names that a misspelt one may stand for: those that hold it, those spelt alike, else the longest in it.

    >>> near("xnpack", ["litert", "xnnpack", "caffe2"]), near("CONV2D", ["CONV_2D", "CONV_3D"], 1)
    (['xnnpack'], ['CONV_2D'])
    >>> near("Int8Conv2D", ["add", "conv", "pad"])
    ['conv']
    """
    from difflib import get_close_matches

    plain: dict[str, list[str]] = {}
    for name in dict.fromkeys(known):
        plain.setdefault(_plain(name), []).append(name)
    wanted = _plain(word)
    keys = [key for key in plain if len(wanted) > 2 and wanted in key]
    keys = keys[:most]
    keys += [key for key in get_close_matches(wanted, plain, most, 0.65) if key not in keys]
    if not keys and len(wanted) > 3:
        # Names of tensors are paths: a part of one may be what was meant.
        parts = {part: key for key in plain for part in re.split(_SEPARATORS, key)}
        keys = [parts[part] for part in get_close_matches(wanted, parts, most, 0.75)]
    if not keys:
        inner = [key for key in plain if len(key) > 2 and key in wanted]
        keys = sorted(inner, key=lambda key: -len(key))[:1]
    return [name for key in dict.fromkeys(keys) for name in plain[key]][:most]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Advice for a name that there is not: the nearest ones, or else something else.

    >>> did_you_mean("ad", ["add", "mul"], "bittrue inspect lists them")
    "did you mean 'add'?"
    """
    close = near(word, known)
    return f"did you mean {' or '.join(repr(name) for name in close)}?" if close else otherwise


def near_or_all(word: str, known: Iterable[str], title: str) -> str:
    """Advice for a name of which there are few: the nearest ones, or else all.

    >>> near_or_all("x", ["add", "mul"], "choose one of")
    'choose one of: add, mul'
    """
    known = list(known)
    return did_you_mean(word, known, f"{title}: {', '.join(known) or 'none'}")


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())


def parse_shard(text: str) -> tuple[int, int]:
    """(which, of how many) from ``"2/5"``, counted from 1; (1, 1) where nothing is said.

    Raises:
        InputError: it is no shard.

    >>> parse_shard("2/5"), parse_shard("")
    ((2, 5), (1, 1))
    """
    if not text:
        return 1, 1
    found = re.fullmatch(_SHARD, text)
    if found and 1 <= int(found[1]) <= int(found[2]):
        return int(found[1]), int(found[2])
    raise InputError("BT-USAGE", f"cannot read the shard '{text}'", place="--shard", advice="write 2/5")

"""Runtimes as users name them where no file is: ``litert:xnnpack``, ``ort?level=basic``, ``openvino``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..api import Port
from ..errors import InputError
from ..names import near_or_all
from .base import Opened, Peer
from .litert import LITERT, RESOLVERS, open_litert
from .onnxruntime import LEVELS, ONNXRUNTIME, Settings, open_onnxruntime
from .openvino import OPENVINO
from .processor import onnxruntime_here
from .sides import choice, number, query_options

# Names of options that follow the question mark.
OPTIONS = {
    "litert": ("resolver", "threads", "timeout"),
    "ort": ("level", "disable", "threads", "integers", "timeout"),
    "openvino": ("threads", "timeout"),
}
_RESOLVER = "resolver"
# What users may type, options aside.
NAMES = (*(f"litert:{resolver}" for resolver in RESOLVERS), "ort", "openvino")


@dataclass(frozen=True)
class Chosen:
    """A runtime with its options.

    Attributes:
        peer: it, with them.
        title: for people, with its version.
        threads: that it may use.
        numerics: what stands for it; empty where nothing does.
    """

    peer: Peer
    title: str
    threads: int
    numerics: str


def choose(name: str, options: Mapping[str, str]) -> Chosen:
    """The runtime that `OPTIONS` calls `name`.

    Raises:
        InputError: an option has no such value.
    """
    threads = number(options, "threads", 1, 1024)
    if name == "litert":
        resolver = choice(options, _RESOLVER, tuple(RESOLVERS), "builtin_ref")
        kernels, numerics, words = RESOLVERS[resolver]
        peer = replace(LITERT, prepare=open_litert(resolver))
        return Chosen(peer, f"LiteRT {peer.version()}, {words} ({kernels})", threads, numerics)
    if name == "ort":
        level, disable = choice(options, "level", tuple(LEVELS), "all"), options.get("disable", "")
        integers = choice(options, "integers", ("1", "0"), "1") == "1"
        settings = Settings(level, tuple(filter(None, disable.split(","))), threads, integers)
        title = f"ONNX Runtime {ONNXRUNTIME.version()}, level {level}" + (f", without {disable}" if disable else "")
        usual = level == "all" and not disable
        return Chosen(
            replace(ONNXRUNTIME, prepare=partial(_with_settings, settings)),
            title,
            threads,
            onnxruntime_here().with_options(integers) if usual else "",
        )
    return Chosen(OPENVINO, f"OpenVINO {OPENVINO.version()}", threads, "")


def _with_settings(settings: Settings, module: Any, path: Path, ports: Sequence[Port], threads: int) -> Opened:
    return open_onnxruntime(module, path, ports, settings)


def read_name(text: str) -> tuple[str, dict[str, str]]:
    """Name and options of what a user typed, for `choose`.

    Raises:
        InputError: there is no such runtime, or it has no such option.

    >>> read_name("litert:xnnpack?threads=2")
    ('litert', {'threads': '2', 'resolver': 'xnnpack'})
    """
    word, _, query = text.strip().partition("?")
    name, colon, variant = word.partition(":")
    if name not in OPTIONS or (colon and word not in NAMES):
        raise InputError("BT-SIDE", f"there is no runtime '{word}'", advice=near_or_all(word, NAMES, "there are"))
    options = query_options(name, query, OPTIONS[name])
    if variant:
        if _RESOLVER in options:
            raise InputError("BT-SIDE-OPTION", f"{_RESOLVER} is given twice", place=f"'{text}'")
        options[_RESOLVER] = variant
    return name, options


def full_name(name: str, options: Mapping[str, str]) -> str:
    """The one text for a runtime with these options.

    >>> full_name("litert", {"threads": "2"})
    'litert:builtin_ref?threads=2'
    """
    rest = dict(options)
    word = f"{name}:{rest.pop(_RESOLVER, 'builtin_ref')}" if name == "litert" else name
    query = "&".join(f"{key}={value}" for key, value in sorted(rest.items()))
    return f"{word}?{query}" if query else word

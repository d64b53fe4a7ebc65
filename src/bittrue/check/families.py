"""The ways in which one runtime runs the same file, as numerics that can be compared with one another."""

from __future__ import annotations

from ..numerics import Numerics, find
from .rule import Subject

# numerics -> (those that users of the same file meet, what each is)
_FAMILIES: dict[str, dict[str, str]] = {
    "tflite": {
        "litert": "LiteRT's reference kernels",
        "litert-optimized": "LiteRT's optimised kernels",
        "xnnpack": "XNNPACK (LiteRT's default delegate)",
    },
}


def others(subject: Subject) -> list[tuple[Numerics, str]]:
    """The other numerics of the subject's family, with what they are called in messages."""
    family = _FAMILIES.get(subject.format, {})
    if subject.numerics.name not in family:
        return []
    return [(find(name), title) for name, title in family.items() if name != subject.numerics.name]


def title(subject: Subject) -> str:
    """What the subject's own numerics is called in messages."""
    return _FAMILIES.get(subject.format, {}).get(subject.numerics.name, subject.numerics.name)

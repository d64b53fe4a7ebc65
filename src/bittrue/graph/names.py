"""Long names of tensors, shortened: converters join the names of everything that a tensor was made of."""

from __future__ import annotations


def ending(name: str, width: int) -> str:
    """A name within `width` characters: long ones keep their end, which is where names differ.

    >>> ending("StatefulPartitionedCall/Net/conv1/Relu6;Net/conv1/Conv2D", 20)
    '...;Net/conv1/Conv2D'
    """
    return name if len(name) <= width else f"...{name[3 - width :]}"


def both_ends(name: str, longest: int, half: int) -> str:
    """A name, or `half` characters of either end when it is longer than `longest`.

    >>> both_ends("StatefulPartitionedCall/Net/conv1/Relu6;Net/conv1/Conv2D", 20, 8)
    'Stateful...1/Conv2D'
    """
    return name if len(name) <= longest else f"{name[:half]}...{name[-half:]}"

"""word_convolution: one row per word from the rows of its characters, of a table, by filters over their neighbours.

A word has as many characters as numbers above 0 in its row of words[W, L]; one that begins with another number has
none. result[w, f] = the largest of tanh(window * filter[f] + bias[f]) over the windows of max(characters, width) rows.
Operands: words, filters[F, 1, width, E], bias[F], table[C, E].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import real_function, real_product
from ...rules.real_product import Layout
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

# What no tanh is below; a NaN gives way to what comes behind it.
_LOWEST = np.float32(-1e12)


def infer(call: Call) -> list[Shape]:
    """A row of all filters per word."""
    call.expect(4)
    words, filters, bias, table = map(call.input, range(4))
    for operand, rank in ((words, 2), (filters, 4), (bias, 1), (table, 2)):
        call.rank(operand, rank)
    count, one, width, size = filters.shape
    named = [int(call.attribute(name)) for name in ("embedding_size", "conv_window_size", "char_embedding_size")]
    if any(n not in (-1, found) for n, found in zip(named, (count, width, table.shape[1]), strict=True)):
        raise call.invalid("BT-NODE-ATTRIBUTE", f"sizes {named} are not those of filters {list(filters.shape)}")
    if one != 1 or size != table.shape[1] or bias.shape != (count,) or not 1 <= width <= words.shape[1] or not size:
        raise call.invalid("BT-SHAPE-OPERANDS", f"filters {list(filters.shape)} do not fit {list(table.shape)}")
    return [bounded(call, (words.shape[0], count))]


def lower(call: Call) -> Lowered:
    """Nothing to prepare."""
    words, filters = call.input(0), call.input(1)
    windows = words.size * filters.shape[2] * filters.shape[3]
    return Lowered(work=windows * filters.shape[0], scratch=16 * (windows + words.size * filters.shape[0]))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Words that stand together make one product, since a single row is added up in another order.

    Raises:
        RunError: a character is not in the table; a word has no characters, and the runtime writes nothing.
    """
    words, filters, bias, table = inputs
    count, _, width, size = filters.shape
    lengths = np.where(words[:, 0] > 0, (words > 0).sum(1), 0)
    if (lengths == 0).any():
        raise RunError("BT-WORDS", "the runtime writes nothing for words of no characters", place=step.place)
    product = real_product.RULES[step.rules["real_product"]]
    tanh = real_function.RULES[step.rules["real_function"]].functions["tanh"]
    spans, windows = np.maximum(lengths, width), []
    for word, span in zip(words, spans, strict=True):
        if ((word[:span] < 0) | (word[:span] >= len(table))).any():
            message = f"characters {word.tolist()} are not within 0..{len(table) - 1}"
            raise RunError("BT-WORDS", message, place=step.place)
        rows = table[word[:span]].reshape(-1)
        windows += [rows[k * size : (k + width) * size] for k in range(span - width + 1)]
    if not windows:
        return [np.zeros((0, count), np.float32)]
    with np.errstate(all="ignore"):
        weights = filters.reshape(count, -1).T
        found = tanh(product.apply(np.stack(windows), weights, None, 1.0, 1.0, Layout(turned_b=True)) + bias)
        result, first = np.full((len(words), count), _LOWEST), 0
        for row, span in zip(result, spans, strict=True):
            for values in found[first : first + span - width + 1]:
                row[...] = np.where(values < row, row, values)
            first += span - width + 1
    return [result]


OPERATOR = Operator(
    "word_convolution",
    ("real_product", "real_function"),
    infer,
    lower,
    reference,
    "words from the rows of their characters by filters and their largest results",
    multiplies=True,
)

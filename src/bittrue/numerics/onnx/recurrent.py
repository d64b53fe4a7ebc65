"""Rows of `onnx`: recurrent layers over whole sequences."""

from __future__ import annotations

from ..onnxruntime.recurrent import LSTM_TYPES, SHORT_TYPES
from ..table import Row

_TEXT = "the operator's equations, every one rounded once; oracle in exact fractions and decimals"
_ONCE = {"real_product": "rounded_once", "recurrence": "rounded_once"}
_LIMIT = "behind the end of a sequence, results are 0, which the text leaves open; ScaledTanh is refused"

ROWS: tuple[Row, ...] = (
    *(
        Row(
            stem,
            types,
            evidence="the specification's text",
            when=(("attribute_is", "lacking", True),),
            refuses="the text has no default for alpha and beta of Affine, ScaledTanh and ThresholdedRelu",
        )
        for stem, types in (("lstm", LSTM_TYPES), ("gru", SHORT_TYPES), ("rnn", SHORT_TYPES))
    ),
    Row("lstm", LSTM_TYPES, _ONCE, _TEXT, limit=_LIMIT),
    *(Row(stem, SHORT_TYPES, _ONCE, _TEXT, limit=_LIMIT) for stem in ("gru", "rnn")),
)

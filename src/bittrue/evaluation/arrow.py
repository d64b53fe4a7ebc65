"""The package pyarrow, which is there only where it was asked for."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import UnsupportedError


def parquet() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet.

    Raises:
        UnsupportedError: they are not installed.
    """
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UnsupportedError(
            "BT-PACKAGE", "pyarrow is not installed", advice='pip install "bittrue[evaluate]"'
        ) from None

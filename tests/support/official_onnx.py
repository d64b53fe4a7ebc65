"""The onnx package's own tests of single nodes: to make them it runs every operator, which takes seconds."""

from __future__ import annotations

import functools
import os
import pickle
import warnings
from pathlib import Path
from typing import Any


@functools.cache
def official_cases() -> tuple[Any, ...]:
    """All of them; made once per run, whose folder is in the environment. Nobody changes one."""
    folder = os.environ.get("BITTRUE_TESTS_SHARE")
    path = Path(folder, "official.pickle") if folder else None
    if path is not None and path.is_file():
        found: tuple[Any, ...] = pickle.loads(path.read_bytes())
        return found
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        # The package converts to narrow types beyond their range.
        warnings.simplefilter("ignore")
        found = tuple(collect_testcases(None))
    if path is not None:
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(found))
        part.replace(path)
    return found

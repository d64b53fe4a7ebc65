"""What the other systems' processes share: output kept clean for answers, and the loop that times runs.

Imported before the system itself, whose own messages then go to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
warnings.simplefilter("ignore")


def answer(folder: Path, image: np.ndarray, run: Callable[[], np.ndarray], described: dict[str, Any]) -> None:
    """Save input and output of one run, describe the network, then answer every line of standard input.

    A line is a number of runs, its answer their seconds.
    """
    np.save(folder / "input.npy", image)
    np.save(folder / "output.npy", run())
    print(json.dumps(described), file=_ANSWERS, flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), file=_ANSWERS, flush=True)

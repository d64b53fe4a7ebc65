"""What calls into devices become: everything that they can raise is an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from .refused import Refused
from .values import Crashed, Failed, TimedOut, Unreadable, told, words


def answered(run: Callable[[], Mapping[str, np.ndarray]]) -> tuple[str, str, Mapping[str, np.ndarray]]:
    """(status, text, outputs) of a call into a device; everything but Ctrl-C is an answer."""
    try:
        return "outputs", "", run()
    except (Refused, NotImplementedError) as error:
        return "refused", words(error), {}
    except Unreadable as error:
        return "unreadable", words(error), {}
    except Crashed as error:
        return "crashed", words(error), {}
    except TimedOut as error:
        return "timed out", words(error), {}
    except Failed as error:
        return "raised", words(error), {}
    except Exception as error:
        return "raised", f"{told(error)}{where(error)}", {}
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        return "crashed", f"it ended the program: {told(error)}", {}
    except BaseException as error:
        return "raised", told(error), {}


def where(error: BaseException) -> str:
    """File and line where an exception arose, in brackets."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"

"""Lines without styles, for what is copied or read by programs. Text is shown, never obeyed, as `terminal` has it."""

from __future__ import annotations

import sys
from typing import Any

from ..visible import visible


def say(*lines: str, err: bool = False) -> None:
    """Prints lines as they are, however long: nothing is wrapped or cut, so that they can be copied."""
    stream = sys.stderr if err else sys.stdout
    stream.write("".join(f"{visible(line)}\n" for line in lines))
    stream.flush()


def say_json(value: Any) -> None:
    """Prints JSON in ASCII. Strings are exact, even lone surrogates; "nan" and "inf" stand for such numbers."""
    import json

    from ..report.result import plain

    # DEL is the one control character that JSON lets through.
    say(*json.dumps(plain(value), indent=1, allow_nan=False).replace("\x7f", "\\u007f").split("\n"))

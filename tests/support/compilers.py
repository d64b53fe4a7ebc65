"""Compilers for the processor that runs the tests."""

from __future__ import annotations

import platform
import shutil


def compiler(name: str) -> str | None:
    """Where gcc or g++ is; where Python is emulated, the one that makes code for the emulated processor."""
    return shutil.which(f"{platform.machine()}-linux-gnu-{name}") or shutil.which(name)

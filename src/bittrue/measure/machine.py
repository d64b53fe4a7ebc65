"""What a measurement must say about where it was made."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..runners.base import Peer

# Instruction sets that matter to 8-bit kernels, as Linux names them on x86-64 and ARM.
_RELEVANT = (
    "ssse3", "sse4_1", "avx", "avx2", "fma", "avx_vnni", "avx_vnni_int8", "avx512f", "avx512bw", "avx512vl",
    "avx512_vnni", "avx512vbmi", "avx512_bf16", "amx_int8", "asimd", "asimdhp", "asimddp", "i8mm", "sve", "sve2",
)  # fmt: skip


def processor(information: str) -> tuple[str, list[str]]:
    r"""(name, relevant flags) from the text of Linux' /proc/cpuinfo.

    >>> processor("model name\t: Great CPU\nflags\t\t: fpu avx2 avx512_vnni\n")
    ('Great CPU', ['avx2', 'avx512_vnni'])
    """
    fields: dict[str, str] = {}
    for line in information.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    name = fields.get("model name") or platform.processor() or platform.machine()
    return name, [flag for flag in _RELEVANT if flag in flags]


def environment(version: str, peers: Iterable[Peer] = ()) -> dict[str, Any]:
    """Processor, cores, load, system, versions (`version` is ours) and date, as plain data."""
    try:
        information = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        information = ""
    name, flags = processor(information)
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": name,
        "architecture": platform.machine(),
        "flags": flags,
        "cores": os.cpu_count(),
        "usable_cores": len(affinity(0)) if affinity else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "versions": {
            "bittrue": version,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **{peer.package: installed for peer in peers if (installed := peer.version())},
        },
    }

"""Where ../shared lives, and skipping with a reason when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"

needs_shared = pytest.mark.skipif(
    not (SHARED / "models").is_dir(), reason=f"the shared models are not at {SHARED} (they are not in this repository)"
)


def shared_models() -> list[Path]:
    """Every shared .tflite model, in name order; empty without ../shared."""
    return sorted((SHARED / "models").glob("*.tflite"))

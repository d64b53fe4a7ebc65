"""Recorded vectors of other runtimes, replayed."""

from .replay import Outcome, Replay, Summary, replay

__all__ = ["Outcome", "Replay", "Summary", "replay"]

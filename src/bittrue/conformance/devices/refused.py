"""How a device in Python says no."""

from __future__ import annotations


class Refused(Exception):
    """Raised by a device: it does not run such a model. The text is the reason, for reports."""

"""How a device in Python says no."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818  no error: an answer
    """Raised by a device: it does not run such a model. The text is the reason, for reports."""

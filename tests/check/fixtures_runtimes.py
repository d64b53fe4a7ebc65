"""Models that trip the rules BT5xx, and models beside them that do not."""

from support.runtime_models import FIXTURES

__all__ = ["FIXTURES"]

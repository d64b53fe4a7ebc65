"""Models that trip the rules BT4xx, and models beside them that do not."""

from support.linear_models import FIXTURES

__all__ = ["FIXTURES"]

"""Models with hazards (rules BT6xx), and models beside them without."""

from support.hazard_models import FIXTURES

__all__ = ["FIXTURES"]

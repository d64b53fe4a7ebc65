"""Models with hazards (rules BT6xx), and models beside them without."""

from support import hazard_models
from support.findings import makers

FIXTURES = makers(hazard_models.FIXTURES)

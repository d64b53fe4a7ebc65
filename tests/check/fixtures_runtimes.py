"""Models that trip the rules BT5xx, and models beside them that do not."""

from support import runtime_models
from support.findings import makers

FIXTURES = makers(runtime_models.FIXTURES)

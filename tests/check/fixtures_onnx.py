"""Models that trip the rules BT4xx, and models beside them that do not."""

from support import linear_models
from support.findings import makers

FIXTURES = makers(linear_models.FIXTURES)

"""graph + numerics -> Plan, and the plan's text and file forms (`loading` is imported by those who need it)."""

from .first_plan import make_plan
from .plan import Plan, PlanTensor
from .planner import DEFAULT_MEMORY_LIMIT

__all__ = ["DEFAULT_MEMORY_LIMIT", "Plan", "PlanTensor", "make_plan"]

"""graph + numerics -> Plan, and the plan's text and file forms."""

from .file import load_plan, save_plan
from .plan import Plan, PlanTensor
from .planner import DEFAULT_MEMORY_LIMIT, make_plan

__all__ = ["DEFAULT_MEMORY_LIMIT", "Plan", "PlanTensor", "load_plan", "make_plan", "save_plan"]

"""Does a model obey the specifications that its format promises, and what could go wrong with it."""

from .finding import SEVERITIES, Finding
from .rule import Rule, Subject

__all__ = ["SEVERITIES", "Finding", "Rule", "Subject"]

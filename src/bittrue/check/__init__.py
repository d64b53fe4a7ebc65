"""Does a model obey the specifications that its format promises, and what could go wrong with it."""

from .finding import SEVERITIES, Finding
from .rule import Rule, Subject
from .runner import CheckResult, Failure, check_model, choose_rules

__all__ = ["SEVERITIES", "CheckResult", "Failure", "Finding", "Rule", "Subject", "check_model", "choose_rules"]

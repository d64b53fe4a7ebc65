"""The check rules, one file each. A file's name is its code and its name; `RULE` is what it registers."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ...errors import InputError
from ...names import did_you_mean
from ..rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(importlib.import_module(f"{__name__}.{name}").RULE for name in names)


def find(code: str) -> Rule:
    """The rule with this code or name; InputError for an unknown one."""
    for rule in all_rules():
        if code.upper() == rule.code or code.lower() == rule.name:
            return rule
    text = code.lower()
    close = [rule for rule in all_rules() if text and (text in rule.name or rule.code.lower().startswith(text))]
    names = ", ".join(f"{rule.code} {rule.name}" for rule in close[:8])
    listed = f"perhaps one of: {names}; `bittrue rule` lists all" if close else "`bittrue rule` lists them"
    advice = listed if close else did_you_mean(code, (rule.name for rule in all_rules()), listed)
    raise InputError("BT-RULE", f"no rule '{code}'", advice=advice)

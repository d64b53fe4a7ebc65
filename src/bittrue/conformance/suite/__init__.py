"""The cases that devices are tested with: models of one operator and their inputs, the same bytes everywhere."""

from .case import AIMS, SuiteCase
from .suites import SUITE_VERSION, SUITES, Suite, digest_of_cases, find_suite

__all__ = ["AIMS", "SUITES", "SUITE_VERSION", "Suite", "SuiteCase", "digest_of_cases", "find_suite"]

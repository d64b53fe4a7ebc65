"""Cases of the suites are made once per run for all tests of this folder."""

from support.cases_made_once import cases_are_made_once, made_anew

__all__ = ["cases_are_made_once", "made_anew"]

"""How good the suite is: every neighbouring wrong implementation is run against it.

A mutant is a device that does one thing differently: another rule in one slot of its step, another numerics' whole row,
or a fault. The suite kills it when one case's outputs have other bytes than they should.
"""

from .mutants import Mutant, mutants
from .score import FORMAT, MutantScore, OperatorScore, score

__all__ = ["FORMAT", "Mutant", "MutantScore", "OperatorScore", "mutants", "score"]

"""Mutants of the product: each leaves out one of its rules, and some schedule has to show it."""

from __future__ import annotations

from world.mutants import coordinator_rules as coordinator_rules
from world.mutants import storage_rules as storage_rules
from world.mutants import worker_rules as worker_rules
from world.mutants import zone_rules as zone_rules
from world.mutants.mutant import MUTANTS, Mutant, without

__all__ = ["MUTANTS", "Mutant", "without"]

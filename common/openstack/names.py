"""Names of what osbench makes in a cloud: they say which run has made it.

A name begins with the run and the workload, so that all of it is found again by that beginning,
whoever died before noting anything. What iterations make and what contexts make begin in two
ways, because contexts are undone after what iterations have left.
"""

from __future__ import annotations

import os


def of_iterations(run: str, workload: int) -> str:
    """Beginning of the names that iterations of a workload give."""
    return f"osb-{run}-{workload}-i"


def of_contexts(run: str, workload: int) -> str:
    """Beginning of the names that contexts of a workload give."""
    return f"osb-{run}-{workload}-c"


def in_iteration(run: str, workload: int, iteration: int) -> str:
    """A new name for something that an iteration makes; at most 64 characters."""
    # the end keeps names apart within an iteration, and of one that is run twice
    return f"{of_iterations(run, workload)}{iteration}-{os.urandom(4).hex()}"

"""Names of what osbench makes in a cloud: they say which run has made it, and prove it.

A name begins with the run and the workload, so that all of it is found again by that beginning,
whoever died before noting anything. What iterations make and what contexts make begin in two
ways, because contexts are undone after what iterations have left. The names that contexts give are
known beforehand; those of iterations end with a mark that only the run's key makes, so that a like
name that somebody else has given is not taken for one of them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re

_MARKED = re.compile(r"(osb-.+-i\d+-[0-9a-f]{8})([0-9a-f]{8})")


def of_iterations(run: str, workload: int) -> str:
    """Beginning of the names that iterations of a workload give."""
    return f"osb-{run}-{workload}-i"


def of_contexts(run: str, workload: int) -> str:
    """Beginning of the names that contexts of a workload give."""
    return f"osb-{run}-{workload}-c"


def in_iteration(run: str, workload: int, iteration: int, key: str) -> str:
    """A new name for something that an iteration makes; at most 64 characters.

    `key` is the workload's, at most 64 characters of ASCII.
    """
    # the random part keeps names apart within an iteration, and of one that is run twice
    text = f"{of_iterations(run, workload)}{iteration}-{os.urandom(4).hex()}"
    return text + _mark(text, key)


def is_from_iteration(name: str, key: str) -> bool:
    """Whether `in_iteration` has made the name with that key."""
    found = _MARKED.fullmatch(name)
    return found is not None and hmac.compare_digest(found[2], _mark(found[1], key))


def _mark(text: str, key: str) -> str:
    return hashlib.blake2b(text.encode(), key=key.encode(), digest_size=4).hexdigest()

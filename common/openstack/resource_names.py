"""Names of cloud resources made by osbench: they identify the run, and prove its authorship.

A name starts with run and workload, so that resources are found by this prefix even if a process
was killed before it recorded them. Resources of iterations and of contexts have different prefixes,
because resources of iterations are removed before contexts are undone. Names given by contexts are
known in advance. Names given by iterations end with a keyed hash, so that a similar name given by
another client is never taken for one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from datetime import datetime

#: Names that osbench gives, and the run in them: of iterations and of contexts.
_GIVEN = re.compile(
    r"osb-(\d{8}-\d{6}-[0-9a-f]{4})-\d+-(?:i\d+-[0-9a-f]{16}|c-[a-z0-9_]+(?:-\d+){1,2})"
)
_MARKED = re.compile(r"(osb-.+-i\d+-[0-9a-f]{8})([0-9a-f]{8})")


def of_iterations(run: str, workload: int) -> str:
    """Return the prefix of the names that iterations of a workload give."""
    return f"osb-{run}-{workload}-i"


def of_contexts(run: str, workload: int) -> str:
    """Return the prefix of the names that contexts of a workload give."""
    return f"osb-{run}-{workload}-c"


def in_iteration(run: str, workload: int, iteration: int, key: str) -> str:
    """Return a new name for a resource that an iteration makes; at most 64 characters.

    `key` is the workload's, at most 64 characters of ASCII.
    """
    # the random part makes names unique within an iteration, and across reruns of it
    text = f"{of_iterations(run, workload)}{iteration}-{os.urandom(4).hex()}"
    return text + _mark(text, key)


def is_from_iteration(name: str, key: str) -> bool:
    """Return whether `in_iteration` made the name with that key."""
    found = _MARKED.fullmatch(name)
    return found is not None and hmac.compare_digest(found[2], _mark(found[1], key))


def run_in(name: str) -> str:
    """Return the run whose iteration or context may have given this name; "" for other names.

    Without the key of the run it cannot be proved: another client may have given a name like it.
    """
    found = _GIVEN.fullmatch(name)
    if found is None:
        return ""
    try:
        datetime.strptime(found[1][:15], "%Y%m%d-%H%M%S")
    except ValueError:
        return ""
    return found[1]


def _mark(text: str, key: str) -> str:
    return hashlib.blake2b(text.encode(), key=key.encode(), digest_size=4).hexdigest()

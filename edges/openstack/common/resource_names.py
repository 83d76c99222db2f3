"""Names of cloud resources created by osbench: they identify the run, and prove their origin.

A name starts with run and workload, so that resources are found by this prefix even if a process
was killed before it recorded them. Resources of iterations and of contexts have different prefixes,
because resources of iterations are removed before contexts are undone. Names given by contexts are
known in advance. Names given by iterations end with a keyed hash, so that a similar name given by
another client is never mistaken for a name of osbench. Resources of a seed outlive runs: their
names have no run, so that no clean-up of runs finds them.
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
#: Names of seeds, groups of objects in them, and objects: the last two words have no hyphen, so a
#: name is read in one way. 64 characters at most, as Keystone allows for projects.
SEED_NAME = "[a-z0-9](?:[a-z0-9_-]{0,22}[a-z0-9])?"
GROUP_NAME = "[a-z][a-z0-9_]{0,19}"
MOST_SEEDED = 1_000_000
_SEEDED = re.compile(rf"osb-seed-({SEED_NAME})-({GROUP_NAME})-([1-9]\d{{0,6}})")
_MARKED = re.compile(r"(osb-.+-i(\d+)-[0-9a-f]{8})([0-9a-f]{8})")
#: Names that Rally's scenarios and contexts give by default: their RESOURCE_NAME_FORMAT, in which
#: the first X's are the beginning of the owner's id (rally/common/utils.py,
#: `RandomNameGeneratorMixin`).
_OF_RALLY = re.compile(r"[cs]_rally_([A-Za-z0-9]{8})_[A-Za-z0-9]{8}")


def of_workload(run: str, workload: int) -> str:
    """Return the prefix of the names of all resources of a workload."""
    return f"osb-{run}-{workload}-"


def of_iterations(run: str, workload: int) -> str:
    """Return the prefix of the names of resources that iterations of a workload create."""
    return f"{of_workload(run, workload)}i"


def of_contexts(run: str, workload: int) -> str:
    """Return the prefix of the names of resources that contexts of a workload create."""
    return f"{of_workload(run, workload)}c"


def in_iteration(run: str, workload: int, iteration: int, key: str) -> str:
    """Return a new, random name for a resource of an iteration; at most 64 characters.

    `key` is the workload's secret for the keyed hash at the end: ASCII, at most 64 characters.
    """
    # the random part makes names unique within an iteration, and across reruns of it
    text = f"{of_iterations(run, workload)}{iteration}-{os.urandom(4).hex()}"
    return text + _mark(text, key)


def of_seed(seed: str) -> str:
    """Return the prefix of the names of all resources of a seed; other seeds may have it, too."""
    return f"osb-seed-{seed}-"


def in_seed(seed: str, group: str, number: int) -> str:
    """Return the name of object `number` of a group in a seed; numbers begin with 1."""
    return f"{of_seed(seed)}{group}-{number}"


def seeded_as(name: str, seed: str) -> tuple[str, int] | None:
    """Return group and number of a name that `in_seed` gives for `seed`; None for other names."""
    found = _SEEDED.fullmatch(name)
    return (found[2], int(found[3])) if found is not None and found[1] == seed else None


def is_from_iteration(name: str, key: str) -> bool:
    """Return whether `in_iteration` made a name with this key, by the keyed hash at its end."""
    found = _MARKED.fullmatch(name)
    return found is not None and hmac.compare_digest(found[3], _mark(found[1], key))


def iteration_in(name: str) -> int:
    """Return the iteration in a name that `in_iteration` made; 0 for other names."""
    found = _MARKED.fullmatch(name)
    return int(found[2]) if found is not None else 0


def run_in(name: str) -> str:
    """Return the run id in a resource name of osbench; "" for other names.

    It is not proof of origin: another client may have given such a name.
    """
    found = _GIVEN.fullmatch(name)
    if found is None:
        return ""
    try:
        datetime.strptime(found[1][:15], "%Y%m%d-%H%M%S")
    except ValueError:
        return ""
    return found[1]


def rally_task_in(name: str) -> str:
    """Return the beginning of the id of a task in a resource name that Rally gave by default.

    8 letters and digits; "" for other names. It is not proof of origin either.
    """
    found = _OF_RALLY.fullmatch(name)
    return found[1] if found is not None else ""


def _mark(text: str, key: str) -> str:
    return hashlib.blake2b(text.encode(), key=key.encode(), digest_size=4).hexdigest()

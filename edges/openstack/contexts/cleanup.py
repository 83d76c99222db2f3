"""The hidden context `cleanup`: removes resources that iterations have left, however they ended.

Its setup is on disk before the first iteration begins. It records which services to search, and
the key that identifies resource names given by iterations of the run and workload
(the module `resource_names`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import (
    KIND_NAMES,
    NAMES_KEY,
    SETTLE_LATE_S,
    SETTLE_S,
    CloudAccess,
    ErrorSearch,
    is_from_iteration,
    kinds,
    probe,
    remove_resources,
)


class Cleanup(context.Context):
    """Removes the resources, and only those, that iterations have left in the given services."""

    NAME: ClassVar[str] = "cleanup"
    ORDER: ClassVar[int] = 1_000_000
    HIDDEN: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "description": "services to search, or kinds of objects in them",
        "items": {"enum": KIND_NAMES},
    }

    def setup(self) -> None:
        """Check by list requests that the services may be searched; store a random key in `made`.

        Iterations derive the names of their resources from the key. Raises DeploymentError if a
        service is missing, RequestFailed if it refuses a list.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        for kind in (kind for name in self.config for kind in kinds(name)):
            probe(kind, access.owners(kind)[0], access.iterations)
        self.made[NAMES_KEY] = secrets.token_hex(16)

    def in_error(self, patient: Callable[[], bool]) -> context.ErrorSearchResult:
        """Search resources of iterations and of contexts in the services, by their names."""
        return ErrorSearch(self.surroundings, self.config, self.made[NAMES_KEY]).run(patient)

    def cleanup(self) -> None:
        """Delete the resources that iterations left, by names made with the key of setup.

        Does nothing if setup stored no key, because then no iteration has started. Raises
        ContextError if some resources remain or cannot be listed.
        """
        key = self.made.get(NAMES_KEY)
        if key is None:
            # no iteration has started
            return
        access = CloudAccess(self.surroundings, self.NAME)
        late = self.surroundings.crashed or self.surroundings.unanswered
        settle_s = SETTLE_LATE_S if late else SETTLE_S
        is_ours = partial(is_from_iteration, key=key)
        remove_resources(access, self.config, access.iterations, is_ours, settle_s=settle_s)

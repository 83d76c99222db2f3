"""The hidden context `cleanup`: removes what iterations have left, whatever has become of them.

That it is set up is on disk before the first iteration begins: from then on it is known which
services to look through, and the name of everything that an iteration makes says and proves which
run and workload has made it (`osbench.common.openstack.resource_names`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from osbench.common.openstack.cloud_users import NAMES_KEY
from osbench.common.openstack.resource_names import is_from_iteration
from osbench.common.plugin.context import Context
from osbench.coordinator.contexts.cloud_access import CloudAccess
from osbench.coordinator.contexts.resource_cleanup import SETTLE_LATE_S, SETTLE_S, remove_resources
from osbench.coordinator.contexts.resources import NAMES, kinds, probe


class Cleanup(Context):
    """Removes what iterations have left in the services named, and nothing else."""

    NAME: ClassVar[str] = "cleanup"
    ORDER: ClassVar[int] = 1_000_000
    HIDDEN: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "description": "services to look through, or kinds of objects in them",
        "items": {"enum": NAMES},
    }

    def setup(self) -> None:
        """See that the services are there, and that they let us look through them."""
        access = CloudAccess(self.surroundings, self.NAME)
        for kind in (kind for name in self.config for kind in kinds(name)):
            cloud = access.admin if kind.everywhere else access.projects[0]
            probe(kind, cloud, access.iterations)
        self.made[NAMES_KEY] = secrets.token_hex(16)

    def cleanup(self) -> None:
        """Remove what is left. Raises ContextError where something stays."""
        key = self.made.get(NAMES_KEY)
        if key is None:
            # no iteration has begun
            return
        access = CloudAccess(self.surroundings, self.NAME)
        late = self.surroundings.crashed or self.surroundings.unanswered
        settle_s = SETTLE_LATE_S if late else SETTLE_S
        is_ours = partial(is_from_iteration, key=key)
        remove_resources(access, self.config, access.iterations, is_ours, settle_s=settle_s)

"""The hidden context `restored_quotas`: gives projects back the quotas that iterations change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.edges.openstack.contexts.quotas import Quotas
from osbench.plugin.cloud import CloudAccess


class RestoredQuotas(Quotas):
    """Stores given quotas of every project of the workload; restores them after the load."""

    NAME: ClassVar[str] = "restored_quotas"
    # after the context quotas, whose quotas it restores
    ORDER: ClassVar[int] = 301
    HIDDEN: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "description": "names of quotas by service",
    }

    def setup(self) -> None:
        """Store the present values of the configured quotas of each project, for the cleanup.

        The cleanup sets them again; quotas of projects to be deleted are reset instead. Raises
        ContextError if a service has no quota of a name.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        temporary = {user.project_id for user in access.users if user.temporary}
        projects = {cloud.project_id: False for cloud in access.projects}
        self.store(access, projects | dict.fromkeys(temporary, True), self.config)
        self.keep()

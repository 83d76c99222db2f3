"""Base of contexts that make objects in each project."""

from __future__ import annotations

from typing import Any, ClassVar

from osbench.common.openstack.cloud import Cloud
from osbench.common.plugin.context import Context
from osbench.coordinator.contexts.cloud_access import CloudAccess
from osbench.coordinator.contexts.resource_cleanup import SETTLE_LATE_S, remove_resources


class PerProjectContext(Context):
    """Base of contexts that make objects, named after the run, in each project of a workload."""

    #: Service of the objects, and the key of `made` that lists them by project.
    SERVICE: ClassVar[str] = ""
    KEY: ClassVar[str] = ""
    #: Configuration key for the number of objects per project; default: 1.
    COUNT: ClassVar[str] = ""
    #: Kinds of the objects (`KIND_NAMES`); by default all of the service.
    KINDS: ClassVar[tuple[str, ...]] = ()

    def make(self, cloud: Cloud, name: str) -> str:
        """Make one in a project; returns its id."""
        raise NotImplementedError

    def make_all(self) -> None:
        """Make the configured number of objects in every project."""
        access = CloudAccess(self.surroundings, self.NAME)
        access.projects[0].address(self.SERVICE)
        self.made[self.KEY] = {}
        # stored before the first request
        self.keep()
        planned = self._planned(access)
        made = access.each(f"{self.NAME} made", planned, lambda one: self.make(*one))
        found: dict[str, list[Any]] = {}
        for (cloud, _), identity in zip(planned, made, strict=True):
            found.setdefault(cloud.project_id, []).append(identity)
        self.made[self.KEY] = found

    def cleanup(self) -> None:
        """Remove the objects by their names. Raises ContextError if some cannot be removed."""
        if self.KEY not in self.made:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        settle_s = SETTLE_LATE_S if self.surroundings.crashed else 0.0
        names = {name for _, name in self._planned(access)}
        beginning = self._beginning(access)
        what = self.KINDS or (self.SERVICE,)
        remove_resources(access, what, beginning, names.__contains__, settle_s=settle_s)

    def _planned(self, access: CloudAccess) -> list[tuple[Cloud, str]]:
        return [
            (cloud, f"{self._beginning(access)}{project}-{number}")
            for project, cloud in enumerate(access.projects)
            for number in range(self.config.get(self.COUNT, 1))
        ]

    def _beginning(self, access: CloudAccess) -> str:
        return f"{access.beginning}-{self.NAME}-"

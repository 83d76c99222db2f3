"""Base of contexts that make a configured number of objects in each project."""

from __future__ import annotations

from typing import Any, ClassVar

from osbench.common.errors import ContextError
from osbench.common.plugin.context import Context
from osbench.common.ports import clock as time
from osbench.edges.openstack.common import waits
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.resource_cleanup import SETTLE_LATE_S, remove_resources

#: Pause between looks at an object, seconds.
POLL_S = 0.5


class PerProjectContext(Context):
    """Base of contexts that make a configured number of objects, named after the run, per project.

    A subclass sets the class variables and `make`; its `setup` calls `make_all`.
    """

    #: Service of the objects, and the key of `made` that lists them by project.
    SERVICE: ClassVar[str] = ""
    KEY: ClassVar[str] = ""
    #: Configuration key for the number of objects per project; default: 1.
    COUNT: ClassVar[str] = ""
    #: Kinds of the objects (`KIND_NAMES`); by default all of the service.
    KINDS: ClassVar[tuple[str, ...]] = ()
    #: Number of objects per project if the configuration has none.
    USUAL_COUNT: ClassVar[int] = 1

    def make(self, cloud: Cloud, name: str) -> Any:
        """Make one object `name` as the user of `cloud`; return its id or data for iterations.

        Called again after transient errors, even if the object was made: implementations must
        handle that. Several threads call this at the same time.
        """
        raise NotImplementedError

    def places(self, access: CloudAccess) -> list[Cloud]:
        """Return the clients as which objects are made; by default one user of each project."""
        return access.projects

    def count(self, cloud: Cloud) -> int:
        """Return the number of objects for a client; by default the configured one for all."""
        return int(self.config.get(self.COUNT, self.USUAL_COUNT))

    def owner(self, cloud: Cloud) -> str:
        """Return the key of this client's objects in `made`; by default the project's id."""
        return cloud.project_id

    def await_ready(
        self, cloud: Cloud, path: str, key: str, ready: str, wait: str, failed: str = "error"
    ) -> dict[str, Any]:
        """Request an object every `POLL_S` seconds until its status is `ready`; return it then.

        `path`: of the object in the service's API. `key`: key of the object in the response. Raises
        ContextError if the status in lower case begins with `failed`, or after the timeout of
        `wait`, a key of `WAITS`: rally.conf's, else Rally's default.
        """
        return await_status(cloud, self.SERVICE, path, key, ready, wait, failed)

    def make_all(self) -> None:
        """Make the configured number of objects for each client of `places`, several at once.

        Stores the results in `made[KEY]`, lists by `owner`. Raises DeploymentError if the cloud
        lacks the service, and exceptions of `make`.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        access.projects[0].address(self.SERVICE)
        self.made[self.KEY] = {}
        # stored before the first request
        self.keep()
        planned = self._planned(access)
        made = access.each(f"{self.NAME} made", planned, lambda one: self.make(*one))
        found: dict[str, list[Any]] = {}
        for (cloud, _), identity in zip(planned, made, strict=True):
            found.setdefault(self.owner(cloud), []).append(identity)
        self.made[self.KEY] = found

    def cleanup(self) -> None:
        """Delete the objects of `make_all` by their names. Raises ContextError if some remain.

        Does nothing if `make_all` was not called.
        """
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
            for project, cloud in enumerate(self.places(access))
            for number in range(self.count(cloud))
        ]

    def _beginning(self, access: CloudAccess) -> str:
        return f"{access.beginning}-{self.NAME}-"


def await_status(
    cloud: Cloud, service: str, path: str, key: str, ready: str, wait: str, failed: str = "error"
) -> dict[str, Any]:
    """Request an object every `POLL_S` seconds until its status is `ready`; return it then.

    `path`: of the object in the API of `service`. The rest is as in
    `PerProjectContext.await_ready`, and so are the errors.
    """
    limit_s = waits.limit_s(wait, waits.configured_timeouts())
    begin = time.monotonic()
    while True:
        found: dict[str, Any] = cloud.document("GET", service, path)[key]
        status = str(found["status"])
        if status == ready:
            return found
        if status.lower().startswith(failed):
            raise ContextError(
                f"a {key} is in {status} instead of {ready}; see the log of its service"
            )
        if time.monotonic() - begin >= limit_s:
            raise ContextError(
                f"a {key} is still in {status} after {limit_s:g} s "
                f"({waits.option_of(wait)}); see the log of its service"
            )
        time.sleep(POLL_S)

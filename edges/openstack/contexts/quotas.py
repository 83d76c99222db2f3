"""The context `quotas`: limits of the projects of a workload."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import Cloud, CloudAccess, manila_api
from osbench.plugin.errors import ContextError


@dataclass(frozen=True, kw_only=True)
class _QuotaPlace:
    """The place of a project's quotas in the API of a service, and the request that sets them."""

    path: str = "os-quota-sets"
    #: Key of the quotas in a document; "" if they are the document.
    key: str = "quota_set"
    method: str = "PUT"
    headers: Mapping[str, str] = field(default_factory=dict)


_PLACES: Mapping[str, _QuotaPlace] = MappingProxyType(
    {
        "nova": _QuotaPlace(),
        "cinder": _QuotaPlace(),
        "neutron": _QuotaPlace(path="quotas", key="quota"),
        "manila": _QuotaPlace(),
        # quotas of another project than the administrator's
        "designate": _QuotaPlace(
            path="quotas", key="", method="PATCH", headers={"X-Auth-All-Projects": "true"}
        ),
    }
)
_QUOTAS = {
    "type": "object",
    "additionalProperties": {"type": "integer", "minimum": -1},
}


class Quotas(context.Context):
    """Sets quotas of every project of the workload; restores the previous values afterwards."""

    NAME: ClassVar[str] = "quotas"
    ORDER: ClassVar[int] = 300
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            service: _QUOTAS | {"description": f"quotas of {service} by name; -1 means no limit"}
            for service in _PLACES
        },
        "additionalProperties": False,
        "examples": [{"nova": {"instances": -1, "cores": -1}}],
    }

    def setup(self) -> None:
        """Set the configured quotas of each project, after storing their present values in `made`.

        Raises ContextError for unknown quotas, and if projects have no ids because the context
        `users` is missing.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        admin = access.admin
        projects = {user.project_id: user.temporary for user in access.users if user.project_id}
        if not projects:
            raise ContextError("needs the context users, which may be empty: `users: {}`")
        for service, wanted in self.config.items():
            self.store(access, projects, {service: wanted})
            self.keep()
            access.each(
                f"quotas of {service} set",
                projects,
                lambda project, service=service, wanted=wanted: set_quotas(  # type: ignore[misc]
                    admin, service, project, wanted
                ),
            )

    def store(
        self,
        access: CloudAccess,
        projects: Mapping[str, bool],
        wanted: Mapping[str, Collection[str]],
    ) -> None:
        """Look up quotas of each project; append them to `made["quotas_before"]`, for the cleanup.

        `projects`: project id -> whether the project will be deleted. `wanted`: service -> names of
        quotas. Entries are [service, project id, values by name]; None instead of the values for
        projects to be deleted. Raises ContextError if a service has no quota of a name.
        """
        for service, names in wanted.items():
            before = access.each(
                f"quotas of {service} looked up",
                projects,
                lambda project, service=service: project_quotas(access.admin, service, project),  # type: ignore[misc]
            )
            for (project, temporary), found in zip(projects.items(), before, strict=True):
                absent = [name for name in names if name not in found]
                if absent:
                    raise ContextError(
                        f"{service} has no quota {', '.join(absent)}; choose from "
                        f"{', '.join(sorted(found))}"
                    )
                # for a project that will be deleted, quotas are deleted, not restored
                kept = None if temporary else {name: found[name] for name in names}
                self.made.setdefault("quotas_before", []).append([service, project, kept])

    def cleanup(self) -> None:
        """Set the quotas to the values stored before the load.

        For projects to be deleted, all quotas of the service are reset to the cloud's defaults.
        Does nothing if setup stored none.
        """
        before = self.made.get("quotas_before")
        if not before:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        admin = access.admin

        def restore(one: list[Any]) -> None:
            service, project, quotas = one
            if quotas is not None:
                set_quotas(admin, service, project, quotas)
                return
            headers = _PLACES[service].headers
            path = _path_of(admin, service, project)
            admin.request("DELETE", service, path, headers=headers, expected=(200, 202, 204, 404))

        access.each("quotas restored", before, restore)


def _path_of(admin: Cloud, service: str, project: str) -> str:
    place = _PLACES[service]
    path = manila_api.quota_path(admin) if service == manila_api.SERVICE else place.path
    return f"{path}/{project}"


def project_quotas(cloud: Cloud, service: str, project: str) -> dict[str, Any]:
    """Return the quotas of a project (an id) in a service, by name; -1 means no limit.

    `cloud`: the administrator, or a user of the project.
    """
    place = _PLACES[service]
    path = _path_of(cloud, service, project)
    found: dict[str, Any] = cloud.document("GET", service, path, headers=place.headers)
    return found[place.key] if place.key else found


def set_quotas(admin: Cloud, service: str, project: str, quotas: Mapping[str, Any]) -> None:
    """Set quotas of a project (an id) in a service; other quotas stay as they are."""
    place = _PLACES[service]
    sent = {place.key: dict(quotas)} if place.key else dict(quotas)
    path = _path_of(admin, service, project)
    admin.request(place.method, service, path, json=sent, headers=place.headers)

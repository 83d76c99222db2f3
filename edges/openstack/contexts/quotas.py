"""The context `quotas`: limits of the projects of a workload."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import Cloud, CloudAccess
from osbench.plugin.errors import ContextError

#: Path of a project's quotas, and the key of the document, by service.
_PLACES = {
    "nova": ("os-quota-sets", "quota_set"),
    "cinder": ("os-quota-sets", "quota_set"),
    "neutron": ("quotas", "quota"),
}
#: Services whose quotas only Rally sets.
_RALLYS = ("manila", "designate")
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
        }
        | {service: _QUOTAS | {"description": "only in Rally"} for service in _RALLYS},
        "additionalProperties": False,
        "examples": [{"nova": {"instances": -1, "cores": -1}}],
    }

    def setup(self) -> None:
        """Set the configured quotas of each project, after storing their present values in `made`.

        Raises ContextError for services that only Rally supports, for unknown quotas, and if
        projects have no ids because the context `users` is missing.
        """
        unknown = [service for service in self.config if service in _RALLYS]
        if unknown:
            raise ContextError(
                f"osbench's quotas has none of {', '.join(unknown)}; install osbench[rally], and "
                "name the context quotas@rally"
            )
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
                lambda project, service=service, wanted=wanted: _put_quotas(  # type: ignore[misc]
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
                lambda project, service=service: _get(access.admin, service, project),  # type: ignore[misc]
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
                _put_quotas(admin, service, project, quotas)
                return
            path, _ = _PLACES[service]
            admin.request("DELETE", service, f"{path}/{project}", expected=(200, 202, 204, 404))

        access.each("quotas restored", before, restore)


def _get(admin: Cloud, service: str, project: str) -> dict[str, Any]:
    path, key = _PLACES[service]
    found: dict[str, Any] = admin.document("GET", service, f"{path}/{project}")[key]
    return found


def _put_quotas(admin: Cloud, service: str, project: str, quotas: Mapping[str, Any]) -> None:
    path, key = _PLACES[service]
    admin.request("PUT", service, f"{path}/{project}", json={key: dict(quotas)})

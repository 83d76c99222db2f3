"""Scenarios of Gnocchi: archive policies and their rules, metrics, resources and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.scenarios.openstack_scenario import (
    OpenStackScenario,
    openstack,
    without_none,
)

_LISTED: Mapping[str, Any] = {"services": ("gnocchi",)}
_ADMIN: Mapping[str, Any] = {**_LISTED, "admin": True, "users": False}
_MADE: Mapping[str, Any] = {**_LISTED, "cleanup": ("gnocchi",)}
_READ: Mapping[str, Any] = {**_MADE, "less": "gets a metric after its creation"}
_MADE_BY_ADMIN: Mapping[str, Any] = {**_ADMIN, "cleanup": ("gnocchi_admin",)}
#: The archive policy of a scenario that gets none: points of a second for an hour, as Rally's.
_SECONDS = ({"granularity": "0:00:01", "timespan": "1:00:00"},)


class GnocchiScenario(OpenStackScenario):
    """Base of scenarios that create, list and delete objects of Gnocchi.

    Actions are named after the object's kind, such as `gnocchi.create_metric`.
    """

    def create(self, path: str, fields: Mapping[str, Any], *, admin: bool = False) -> Any:
        """Create an object below `path` as the user or the administrator; return it."""
        with ActionTimer(self, f"gnocchi.create_{_kind(path)}"):
            client = self.admin if admin else self.cloud
            return client.document("POST", "gnocchi", path, json=without_none(fields))

    def delete(self, path: str, identity: str, *, admin: bool = False) -> None:
        """Delete the object `identity` below `path` as the user or the administrator."""
        with ActionTimer(self, f"gnocchi.delete_{_kind(path)}"):
            client = self.admin if admin else self.cloud
            client.request("DELETE", "gnocchi", f"{path}/{identity}")

    def list_all(self, path: str) -> None:
        """List the objects at `path` as the user."""
        with ActionTimer(self, f"gnocchi.list_{_kind(path)}"):
            self.cloud.document("GET", "gnocchi", path)


def _kind(path: str) -> str:
    return path.partition("/")[0]


class Gnocchi(GnocchiScenario):
    """Rally's `Gnocchi` scenarios: its state, and the methods of aggregation that it supports."""

    @openstack("Gnocchi.get_status", **_ADMIN)
    def get_status(self, detailed: bool = False) -> None:
        """Get the state of the measures' processing, of each metric if `detailed`."""
        with ActionTimer(self, "gnocchi.get_status"):
            self.admin.document("GET", "gnocchi", f"status?details={detailed}")

    @openstack("Gnocchi.list_capabilities", **_LISTED)
    def list_capabilities(self) -> None:
        """List the methods of aggregation."""
        self.list_all("capabilities")


class GnocchiArchivePolicy(GnocchiScenario):
    """Rally's `GnocchiArchivePolicy` scenarios; the administrator creates and deletes."""

    def _create(
        self,
        definition: list[dict[str, Any]] | None = None,
        aggregation_methods: list[str] | None = None,
    ) -> str:
        name = self.new_name()
        fields = {
            "name": name,
            "definition": list(_SECONDS) if definition is None else definition,
            "aggregation_methods": aggregation_methods,
        }
        self.create("archive_policy", fields, admin=True)
        return name

    @openstack("GnocchiArchivePolicy.list_archive_policy", **_LISTED)
    def list_archive_policy(self) -> None:
        """List all archive policies."""
        self.list_all("archive_policy")

    @openstack("GnocchiArchivePolicy.create_archive_policy", takes=_create, **_MADE_BY_ADMIN)
    def create_archive_policy(self, **kwargs: Any) -> None:
        """Create an archive policy."""
        self._create(**kwargs)

    @openstack("GnocchiArchivePolicy.create_delete_archive_policy", takes=_create, **_MADE_BY_ADMIN)
    def create_delete_archive_policy(self, **kwargs: Any) -> None:
        """Create an archive policy and delete it."""
        self.delete("archive_policy", self._create(**kwargs), admin=True)


class GnocchiArchivePolicyRule(GnocchiScenario):
    """Rally's `GnocchiArchivePolicyRule` scenarios; the administrator creates and deletes."""

    def _create(self, metric_pattern: str = "cpu_*", archive_policy_name: str = "low") -> str:
        name = self.new_name()
        fields = {
            "name": name,
            "metric_pattern": metric_pattern,
            "archive_policy_name": archive_policy_name,
        }
        self.create("archive_policy_rule", fields, admin=True)
        return name

    @openstack("GnocchiArchivePolicyRule.list_archive_policy_rule", **_LISTED)
    def list_archive_policy_rule(self) -> None:
        """List all rules of archive policies."""
        self.list_all("archive_policy_rule")

    @openstack(
        "GnocchiArchivePolicyRule.create_archive_policy_rule", takes=_create, **_MADE_BY_ADMIN
    )
    def create_archive_policy_rule(self, **kwargs: Any) -> None:
        """Create a rule that gives metrics of a name's pattern an archive policy."""
        self._create(**kwargs)

    @openstack(
        "GnocchiArchivePolicyRule.create_delete_archive_policy_rule",
        takes=_create,
        **_MADE_BY_ADMIN,
    )
    def create_delete_archive_policy_rule(self, **kwargs: Any) -> None:
        """Create a rule and delete it."""
        self.delete("archive_policy_rule", self._create(**kwargs), admin=True)


class GnocchiMetric(GnocchiScenario):
    """Rally's `GnocchiMetric` scenarios."""

    def _create(
        self,
        archive_policy_name: str = "low",
        resource_id: str | None = None,
        unit: str | None = None,
    ) -> str:
        name = self.new_name()
        fields = {"name": name, "archive_policy_name": archive_policy_name, "unit": unit}
        if resource_id is None:
            return str(self.create("metric", fields)["id"])
        # as Rally's client: the response does not have the id
        path = f"resource/generic/{resource_id}/metric"
        with ActionTimer(self, "gnocchi.create_metric"):
            self.cloud.document("POST", "gnocchi", path, json={name: without_none(fields)})
            return str(self.cloud.document("GET", "gnocchi", f"{path}/{name}")["id"])

    @openstack("GnocchiMetric.list_metric", **_LISTED)
    def list_metric(self, limit: int | None = None) -> None:
        """List the first `limit` metrics; without it all, page by page."""
        with ActionTimer(self, "gnocchi.list_metric"):
            listed: list[Any] = []
            while limit is None or len(listed) < limit:
                left = None if limit is None else limit - len(listed)
                params = {"limit": left, "marker": listed[-1]["id"] if listed else None}
                page = self.cloud.document("GET", "gnocchi", "metric", params=without_none(params))
                if not page:
                    break
                listed += page

    @openstack("GnocchiMetric.create_metric", takes=_create, **_READ)
    def create_metric(self, **kwargs: Any) -> None:
        """Create a metric."""
        self._create(**kwargs)

    @openstack("GnocchiMetric.create_delete_metric", takes=_create, **_READ)
    def create_delete_metric(self, **kwargs: Any) -> None:
        """Create a metric and delete it."""
        self.delete("metric", self._create(**kwargs))


class GnocchiResource(GnocchiScenario):
    """Rally's `GnocchiResource` scenarios."""

    def _create(self, resource_type: str = "generic") -> str:
        return str(self.create(f"resource/{resource_type}", {"id": self.new_name()})["id"])

    @openstack("GnocchiResource.create_resource", takes=_create, **_MADE)
    def create_resource(self, **kwargs: Any) -> None:
        """Create a resource of a type."""
        self._create(**kwargs)

    @openstack("GnocchiResource.create_delete_resource", takes=_create, **_MADE)
    def create_delete_resource(self, **kwargs: Any) -> None:
        """Create a resource of a type and delete it."""
        self.delete("resource/generic", self._create(**kwargs))


class GnocchiResourceType(GnocchiScenario):
    """Rally's `GnocchiResourceType` scenarios; the administrator creates and deletes."""

    def _create(self, attributes: dict[str, Any] | None = None) -> str:
        name = self.new_name()
        self.create("resource_type", {"name": name, "attributes": attributes}, admin=True)
        return name

    @openstack("GnocchiResourceType.list_resource_type", **_LISTED)
    def list_resource_type(self) -> None:
        """List all types of resources."""
        self.list_all("resource_type")

    @openstack("GnocchiResourceType.create_resource_type", takes=_create, **_MADE_BY_ADMIN)
    def create_resource_type(self, **kwargs: Any) -> None:
        """Create a type of resources."""
        self._create(**kwargs)

    @openstack("GnocchiResourceType.create_delete_resource_type", takes=_create, **_MADE_BY_ADMIN)
    def create_delete_resource_type(self, **kwargs: Any) -> None:
        """Create a type of resources and delete it."""
        self.delete("resource_type", self._create(**kwargs), admin=True)

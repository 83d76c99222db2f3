"""Scenarios that read and change quotas of Nova, Cinder and Neutron."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, openstack

#: The quotas that are updated, by service; as in Rally.
_UPDATED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "nova": (
            "metadata_items",
            "key_pairs",
            "injected_file_content_bytes",
            "injected_file_path_bytes",
            "ram",
            "instances",
            "injected_files",
            "cores",
        ),
        "cinder": ("volumes", "snapshots", "gigabytes"),
        "neutron": (
            "network",
            "subnet",
            "port",
            "router",
            "floatingip",
            "security_group",
            "security_group_rule",
        ),
    }
)


def _needs(service: str, *, restored: bool = True) -> dict[str, Any]:
    """Return the needs of a scenario; `restored`: projects get their former quotas."""
    contexts = {"restored_quotas": {service: list(_UPDATED[service])}} if restored else {}
    return {"services": (service,), "admin": True, "contexts": contexts}


class ProjectQuotas(OpenStackScenario):
    """Rally's `Quotas` scenarios: quotas of the project of the iteration's user.

    The administrator sets each to a random value from -1 (unlimited) to `max_quota`. After the load
    a project has the quotas that it had before.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on `retries`, and on `max_quota` unless it is an integer from -1."""
        found = super().check_arguments(method, args)
        most = args.get("max_quota", -1)
        if not isinstance(most, int) or most < -1:
            found.append(f"max_quota must be at least -1, got {most!r}")
        return found

    @openstack("Quotas.nova_update", **_needs("nova"))
    def nova_update(self, max_quota: int = 1024) -> None:
        """Set the project's quotas of Nova to random values up to `max_quota`."""
        self._update("nova", max_quota)

    @openstack("Quotas.nova_update_and_delete", **_needs("nova"))
    def nova_update_and_delete(self, max_quota: int = 1024) -> None:
        """Set quotas of Nova to random values, then reset them to the defaults."""
        self._update("nova", max_quota)
        self._delete("nova")

    @openstack("Quotas.nova_get", **_needs("nova", restored=False))
    def nova_get(self) -> None:
        """Get the project's quotas of Nova."""
        self._get("nova")

    @openstack("Quotas.cinder_update", **_needs("cinder"))
    def cinder_update(self, max_quota: int = 1024) -> None:
        """Set the project's quotas of Cinder to random values up to `max_quota`."""
        self._update("cinder", max_quota)

    @openstack("Quotas.cinder_update_and_delete", **_needs("cinder"))
    def cinder_update_and_delete(self, max_quota: int = 1024) -> None:
        """Set quotas of Cinder to random values, then reset them to the defaults."""
        self._update("cinder", max_quota)
        self._delete("cinder")

    @openstack("Quotas.cinder_get", **_needs("cinder", restored=False))
    def cinder_get(self) -> None:
        """Get the project's quotas of Cinder."""
        self._get("cinder")

    @openstack("Quotas.neutron_update", **_needs("neutron"))
    def neutron_update(self, max_quota: int = 1024) -> None:
        """Set the project's quotas of Neutron to random values up to `max_quota`."""
        self._update("neutron", max_quota)

    def _update(self, service: str, most: int) -> None:
        # load, not secrets
        quotas: dict[str, Any] = {name: random.randint(-1, most) for name in _UPDATED[service]}  # noqa: S311
        if service == "cinder":
            quotas["tenant_id"] = self.cloud.project_id
        key = "quota" if service == "neutron" else "quota_set"
        with ActionTimer(self, "quotas.update_quotas"):
            self.admin.document("PUT", service, self._path(service), json={key: quotas})

    def _get(self, service: str) -> None:
        with ActionTimer(self, "quotas.get_quotas"):
            self.admin.document("GET", service, self._path(service))

    def _delete(self, service: str) -> None:
        with ActionTimer(self, "quotas.delete_quotas"):
            self.admin.request("DELETE", service, self._path(service))

    def _path(self, service: str) -> str:
        folder = "quotas" if service == "neutron" else "os-quota-sets"
        return f"{folder}/{self.cloud.project_id}"

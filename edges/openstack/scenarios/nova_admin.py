"""Scenarios of administrators of Nova: flavors, aggregates, hypervisors, services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import openstack, waits, without_none
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario
from osbench.edges.openstack.scenarios.servers import SERVER, Servers

_FLAVOR = ResourceKind(service="nova", path="flavors", key="flavor")
_AGGREGATE = ResourceKind(service="nova", path="os-aggregates", key="aggregate")
_HYPERVISOR = ResourceKind(service="nova", path="os-hypervisors", key="hypervisor")

_ADMIN: Mapping[str, Any] = {"services": ("nova",), "admin": True, "users": False}
_AGGREGATES: Mapping[str, Any] = {**_ADMIN, "cleanup": ("nova_admin.aggregates",)}
_HOSTNAME = "OS-EXT-SRV-ATTR:hypervisor_hostname"


class AdminScenario(ResourceScenario):
    """Base of scenarios with flavors, aggregates and hypervisors, as the administrator."""

    @action_timer("nova.create_flavor")
    def create_one_flavor(
        self,
        ram: int,
        vcpus: int,
        disk: int,
        flavorid: str = "auto",
        ephemeral: int = 0,
        swap: int = 0,
        rxtx_factor: float = 1.0,
        is_public: bool = True,
    ) -> str:
        """Create a flavor as the administrator; return its id.

        `ram` and `swap` are in MB, `disk` and `ephemeral` in GB; `flavorid: auto` leaves the id to
        Nova.
        """
        fields = {
            "ram": ram,
            "vcpus": vcpus,
            "disk": disk,
            "id": None if flavorid == "auto" else flavorid,
            "OS-FLV-EXT-DATA:ephemeral": ephemeral,
            "swap": swap,
            "rxtx_factor": rxtx_factor,
            "os-flavor-access:is_public": is_public,
        }
        return str(self.post(_FLAVOR, fields, cloud=self.admin)["id"])

    def set_specs(self, flavor: str, specs: Mapping[str, Any]) -> None:
        """Set extra specs of a flavor, by its id, as the administrator; other specs stay."""
        path = f"flavors/{flavor}/os-extra_specs"
        self.admin.document("POST", "nova", path, json={"extra_specs": dict(specs)})

    @action_timer("nova.list_hypervisors")
    def list_all_hypervisors(self, detailed: bool = True) -> list[dict[str, Any]]:
        """Return all hypervisors, as the administrator; with all fields if `detailed`."""
        path = "os-hypervisors/detail" if detailed else "os-hypervisors"
        return self.list_pages(_HYPERVISOR, path, cloud=self.admin)


_FLAVORS: Mapping[str, Any] = {
    **_ADMIN,
    "takes": AdminScenario.create_one_flavor,
    "cleanup": ("nova_admin.flavors",),
}


class NovaFlavors(AdminScenario):
    """Rally's `NovaFlavors` scenarios: create, list and delete flavors, give access to them.

    `ram` is in MB, `disk` in GB.
    """

    @openstack("NovaFlavors.list_flavors", services=("nova",))
    def list_flavors(
        self,
        detailed: bool = True,
        is_public: bool | None = True,
        marker: str | None = None,
        min_disk: int | None = None,
        min_ram: int | None = None,
        limit: int | None = None,
        sort_key: str | None = None,
        sort_dir: str | None = None,
    ) -> None:
        """List flavors; `is_public: null` lists public and private ones, for administrators."""
        asked = {
            "marker": marker,
            "minDisk": min_disk,
            "minRam": min_ram,
            "limit": limit,
            "sort_key": sort_key,
            "sort_dir": sort_dir,
        }
        params = without_none(asked)
        if not is_public:
            params["is_public"] = str(is_public)
        with ActionTimer(self, "nova.list_flavors"):
            self.list_pages(_FLAVOR, "flavors/detail" if detailed else "flavors", params)

    @openstack("NovaFlavors.create_flavor", **_FLAVORS)
    def create_flavor(self, **flavor_kwargs: Any) -> None:
        """Create a flavor."""
        self.create_one_flavor(**flavor_kwargs)

    @openstack("NovaFlavors.create_and_get_flavor", **_FLAVORS)
    def create_and_get_flavor(self, **flavor_kwargs: Any) -> None:
        """Create a flavor and get it."""
        flavor = self.create_one_flavor(**flavor_kwargs)
        with ActionTimer(self, "nova.get_flavor"):
            self.show(_FLAVOR, flavor, cloud=self.admin)

    @openstack("NovaFlavors.create_and_delete_flavor", **_FLAVORS)
    def create_and_delete_flavor(self, **flavor_kwargs: Any) -> None:
        """Create a flavor and delete it."""
        flavor = self.create_one_flavor(**flavor_kwargs)
        with ActionTimer(self, "nova.delete_flavor"):
            self.delete(_FLAVOR, flavor, cloud=self.admin)

    @openstack("NovaFlavors.create_and_list_flavor_access", **_FLAVORS)
    def create_and_list_flavor_access(self, **flavor_kwargs: Any) -> None:
        """Create a private flavor, whatever `is_public` is, and list the projects with access."""
        flavor = self.create_one_flavor(**{**flavor_kwargs, "is_public": False})
        with ActionTimer(self, "nova.list_flavor_access"):
            self.admin.document("GET", "nova", f"flavors/{flavor}/os-flavor-access")

    @openstack("NovaFlavors.create_flavor_and_add_tenant_access", **{**_FLAVORS, "users": True})
    def create_flavor_and_add_tenant_access(self, **flavor_kwargs: Any) -> None:
        """Create a flavor, which must be private, and give the user's project access."""
        flavor = self.create_one_flavor(**flavor_kwargs)
        with ActionTimer(self, "nova.add_tenant_access"):
            wanted = {"addTenantAccess": {"tenant": self.cloud.project_id}}
            self.send_action(_FLAVOR, flavor, wanted, cloud=self.admin)

    @openstack("NovaFlavors.create_flavor_and_set_keys", **_FLAVORS)
    def create_flavor_and_set_keys(self, extra_specs: dict[str, Any], **flavor_kwargs: Any) -> None:
        """Create a flavor and set its extra specs."""
        flavor = self.create_one_flavor(**flavor_kwargs)
        with ActionTimer(self, "nova.set_flavor_keys"):
            self.set_specs(flavor, extra_specs)


class NovaAggregates(AdminScenario, Servers):
    """Rally's `NovaAggregates` scenarios: host aggregates, as the administrator."""

    @openstack("NovaAggregates.list_aggregates", **_ADMIN)
    def list_aggregates(self) -> None:
        """List all aggregates."""
        self._list()

    @openstack("NovaAggregates.create_and_list_aggregates", **_AGGREGATES)
    def create_and_list_aggregates(self, availability_zone: str | None) -> None:
        """Create an aggregate, list all, and check that it is among them."""
        aggregate = self._create(availability_zone)
        found = {str(one["id"]) for one in self._list()}
        self.checked(aggregate in found, "the aggregate that was created is not in the list")

    @openstack("NovaAggregates.create_and_delete_aggregate", **_AGGREGATES)
    def create_and_delete_aggregate(self, availability_zone: str | None) -> None:
        """Create an aggregate and delete it."""
        aggregate = self._create(availability_zone)
        with ActionTimer(self, "nova.delete_aggregate"):
            self.delete(_AGGREGATE, aggregate, cloud=self.admin)

    @openstack("NovaAggregates.create_and_update_aggregate", **_AGGREGATES)
    def create_and_update_aggregate(self, availability_zone: str | None) -> None:
        """Create an aggregate, and change its name and its availability zone."""
        aggregate = self._create(availability_zone)
        changes = {"name": self.new_name(), "availability_zone": self.new_name()}
        with ActionTimer(self, "nova.update_aggregate"):
            path = f"{_AGGREGATE.path}/{aggregate}"
            self.admin.document("PUT", "nova", path, json={"aggregate": changes})

    @openstack("NovaAggregates.create_and_get_aggregate_details", **_AGGREGATES)
    def create_and_get_aggregate_details(self, availability_zone: str | None) -> None:
        """Create an aggregate and get it."""
        aggregate = self._create(availability_zone)
        with ActionTimer(self, "nova.get_aggregate_details"):
            self.show(_AGGREGATE, aggregate, cloud=self.admin)

    @openstack("NovaAggregates.create_aggregate_add_and_remove_host", **_AGGREGATES)
    def create_aggregate_add_and_remove_host(self, availability_zone: str | None) -> None:
        """Create an aggregate, add the cloud's first host to it, and remove the host."""
        aggregate = self._create(availability_zone)
        hypervisors = self.list_all_hypervisors()
        self.checked(bool(hypervisors), "this cloud has no hypervisor")
        host = hypervisors[0]["service"]["host"]
        self._change("add_host", aggregate, {"host": host})
        self._change("remove_host", aggregate, {"host": host})

    @openstack(
        "NovaAggregates.create_aggregate_add_host_and_boot_server",
        services=("nova",),
        admin=True,
        # a host with servers cannot be removed from the availability zone of an aggregate
        cleanup=("nova.servers", "nova_admin"),
    )
    @waits("nova_server_boot")
    def create_aggregate_add_host_and_boot_server(
        self,
        image: dict[str, Any],
        metadata: dict[str, Any],
        availability_zone: str | None = None,
        ram: int = 512,
        vcpus: int = 1,
        disk: int = 1,
        boot_server_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create an aggregate with a usable host and `metadata`; boot a server and check that host.

        The server has a new flavor whose extra specs are `metadata`, so that Nova has to choose the
        aggregate.
        """
        aggregate = self._create(availability_zone)
        usable = [
            one["service"]["host"]
            for one in self.list_all_hypervisors()
            if (one["state"], one["status"]) == ("up", "enabled")
        ]
        self.checked(bool(usable), "this cloud has no host that is up and enabled")
        self._change("set_metadata", aggregate, {"metadata": metadata})
        self._change("add_host", aggregate, {"host": usable[0]})
        flavor = self.create_one_flavor(ram, vcpus, disk)
        self.set_specs(flavor, metadata)
        server = self.booted(self.context["image"], boot_server_kwargs or {}, flavor)
        found = self.show(SERVER, server, cloud=self.admin)[_HOSTNAME]
        self.checked(
            found == usable[0],
            f"the server is on {found}, not on {usable[0]}, the aggregate's host",
        )

    @action_timer("nova.create_aggregate")
    def _create(self, availability_zone: str | None) -> str:
        fields = {"availability_zone": availability_zone}
        return str(self.post(_AGGREGATE, fields, cloud=self.admin)["id"])

    @action_timer("nova.list_aggregates")
    def _list(self) -> list[dict[str, Any]]:
        found = self.admin.document("GET", "nova", _AGGREGATE.path)["aggregates"]
        return list(found)

    def _change(self, action: str, aggregate: str, body: Mapping[str, Any]) -> None:
        with ActionTimer(self, f"nova.aggregate_{action}"):
            self.send_action(_AGGREGATE, aggregate, {action: body}, cloud=self.admin)


class NovaHypervisors(AdminScenario):
    """Rally's `NovaHypervisors` scenarios: list and get hypervisors, as the administrator."""

    @openstack("NovaHypervisors.list_hypervisors", **_ADMIN)
    def list_hypervisors(self, detailed: bool = True) -> None:
        """List all hypervisors of the cloud, with all fields if `detailed`."""
        self.list_all_hypervisors(detailed)

    @openstack("NovaHypervisors.list_and_get_hypervisors", **_ADMIN)
    def list_and_get_hypervisors(self, detailed: bool = True) -> None:
        """List all hypervisors and get each, as separate actions."""
        for one in self.list_all_hypervisors(detailed):
            with ActionTimer(self, "nova.get_hypervisor"):
                self.show(_HYPERVISOR, str(one["id"]), cloud=self.admin)

    @openstack("NovaHypervisors.statistics_hypervisors", **_ADMIN)
    def statistics_hypervisors(self) -> None:
        """Get the statistics of the cloud: sums over all hypervisors."""
        with ActionTimer(self, "nova.statistics_hypervisors"):
            self.admin.document("GET", "nova", "os-hypervisors/statistics")

    @openstack("NovaHypervisors.list_and_get_uptime_hypervisors", **_ADMIN)
    def list_and_get_uptime_hypervisors(self, detailed: bool = True) -> None:
        """List all hypervisors, and get the uptime of each that is up."""
        for one in self.list_all_hypervisors(detailed):
            if one["state"] == "up":
                with ActionTimer(self, "nova.uptime_hypervisor"):
                    self.admin.document("GET", "nova", f"os-hypervisors/{one['id']}/uptime")

    @openstack("NovaHypervisors.list_and_search_hypervisors", **_ADMIN)
    def list_and_search_hypervisors(self, detailed: bool = True) -> None:
        """List all hypervisors, and search for the host name of each."""
        for one in self.list_all_hypervisors(detailed):
            with ActionTimer(self, "nova.search_hypervisors"):
                path = f"os-hypervisors/{one['hypervisor_hostname']}/search"
                self.admin.document("GET", "nova", path)


class NovaServices(ResourceScenario):
    """Rally's `NovaServices` scenario: list Nova's services, as the administrator."""

    @openstack("NovaServices.list_services", **_ADMIN)
    def list_services(self, host: str | None = None, binary: str | None = None) -> None:
        """List Nova's services: all, or only services of `host` or of `binary`."""
        params = without_none({"host": host, "binary": binary})
        with ActionTimer(self, "nova.list_services"):
            self.admin.document("GET", "nova", "os-services", params=params)


class NovaAvailabilityZones(ResourceScenario):
    """Rally's `NovaAvailabilityZones` scenario: list zones, as the administrator."""

    @openstack("NovaAvailabilityZones.list_availability_zones", **_ADMIN)
    def list_availability_zones(self, detailed: bool = True) -> None:
        """List all availability zones, with their hosts and services if `detailed`."""
        path = "os-availability-zone/detail" if detailed else "os-availability-zone"
        with ActionTimer(self, "nova.list_availability_zones"):
            self.admin.document("GET", "nova", path)

"""Scenarios of Neutron's trunks: ports with subports, and servers on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.scenarios.network_maker import Attributes, NetworkMaker
from osbench.edges.openstack.scenarios.neutron_scenario import NEEDS
from osbench.edges.openstack.scenarios.openstack_scenario import openstack, waits
from osbench.edges.openstack.scenarios.servers import BOOT, Servers

_WITH_SERVERS: Mapping[str, Any] = {
    "services": ("nova", "neutron"),
    "cleanup": ("nova.servers", "neutron"),
}
#: Address range of the first subnet; as in Rally.
_FIRST_RANGE = "1.0.0.0/24"


class NeutronTrunks(Servers, NetworkMaker):
    """Rally's `NeutronTrunks` scenarios: trunks with subports, and servers on them."""

    @openstack("NeutronTrunks.create_and_list_trunks", **NEEDS)
    def create_and_list_trunks(
        self, network_create_args: Attributes = None, subport_count: int = 10
    ) -> None:
        """Create a trunk of `subport_count` subports in a new network; list trunks and subports."""
        network = self.create("network", neutron.network_fields(network_create_args))
        parent, *ports = [
            self.create("port", {"network_id": network}) for _ in range(subport_count + 1)
        ]
        trunk = self.create("trunk", {"port_id": parent, "sub_ports": _subports(ports)})
        with ActionTimer(self, "neutron.list_trunks"):
            found = {one["id"] for one in neutron.listed(self.cloud, "trunk")}
        self.checked(trunk in found, "the trunk that was created is not in the list")
        with ActionTimer(self, "neutron.list_subports_by_trunk"):
            self.cloud.document("GET", "neutron", f"trunks/{trunk}/get_subports")

    @openstack("NeutronTrunks.boot_server_with_subports", **_WITH_SERVERS)
    @waits(BOOT)
    def boot_server_with_subports(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        network_create_args: Attributes = None,
        subport_count: int = 10,
    ) -> None:
        """Create a trunk with subports, each port in a new network, and boot a server on it."""
        parent, ports = self._ports(network_create_args, subport_count)
        self.create("trunk", {"port_id": parent, "sub_ports": _subports(ports)})
        self._boot_on(parent)

    @openstack("NeutronTrunks.boot_server_and_add_subports", **_WITH_SERVERS)
    @waits(BOOT)
    def boot_server_and_add_subports(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        network_create_args: Attributes = None,
        subport_count: int = 10,
    ) -> None:
        """Create a trunk, boot a server on it, and add subports, one by one."""
        parent, ports = self._ports(network_create_args, subport_count)
        self._boot_and_add(parent, [[one] for one in _subports(ports)])

    @openstack("NeutronTrunks.boot_server_and_batch_add_subports", **_WITH_SERVERS)
    @waits(BOOT)
    def boot_server_and_batch_add_subports(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        network_create_args: Attributes = None,
        subports_per_batch: int = 10,
        batches: int = 5,
    ) -> None:
        """Create a trunk, boot a server on it, add `batches` of `subports_per_batch` subports."""
        parent, ports = self._ports(network_create_args, subports_per_batch * batches)
        every = _subports(ports)
        size = subports_per_batch
        self._boot_and_add(
            parent, [every[begin : begin + size] for begin in range(0, len(every), size)]
        )

    def _boot_and_add(self, parent: str, batches: Iterable[list[dict[str, Any]]]) -> None:
        trunk = self.create("trunk", {"port_id": parent})
        self._boot_on(parent)
        for batch in batches:
            # the name is Rally's
            with ActionTimer(self, "neutron._add_subports_to_trunk"):
                path = f"trunks/{trunk}/add_subports"
                self.cloud.document("PUT", "neutron", path, json={"sub_ports": batch})

    def _boot_on(self, port: str) -> None:
        self.booted(self.context["image"], {"nics": [{"port-id": port}]})

    def _ports(self, network_args: Attributes, subports: int) -> tuple[str, list[str]]:
        """Create the ports of a trunk, each in a new network with a subnet; return their ids."""
        created = []
        for position in range(subports + 1):
            network = self.create("network", neutron.network_fields(network_args))
            subnet = self.create_subnet(network, position, subports + 1, first=_FIRST_RANGE)
            fields = {"network_id": network, "fixed_ips": [{"subnet_id": subnet}]}
            created.append(self.create("port", fields))
        return created[0], created[1:]


def _subports(ports: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {"port_id": port, "segmentation_type": "vlan", "segmentation_id": number}
        for number, port in enumerate(ports, 1)
    ]

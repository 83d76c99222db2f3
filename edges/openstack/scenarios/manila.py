"""Scenarios of Manila: shares, their access and metadata, share networks, security services."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common import manila_api
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    count_problems,
    openstack,
    waits,
    without_none,
)
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

_SHARE = ResourceKind(service="manila", path="shares", key="share")
_NETWORK = ResourceKind(service="manila", path="share-networks", key="share_network", status="")
_SECURITY = ResourceKind(
    service="manila", path="security-services", key="security_service", status=""
)
_CREATE, _DELETE = "manila_share_create", "manila_share_delete"
_ALLOW, _DENY = "manila_access_create", "manila_access_delete"
_LISTED: Mapping[str, Any] = {"services": ("manila",)}
_SCENARIO: Mapping[str, Any] = {**_LISTED, "cleanup": ("manila",)}
#: Scenarios for which Rally's client of Manila sends further requests.
_AGAIN: Mapping[str, Any] = {**_SCENARIO, "less": "gets each new object once more"}
_PROTOCOLS = ("NFS", "CIFS", "GLUSTERFS", "HDFS", "CEPHFS")
_LETTERS = string.ascii_letters + string.digits


class ManilaShares(ResourceScenario):
    """Rally's `ManilaShares` scenarios: shares, access to them, share networks, security services.

    Shares are in the share networks of the context `manila_share_networks`, in turn, unless
    `share_network` names one. `size` and `new_size` are in GiB.
    """

    QUOTAS: ClassVar[Mapping[str, tuple[str, str]]] = {"share_proto": ("manila", "shares")}

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on arguments that cannot work, and messages of the base class.

        Checks protocol, counts and lengths of metadata.
        """
        found = super().check_arguments(method, args)
        protocol = args.get("share_proto")
        if protocol is not None and str(protocol).upper() not in _PROTOCOLS:
            found.append(f"share_proto must be one of {', '.join(_PROTOCOLS)}, got {protocol!r}")
        if method == "set_and_delete_metadata":
            found += _metadata_problems(args)
        return found

    # the arguments of scenarios that create a share

    @action_timer("manila.create_share")
    def _create(  # noqa: PLR0913 - they are Rally's
        self,
        share_proto: str,
        size: int = 1,
        snapshot_id: str | None = None,
        description: str | None = None,
        metadata: dict[str, Any] | None = None,
        share_network: str | None = None,
        share_type: str | None = None,
        is_public: bool = False,
        availability_zone: str | None = None,
        share_group_id: str | None = None,
    ) -> str:
        """Create a share and wait until it is available; return its id. Raises NotReady."""
        networks = self.context.get(manila_api.SHARE_NETWORKS, {}).get(self.cloud.project_id)
        if networks and not share_network:
            share_network = networks[self.context["iteration"] % len(networks)]
        fields = {
            "share_proto": share_proto,
            "size": size,
            "snapshot_id": snapshot_id,
            "description": description,
            "metadata": metadata or {},
            "share_network_id": share_network,
            "share_type": share_type,
            "is_public": is_public,
            "availability_zone": availability_zone,
            "share_group_id": share_group_id,
        }
        with ActionTimer(self, ACCEPTED):
            share = str(self.post(_SHARE, without_none(fields))["id"])
        self.await_status(_SHARE, share, "available", wait=_CREATE)
        return share

    # shares

    @openstack("ManilaShares.create_and_delete_share", takes=_create, **_SCENARIO)
    @waits(_CREATE, _DELETE)
    def create_and_delete_share(
        self, min_sleep: float = 0, max_sleep: float = 0, **share_kwargs: Any
    ) -> None:
        """Create a share, pause from `min_sleep` to `max_sleep` seconds, and delete it."""
        share = self._create(**share_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.delete_and_wait("manila.delete_share", _SHARE, share, wait=_DELETE)

    @openstack("ManilaShares.create_and_list_share", takes=_create, **_SCENARIO)
    @waits(_CREATE)
    def create_and_list_share(
        self,
        min_sleep: float = 0,
        max_sleep: float = 0,
        detailed: bool = True,
        **share_kwargs: Any,
    ) -> None:
        """Create a share, pause, list all shares, and check that it is among them."""
        share = self._create(**share_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        found = {one["id"] for one in self._list(detailed, None)}
        self.checked(share in found, "the share that was created is not in the list")

    @openstack("ManilaShares.list_shares", **_LISTED)
    def list_shares(self, detailed: bool = True, search_opts: dict[str, Any] | None = None) -> None:
        """List the shares that match `search_opts`, with all fields if `detailed`."""
        self._list(detailed, search_opts)

    @openstack("ManilaShares.create_and_extend_share", takes=_create, **_SCENARIO)
    @waits(_CREATE)
    def create_and_extend_share(self, new_size: int = 2, **share_kwargs: Any) -> None:
        """Create a share and extend it to `new_size`."""
        self._resize("extend", self._create(**share_kwargs), new_size)

    @openstack("ManilaShares.create_and_shrink_share", takes=_create, **_SCENARIO)
    @waits(_CREATE)
    def create_and_shrink_share(
        self, size: int = 2, new_size: int = 1, **share_kwargs: Any
    ) -> None:
        """Create a share of `size` and shrink it to `new_size`."""
        self._resize("shrink", self._create(size=size, **share_kwargs), new_size)

    @openstack("ManilaShares.create_share_then_allow_and_deny_access", takes=_create, **_SCENARIO)
    @waits(_CREATE, _ALLOW, _DENY)
    def create_share_then_allow_and_deny_access(
        self, access_type: str, access: str, access_level: str = "rw", **share_kwargs: Any
    ) -> None:
        """Create a share, allow access to it, wait until it is active, deny it, wait for its end.

        `access_type` is such as `ip`, with an address in `access`; `access_level` is `rw` or `ro`.
        """
        share = self._create(**share_kwargs)
        wanted = {"access_type": access_type, "access_to": access, "access_level": access_level}
        with ActionTimer(self, "manila.access_allow_share"):
            with ActionTimer(self, ACCEPTED):
                rule = self._act_on(share, "allow_access", wanted)["access"]["id"]
            self._await_access(share, rule, "active", _ALLOW)
        with ActionTimer(self, "manila.access_deny_share"):
            with ActionTimer(self, ACCEPTED):
                self._act_on(share, "deny_access", {"access_id": rule})
            self._await_access(share, rule, "", _DENY)

    @openstack(
        "ManilaShares.set_and_delete_metadata", **{**_SCENARIO, "requires": ("manila_shares",)}
    )
    def set_and_delete_metadata(
        self,
        sets: int = 10,
        set_size: int = 3,
        delete_size: int = 3,
        key_min_length: int = 1,
        key_max_length: int = 256,
        value_min_length: int = 1,
        value_max_length: int = 1024,
    ) -> None:
        """Set random metadata of a share `sets` times, `set_size` keys each; delete each key.

        The share is of the context `manila_shares`. Lengths are in characters, below the maximum
        unless it is the minimum. `delete_size` has no effect: a request deletes one key.
        """
        shares = self.context["manila_shares"][self.cloud.project_id]
        path = f"{_SHARE.path}/{shares[self.context['iteration'] % len(shares)]}/metadata"
        # a short random key may come twice
        keys: set[str] = set()
        with ActionTimer(self, "manila.set_metadata"):
            for _ in range(sets):
                some = {
                    _random_text(key_min_length, key_max_length): _random_text(
                        value_min_length, value_max_length
                    )
                    for _ in range(set_size)
                }
                self.cloud.document("POST", "manila", path, json={"metadata": some})
                keys |= some.keys()
        with ActionTimer(self, "manila.delete_metadata"):
            for key in keys:
                self.cloud.request("DELETE", "manila", f"{path}/{key}")

    # share networks, share servers and security services

    @action_timer("manila.create_share_network")
    def _create_network(
        self,
        neutron_net_id: str | None = None,
        neutron_subnet_id: str | None = None,
        nova_net_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Create a share network; return its id. `name` is ignored, as in Rally."""
        fields = {
            "neutron_net_id": neutron_net_id,
            "neutron_subnet_id": neutron_subnet_id,
            "nova_net_id": nova_net_id,
            "description": description,
        }
        return str(self.post(_NETWORK, without_none(fields))["id"])

    @openstack("ManilaShares.create_share_network_and_delete", takes=_create_network, **_AGAIN)
    @waits(_DELETE)
    def create_share_network_and_delete(self, **kwargs: Any) -> None:
        """Create a share network, delete it, and wait until it is gone."""
        made = self._create_network(**kwargs)
        self.delete_and_wait("manila.delete_share_network", _NETWORK, made, wait=_DELETE)

    @openstack("ManilaShares.create_share_network_and_list", takes=_create_network, **_SCENARIO)
    def create_share_network_and_list(
        self, detailed: bool = True, search_opts: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Create a share network and list the share networks that match `search_opts`."""
        self._create_network(**kwargs)
        path = f"{_NETWORK.path}/detail" if detailed else _NETWORK.path
        with ActionTimer(self, "manila.list_share_networks"):
            self.cloud.document("GET", "manila", path, params=without_none(search_opts or {}))

    @openstack("ManilaShares.list_share_servers", services=("manila",), admin=True, users=False)
    def list_share_servers(self, search_opts: dict[str, Any] | None = None) -> None:
        """List the share servers that match `search_opts`, as the administrator."""
        with ActionTimer(self, "manila.list_share_servers"):
            params = without_none(search_opts or {})
            self.admin.document("GET", "manila", "share-servers", params=params)

    @action_timer("manila.create_security_service")
    def _create_security_service(
        self,
        security_service_type: str,
        dns_ip: str | None = None,
        server: str | None = None,
        domain: str | None = None,
        user: str | None = None,
        password: str | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> str:
        """Create a security service; return its id. `name` is ignored, as in Rally."""
        fields = {
            "type": security_service_type,
            "dns_ip": dns_ip,
            "server": server,
            "domain": domain,
            "user": user,
            "password": password,
            "description": description,
        }
        return str(self.post(_SECURITY, without_none(fields))["id"])

    @openstack(
        "ManilaShares.create_security_service_and_delete",
        takes=_create_security_service,
        **_AGAIN,
    )
    @waits(_DELETE)
    def create_security_service_and_delete(self, **kwargs: Any) -> None:
        """Create a security service, delete it, and wait until it is gone."""
        made = self._create_security_service(**kwargs)
        self.delete_and_wait("manila.delete_security_service", _SECURITY, made, wait=_DELETE)

    @openstack("ManilaShares.attach_security_service_to_share_network", **_AGAIN)
    def attach_security_service_to_share_network(self, security_service_type: str = "ldap") -> None:
        """Create a share network and a security service, and add the service to the network."""
        network = self._create_network()
        service = self._create_security_service(security_service_type)
        with ActionTimer(self, "manila.add_security_service_to_share_network"):
            body = {"add_security_service": {"security_service_id": service}}
            self.send_action(_NETWORK, network, body)

    # requests

    @action_timer("manila.list_shares")
    def _list(self, detailed: bool, search_opts: Mapping[str, Any] | None) -> Any:
        # Rally's client asks for public shares, too
        params = {"is_public": "True", **without_none(search_opts or {})}
        path = f"{_SHARE.path}/detail" if detailed else _SHARE.path
        return self.cloud.document("GET", "manila", path, params=params)["shares"]

    def _resize(self, change: str, share: str, new_size: int) -> None:
        with ActionTimer(self, f"manila.{change}_share"):
            with ActionTimer(self, ACCEPTED):
                self._act_on(share, change, {"new_size": new_size})
            self.await_status(_SHARE, share, "available", wait=_CREATE)

    def _act_on(
        self, share: str, action: str, fields: Mapping[str, Any] | None, **more: Any
    ) -> Any:
        name = manila_api.action_name(self.cloud, action)
        path = f"{_SHARE.path}/{share}/action"
        return self.cloud.document("POST", "manila", path, json={name: fields}, **more)

    def _await_access(self, share: str, rule: str, state: str, wait: str) -> None:
        """Wait until an access rule is in a state; "" for its end. Raises NotReady."""

        def look() -> bool | None:
            if manila_api.lists_rules(self.cloud):
                path = f"share-access-rules?share_id={share}"
                found = self.cloud.document("GET", "manila", path, traced=False)
            else:
                found = self._act_on(share, "access_list", None, traced=False)
            states = {one["id"]: one["state"] for one in found["access_list"]}
            if states.get(rule) == "error":
                raise NotReady("the access rule is in error; see the log of Manila")
            return True if states.get(rule, "") == state else None

        self.wait_until("the access rule", wait, look)


def _metadata_problems(args: Mapping[str, Any]) -> list[str]:
    found = count_problems(args, "sets", "set_size", "delete_size")
    for what, most in (("key", 256), ("value", 1024)):
        low, high = args.get(f"{what}_min_length", 1), args.get(f"{what}_max_length", most)
        if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= most):
            found.append(
                f"{what}_min_length and {what}_max_length must be integers from 1 to {most}, the "
                f"smaller one first, got {low!r} and {high!r}"
            )
    return found


def _random_text(least: int, most: int) -> str:
    length = random.randrange(least, most) if most > least else least  # noqa: S311 - load
    return "".join(random.choices(_LETTERS, k=length))  # noqa: S311 - load, not secrets

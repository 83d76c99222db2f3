"""The context `allow_ssh`: a security group for servers that iterations boot."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, CloudAccess, PerProjectContext

#: Everything that comes in: TCP, UDP and ICMP over both IP versions.
_EVERYWHERE = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}
_RULES = [
    {
        "ethertype": version,
        "direction": "ingress",
        "remote_ip_prefix": place,
        "protocol": "ipv6-icmp" if (protocol, version) == ("icmp", "IPv6") else protocol,
        **({} if protocol == "icmp" else {"port_range_min": 1, "port_range_max": 65535}),
    }
    for protocol in ("tcp", "udp", "icmp")
    for version, place in _EVERYWHERE.items()
]


class SshAccess(PerProjectContext):
    """Creates a security group in every project that lets all in; servers of iterations get it."""

    NAME: ClassVar[str] = "allow_ssh"
    ORDER: ClassVar[int] = 320
    SERVICE: ClassVar[str] = "neutron"
    KEY: ClassVar[str] = "ssh_groups"
    KINDS: ClassVar[tuple[str, ...]] = ("neutron.security_groups",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"type": "object", "properties": {}, "additionalProperties": False},
            {"type": "null"},
        ],
        "examples": [{}],
    }

    def __init__(self, config: Any, *others: Any) -> None:
        # Rally's takes null
        super().__init__(config or {}, *others)

    def setup(self) -> None:
        """Create one security group per project; store their names by project id.

        Does nothing if Neutron has no security groups.
        """
        cloud = CloudAccess(self.surroundings, self.NAME).projects[0]
        path = "extensions/security-group"
        response = cloud.request("GET", "neutron", path, expected=(200, 404))
        if response.status_code != HTTPStatus.NOT_FOUND:
            self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create the security group `name` with rules that let all traffic in; return `name`.

        A group or rule that exists, from an earlier attempt, is used.
        """
        path = "security-groups"
        there = cloud.document("GET", "neutron", path, params={"name": name})["security_groups"]
        if there:
            # a try whose response was lost has created it
            group = there[0]["id"]
        else:
            wanted = {"name": name, "description": "access to servers of osbench"}
            made = cloud.document("POST", "neutron", path, json={"security_group": wanted})
            group = made["security_group"]["id"]
        for rule in _RULES:
            # 409: the rule is there
            cloud.request(
                "POST",
                "neutron",
                "security-group-rules",
                json={"security_group_rule": {**rule, "security_group_id": group}},
                expected=(201, 409),
            )
        return name

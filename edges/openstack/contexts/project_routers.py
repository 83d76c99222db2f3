"""The context `router`: routers in each project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext, neutron

#: Parts of a gateway that are also keys of the context, as in Rally.
_OF_GATEWAY = ("network_id", "external_fixed_ips")


class ProjectRouters(PerProjectContext):
    """Rally's context `router`: makes `routers_per_tenant` routers (default 1) in every project.

    They have a gateway only if an external network is configured.
    """

    NAME: ClassVar[str] = "router"
    ORDER: ClassVar[int] = 351
    SERVICE: ClassVar[str] = "neutron"
    KEY: ClassVar[str] = "routers"
    COUNT: ClassVar[str] = "routers_per_tenant"
    KINDS: ClassVar[tuple[str, ...]] = ("neutron.routers",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "routers_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "routers in each project; 1 by default",
            },
            "admin_state_up": {"type": "boolean"},
            "external_gateway_info": {
                "type": "object",
                "properties": {
                    "network_id": {"type": "string"},
                    "enable_snat": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
            "network_id": {"type": "string", "description": "external network of the gateway"},
            "external_fixed_ips": {
                "type": "array",
                "description": "addresses of the gateway",
                "items": {
                    "type": "object",
                    "properties": {
                        "ip_address": {"type": "string"},
                        "subnet_id": {"type": "string"},
                    },
                    "additionalProperties": False,
                },
            },
            "distributed": {"type": "boolean"},
            "ha": {"type": "boolean"},
            "availability_zone_hints": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": False,
        "examples": [{"routers_per_tenant": 2}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if `external_fixed_ips` is given without `network_id`, else []."""
        gateway = config.get("external_gateway_info", {})
        if "external_fixed_ips" in config and "network_id" not in {**gateway, **config}:
            return ["external_fixed_ips needs network_id, the external network of the gateway"]
        return []

    def setup(self) -> None:
        """Create the routers, several at the same time; store their ids by project id."""
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create a router named `name` in the project of `cloud`, with the configured attributes.

        Returns its id; if an earlier attempt has created it, that router's id.
        """
        fields = {
            key: value
            for key, value in self.config.items()
            if key not in (self.COUNT, "external_gateway_info", *_OF_GATEWAY)
        }
        gateway = dict(self.config.get("external_gateway_info", {}))
        gateway |= {key: self.config[key] for key in _OF_GATEWAY if key in self.config}
        if gateway:
            fields["external_gateway_info"] = gateway
        return str(neutron.create_once(cloud, "router", {**fields, "name": name})["id"])

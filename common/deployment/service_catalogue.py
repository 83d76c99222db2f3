"""The OpenStack services that osbench knows, by Rally's names, and their API versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service that osbench knows: types in the catalogue, API version, needed headers."""

    #: Types in the catalogue, the preferred one first.
    types: tuple[str, ...]
    #: First part of every path, if the catalogue does not name a version; "" for none.
    version: str = ""
    #: Whether the version replaces that of the catalogue.
    wished: bool = False
    #: Name in the header OpenStack-API-Version; "" if there are no microversions.
    microversion: str = ""
    #: The version that its microversions belong to.
    major: str = ""
    #: The microversion of requests that ask for none; "" for the service's own choice.
    usual: str = ""
    #: It requires the header Client-ID.
    client_id: bool = False


SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        "keystone": Service(types=("identity",), version="v3"),
        "glance": Service(types=("image",), version="v2"),
        "zaqar": Service(types=("messaging",), version="v2", client_id=True),
        "mistral": Service(types=("workflowv2", "workflow"), version="v2"),
        "nova": Service(types=("compute",), microversion="compute", major="2"),
        "neutron": Service(types=("network",), version="v2.0"),
        "cinder": Service(types=("block-storage", "volumev3"), microversion="volume", major="3"),
        "placement": Service(types=("placement",), microversion="placement", major="1"),
        "heat": Service(types=("orchestration",)),
        "octavia": Service(types=("load-balancer",), version="v2.0"),
        "swift": Service(types=("object-store",)),
        "ceilometer": Service(types=("metering",)),
        "barbican": Service(types=("key-manager",), version="v1"),
        "designate": Service(types=("dns",), version="v2"),
        "gnocchi": Service(types=("metric",), version="v1"),
        # nodes have names from 1.5 on, and as of 1.11 new ones are not available
        "ironic": Service(
            types=("baremetal",), version="v1", microversion="baremetal", major="1", usual="1.9"
        ),
        "magnum": Service(
            types=("container-infra",), version="v1", microversion="container-infra", major="1"
        ),
        "manila": Service(
            types=("shared-file-system", "sharev2"), microversion="shared-file-system", major="2"
        ),
    }
)

"""The OpenStack services that osbench knows, by the names that Rally gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Service:
    """How a service stands in a catalogue, and how its API is addressed."""

    #: Types in the catalogue, the preferred one first.
    types: tuple[str, ...]
    #: First part of every path, where the catalogue does not name a version; "" for none.
    version: str = ""
    #: Its name in the header OpenStack-API-Version; "" where it has no microversions.
    microversion: str = ""
    #: It wants to know which client asks.
    client_id: bool = False


SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        "keystone": Service(types=("identity",), version="v3"),
        "glance": Service(types=("image",), version="v2"),
        "zaqar": Service(types=("messaging",), version="v2", client_id=True),
        "mistral": Service(types=("workflowv2", "workflow"), version="v2"),
        "nova": Service(types=("compute",), microversion="compute"),
        "neutron": Service(types=("network",), version="v2.0"),
        "cinder": Service(types=("block-storage", "volumev3"), microversion="volume"),
        "placement": Service(types=("placement",), microversion="placement"),
        "heat": Service(types=("orchestration",)),
        "octavia": Service(types=("load-balancer",), version="v2.0"),
        "ceilometer": Service(types=("metering",)),
    }
)


@dataclass(frozen=True, kw_only=True)
class ApiVersion:
    """What the context `api_versions` says of one service."""

    #: Version of the API, or the microversion; "" for the usual.
    version: str = ""
    #: Type in the catalogue; "" for the usual ones.
    service_type: str = ""


def overridden(service: Service, wish: ApiVersion | None) -> Service:
    """The service with another type or version of its path."""
    if wish is None:
        return service
    types = (wish.service_type,) if wish.service_type else service.types
    version = service.version
    if wish.version and not service.microversion:
        version = f"v{wish.version.lstrip('v')}"
    return replace(service, types=types, version=version)

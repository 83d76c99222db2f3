"""The OpenStack services that osbench knows, by Rally's names, and their API versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from osbench.common.errors import DeploymentError


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
    }
)


@dataclass(frozen=True, kw_only=True)
class ApiVersion:
    """Configured API version and catalogue type of a service (context `api_versions`)."""

    #: Version of the API, or the microversion; "" for the usual.
    version: str = ""
    #: Type in the catalogue; "" for the usual ones.
    service_type: str = ""


def configured_service(service: Service, wish: ApiVersion | None) -> Service:
    """Return a copy of `service` with the type and API version of `wish`; itself if `wish` is None.

    The version of a service with microversions stays, since they are sent as a header. For it
    raises DeploymentError if `wish` names another major version and no type.
    """
    if wish is None:
        return service
    types = (wish.service_type,) if wish.service_type else service.types
    asked = wish.version.removeprefix("v")
    if not asked:
        return replace(service, types=types)
    if service.microversion:
        # the type in the catalogue says which API it is; with a dot it goes into a header
        if "." not in asked and asked != service.major and not wish.service_type:
            raise DeploymentError(
                f"api_versions: there is no version {wish.version} of {types[0]} to choose; give "
                f"a microversion ({service.major}.N), or the service_type that has it"
            )
        return replace(service, types=types)
    version = f"v{asked}"
    if service.version.startswith(f"{version}."):
        version = service.version
    return replace(service, types=types, version=version, wished=True)

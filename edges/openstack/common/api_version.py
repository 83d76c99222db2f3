"""API versions of services that a task configures (context `api_versions`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from osbench.common.deployment.service_catalogue import Service
from osbench.common.errors import DeploymentError


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

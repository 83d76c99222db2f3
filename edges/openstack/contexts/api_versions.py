"""The context `api_versions`: other API versions and catalogue types than the default ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import SERVICES, CloudAccess
from osbench.plugin.errors import ContextError


class ApiVersions(context.Context):
    """Makes scenarios use a version of an API, or a service type of the catalogue.

    The version of nova, cinder and placement is a microversion if it has a dot; write it in
    quotes.
    """

    NAME: ClassVar[str] = "api_versions"
    ORDER: ClassVar[int] = 150
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "propertyNames": {"enum": sorted(SERVICES)},
        "additionalProperties": {
            "type": "object",
            "description": "`version`, `service_type`, `service_name`",
            "properties": {
                "version": {"type": ["string", "number"]},
                "service_type": {"type": "string"},
                "service_name": {"type": "string"},
            },
            "additionalProperties": False,
        },
        "examples": [{"nova": {"version": "2.37"}}],
    }

    def setup(self) -> None:
        """Store version and type of each configured service in `made["api_versions"]`.

        A `service_name` without `service_type` is looked up in the cloud's catalogue. Raises
        ValueError if the catalogue has no such name, ContextError if a microversion is a float:
        2.90 would be read as 2.9.
        """
        self.made["api_versions"] = {
            name: {
                "version": _version(name, wish.get("version", "")),
                "service_type": wish.get("service_type") or self._type(wish.get("service_name")),
            }
            for name, wish in self.config.items()
        }

    def cleanup(self) -> None:
        """Do nothing: this context makes no resources."""

    def _type(self, name: str | None) -> str:
        if name is None:
            return ""
        access = CloudAccess(self.surroundings, self.NAME)
        cloud = access.projects[0]
        catalogue = cloud.account.token(access.session()).service_catalog.catalog
        for service in catalogue:
            if service.get("name") == name:
                return str(service["type"])
        there = ", ".join(sorted(str(service.get("name")) for service in catalogue))
        raise ValueError(
            f"api_versions: the catalogue has no service named {name!r}; choose from {there}"
        )


def _version(service: str, wanted: str | float) -> str:
    if isinstance(wanted, float) and SERVICES[service].microversion:
        raise ContextError(
            f"{service}: put version {wanted} in quotes, since a number loses the zero at its end: "
            "2.90 is read as 2.9"
        )
    return str(wanted)

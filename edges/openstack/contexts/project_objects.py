"""The context `swift_objects`: containers of Swift with objects."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext

_ANY = {"Accept": "*/*"}


class ProjectObjects(PerProjectContext):
    """Creates containers in every project, and uploads objects filled with zeros to each.

    The numbers are one by default, and the size of an object 1024 bytes.
    """

    NAME: ClassVar[str] = "swift_objects"
    ORDER: ClassVar[int] = 360
    SERVICE: ClassVar[str] = "swift"
    KEY: ClassVar[str] = "swift_objects"
    COUNT: ClassVar[str] = "containers_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "containers_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "containers in each project; 1 by default",
            },
            "objects_per_container": {
                "type": "integer",
                "minimum": 1,
                "description": "objects in each container; 1 by default",
            },
            "object_size": {
                "type": "integer",
                "minimum": 1,
                "description": "bytes of each object; 1024 by default",
            },
            "resource_management_workers": {
                "type": "integer",
                "minimum": 1,
                "description": "accepted and ignored",
            },
        },
        "additionalProperties": False,
        "examples": [{"containers_per_tenant": 2, "objects_per_container": 10}],
    }

    def setup(self) -> None:
        """Create the containers with their objects; store the containers' names by project id."""
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create the container `name` and upload its objects, one after another; return `name`.

        Repeating it replaces the objects.
        """
        cloud.request("PUT", "swift", name, headers=_ANY)
        with tempfile.TemporaryFile() as data:
            data.truncate(self.config.get("object_size", 1024))
            for number in range(self.config.get("objects_per_container", 1)):
                data.seek(0)
                path = f"{name}/{name}-{number}"
                cloud.request("PUT", "swift", path, data=data, headers=_ANY)
        return name

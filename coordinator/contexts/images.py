"""The context `images`: images of Glance."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import requests

from osbench.common.errors import ContextError
from osbench.common.openstack.cloud import Cloud
from osbench.coordinator.contexts.per_project import PerProjectContext

_BLOCK = 1024 * 1024
_DISKS = ["qcow2", "raw", "vhd", "vmdk", "vdi", "iso", "aki", "ari", "ami"]
_CONTAINERS = ["aki", "ami", "ari", "bare", "docker", "ova", "ovf"]


class Images(PerProjectContext):
    """Uploads an image, so many times, to every project."""

    NAME: ClassVar[str] = "images"
    ORDER: ClassVar[int] = 410
    SERVICE: ClassVar[str] = "glance"
    KEY: ClassVar[str] = "images"
    COUNT: ClassVar[str] = "images_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "image_url": {
                "type": "string",
                "description": "file on the coordinator's host, or URL",
            },
            "disk_format": {"enum": _DISKS},
            "image_type": {"enum": _DISKS, "description": "the same"},
            "container_format": {"enum": _CONTAINERS},
            "image_container": {"type": "string", "description": "the same"},
            "image_name": {
                "type": "string",
                "description": "where there is one in each project; made up by default",
            },
            "visibility": {"enum": ["public", "private", "shared", "community"]},
            "min_ram": {"type": "integer", "minimum": 0, "description": "MB"},
            "min_disk": {"type": "integer", "minimum": 0, "description": "GB"},
            "images_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "images in each project; 1 by default",
            },
        },
        "required": ["image_url"],
        "allOf": [
            {"anyOf": [{"required": ["disk_format"]}, {"required": ["image_type"]}]},
            {"anyOf": [{"required": ["container_format"]}, {"required": ["image_container"]}]},
        ],
        "additionalProperties": False,
        "examples": [{"image_url": "disk.img", "disk_format": "raw", "container_format": "bare"}],
    }

    def setup(self) -> None:
        """Fetch the image once, and upload it."""
        with tempfile.TemporaryDirectory() as folder:
            self._file = _local(self.config["image_url"], Path(folder))
            self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Make an image with its data; answers its id."""
        config = self.config
        shown = config.get("image_name") if config.get(self.COUNT, 1) == 1 else None
        wanted = {
            "name": shown or name,
            # by it the image is found again
            "tags": [name],
            "disk_format": config.get("disk_format") or config["image_type"],
            "container_format": config.get("container_format") or config["image_container"],
            "visibility": config.get("visibility", "private"),
            "min_ram": config.get("min_ram", 0),
            "min_disk": config.get("min_disk", 0),
        }
        identity, filled = _made(cloud, name)
        if filled:
            return identity
        if not identity:
            identity = str(cloud.document("POST", "glance", "images", json=wanted)["id"])
        with self._file.open("rb") as data:
            cloud.request(
                "PUT",
                "glance",
                f"images/{identity}/file",
                data=data,
                headers={"Content-Type": "application/octet-stream"},
            )
        return identity


def _made(cloud: Cloud, name: str) -> tuple[str, bool]:
    """The image of a try whose answer was lost, or "", and whether it has its data."""
    for image in cloud.document("GET", "glance", "images", params={"tag": name})["images"]:
        if image["status"] in ("active", "queued"):
            return str(image["id"]), image["status"] == "active"
        # an upload broke off
        cloud.request("DELETE", "glance", f"images/{image['id']}", expected=(204, 404))
    return "", False


def _local(place: str, folder: Path) -> Path:
    """The file of that name, or one in `folder` with what the URL gives."""
    if "://" not in place:
        path = Path(place).expanduser()
        if not path.is_file():
            raise ContextError(f"there is no file {place}")
        return path
    path = folder / "image"
    try:
        with requests.get(place, stream=True, timeout=60) as answer, path.open("wb") as file:
            answer.raise_for_status()
            for block in answer.iter_content(_BLOCK):
                file.write(block)
    except requests.RequestException as error:
        raise ContextError(f"{place} cannot be fetched: {error}") from None
    return path

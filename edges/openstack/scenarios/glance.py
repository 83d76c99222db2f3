"""Scenarios of Glance's images: they create, upload, list, download and delete images."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests

from osbench.common.errors import DeploymentError
from osbench.common.files.named_files import expanded
from osbench.common.network.causes import root_cause
from osbench.common.network.download import download
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.object_body import FileBody
from osbench.edges.openstack.scenarios.image_scenario import IMAGE, ImageScenario
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED, openstack, waits
from osbench.edges.openstack.scenarios.servers import Servers
from osbench.edges.openstack.scenarios.transfer_scenario import TransferScenario

_DATA = {"Content-Type": "application/octet-stream"}
_SCENARIO: Mapping[str, Any] = {"services": ("glance",), "cleanup": ("glance",)}


class GlanceImages(TransferScenario, Servers, ImageScenario):
    """Rally's `GlanceImages` scenarios: create, list, download, change and delete images.

    `image_location` is a file on each worker's host, or a URL that each process fetches once for
    each workload.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Find or download the image's data before the load; look up the flavor by `cloud`.

        Both are stored in `context`. With `import_method: web-download` no data are needed. Raises
        DeploymentError if the file does not exist or the URL cannot be fetched.
        """
        super().prepare(context, cloud)
        location = context["args"].get("image_location")
        if location and context["args"].get("import_method") != "web-download":
            context["data"] = LocalCopy(str(location))

    # the arguments of scenarios that create an image

    def _create_empty(
        self,
        container_format: str,
        image_location: str,
        disk_format: str,
        visibility: str = "private",
        min_disk: int = 0,
        min_ram: int = 0,
        properties: dict[str, Any] | None = None,
    ) -> str:
        """Create an image without data; return its id. `image_location` is not used here."""
        wanted = {
            **(properties or {}),
            "container_format": container_format,
            "disk_format": disk_format,
            "visibility": visibility,
            "min_disk": min_disk,
            "min_ram": min_ram,
            "name": self.new_name(),
        }
        return str(self.cloud.document("POST", "glance", "images", json=wanted)["id"])

    # scenarios

    @openstack("GlanceImages.list_images", services=("glance",))
    def list_images(self) -> None:
        """List all active images."""
        self._list()

    @openstack("GlanceImages.create_and_list_image", takes=_create_empty, **_SCENARIO)
    @waits("glance_image_create")
    def create_and_list_image(self, **image_kwargs: Any) -> None:
        """Create an image with data, list all active images, and check that it is among them."""
        image = self._create(**image_kwargs)
        found = {one["id"] for one in self._list()}
        self.checked(image in found, "the image that was made is not in the list")

    @openstack("GlanceImages.create_and_get_image", takes=_create_empty, **_SCENARIO)
    @waits("glance_image_create")
    def create_and_get_image(self, **image_kwargs: Any) -> None:
        """Create an image with data, wait until it is active, and get it."""
        image = self._create(**image_kwargs)
        with ActionTimer(self, "glance_v2.get_image"):
            self.cloud.document("GET", "glance", f"images/{image}")

    @openstack("GlanceImages.create_and_delete_image", takes=_create_empty, **_SCENARIO)
    @waits("glance_image_create")
    def create_and_delete_image(self, **image_kwargs: Any) -> None:
        """Create an image with data, wait until it is active, and request its deletion."""
        image = self._create(**image_kwargs)
        self.delete_image(image)

    @openstack("GlanceImages.create_and_download_image", takes=_create_empty, **_SCENARIO)
    @waits("glance_image_create")
    def create_and_download_image(self, **image_kwargs: Any) -> None:
        """Create an image, download its data, and check that the size is the same."""
        image = self._create(**image_kwargs)
        with ActionTimer(self, "glance_v2.download_image"):
            answer = self.cloud.transfer(
                "GET", "glance", f"images/{image}/file", headers={"Accept": "*/*"}
            )
        self.note_transfer("glance_v2.download_image", answer.body_bytes, answer.lasted_s)
        wanted = self.context["data"].path.stat().st_size
        self.checked(answer.body_bytes == wanted, "the image came back with other data")

    @openstack("GlanceImages.create_and_update_image", **_SCENARIO)
    @waits("glance_image_create")
    def create_and_update_image(  # noqa: PLR0913 - they are Rally's
        self,
        container_format: str,
        image_location: str,
        disk_format: str,
        remove_props: list[str] | None = None,
        visibility: str = "private",
        create_min_disk: int = 0,
        create_min_ram: int = 0,
        create_properties: dict[str, Any] | None = None,
        update_min_disk: int = 0,
        update_min_ram: int = 0,
    ) -> None:
        """Create an image; change its name, `min_disk` and `min_ram`, and remove properties.

        `remove_props` are the names of the properties.
        """
        image = self._create(
            container_format=container_format,
            image_location=image_location,
            disk_format=disk_format,
            visibility=visibility,
            min_disk=create_min_disk,
            min_ram=create_min_ram,
            properties=create_properties,
        )
        changes = [
            {"op": "replace", "path": "/name", "value": self.new_name()},
            {"op": "replace", "path": "/min_disk", "value": update_min_disk},
            {"op": "replace", "path": "/min_ram", "value": update_min_ram},
            *({"op": "remove", "path": f"/{name}"} for name in remove_props or ()),
        ]
        headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
        with ActionTimer(self, "glance_v2.update_image"):
            self.cloud.request("PATCH", "glance", f"images/{image}", json=changes, headers=headers)

    @openstack("GlanceImages.create_and_deactivate_image", **_SCENARIO)
    @waits("glance_image_create")
    def create_and_deactivate_image(
        self,
        container_format: str,
        image_location: str,
        disk_format: str,
        visibility: str = "private",
        min_disk: int = 0,
        min_ram: int = 0,
    ) -> None:
        """Create an image with data, wait until it is active, and deactivate it."""
        image = self._create(
            container_format=container_format,
            image_location=image_location,
            disk_format=disk_format,
            visibility=visibility,
            min_disk=min_disk,
            min_ram=min_ram,
        )
        with ActionTimer(self, "glance_v2.deactivate_image"):
            self.cloud.request("POST", "glance", f"images/{image}/actions/deactivate")

    @openstack("GlanceImages.import_and_delete_image", takes=_create_empty, **_SCENARIO)
    @waits("glance_image_import")
    def import_and_delete_image(
        self,
        stores: list[str] | None = None,
        all_stores: bool = True,
        import_method: str = "glance-direct",
        **image_kwargs: Any,
    ) -> None:
        """Create an image, import its data by Glance, wait until it is active, and delete it.

        `import_method` is `glance-direct` (the worker sends the data) or `web-download` (Glance
        downloads it).
        """
        with ActionTimer(self, "glance_v2.create_image_for_import"):
            image = self._create_empty(**image_kwargs)
        wanted: dict[str, Any] = {"method": {"name": import_method}}
        if import_method == "glance-direct":
            with ActionTimer(self, "glance_v2.stage_image_data"):
                self._send_data(f"images/{image}/stage")
        else:
            wanted["method"]["uri"] = image_kwargs["image_location"]
        if stores:
            wanted["stores"] = stores
        elif all_stores:
            wanted["all_stores"] = True
        with ActionTimer(self, "glance_v2.import_image"):
            with ActionTimer(self, ACCEPTED):
                self.cloud.request("POST", "glance", f"images/{image}/import", json=wanted)
            self.await_image(image, "glance_image_import")
        self.delete_image(image)

    @openstack(
        "GlanceImages.create_image_and_boot_instances",
        takes=_create_empty,
        services=("glance", "nova"),
        cleanup=("nova", "glance"),
    )
    @waits("glance_image_create", "nova_server_boot")
    def create_image_and_boot_instances(
        self,
        flavor: dict[str, Any],
        number_instances: int,
        boot_server_kwargs: dict[str, Any] | None = None,
        **image_kwargs: Any,
    ) -> None:
        """Create an image, boot `number_instances` servers from it, and wait until all are active.

        One request per server.
        """
        image = self._create(**image_kwargs)
        self.boot_servers(image, number_instances, boot_server_kwargs or {})

    # atomic actions

    @action_timer("glance_v2.create_image")
    def _create(self, /, **image_kwargs: Any) -> str:
        with ActionTimer(self, ACCEPTED):
            image = self._create_empty(**image_kwargs)
            with ActionTimer(self, "glance_v2.upload_data"):
                self._send_data(f"images/{image}/file")
        self.await_image(image)
        return image

    def _send_data(self, path: str) -> None:
        with self.context["data"].path.open("rb") as data:
            body = FileBody(data)
            answer = self.cloud.transfer("PUT", "glance", path, headers=_DATA, body=body)
        self.note_transfer("glance_v2.upload_data", len(body), answer.lasted_s)

    @action_timer("glance_v2.list_images")
    def _list(self) -> list[dict[str, Any]]:
        return self.list_pages(IMAGE, params={"status": "active"}, page=200)


class LocalCopy:
    """A local file, or a temporary copy of a URL's content, removed with this object.

    `path` is the file to read. Raises DeploymentError if there is no such file, or the URL cannot
    be fetched.
    """

    def __init__(self, location: str) -> None:
        if "://" not in location:
            self.path = expanded(location)
            if not self.path.is_file():
                raise DeploymentError(
                    f"image_location: there is no file {location} on this host; copy it to all "
                    "workers, or give a URL"
                )
            return
        # an unnamed file: nothing is left even if the process is killed
        file = tempfile.TemporaryFile()  # noqa: SIM115 - kept open with its path
        weakref.finalize(self, file.close)
        self.path = Path(f"/proc/self/fd/{file.fileno()}")
        try:
            download(location, file)
        except requests.RequestException as error:
            raise DeploymentError(
                f"image_location: cannot fetch {location}: {root_cause(error)}; give another "
                "URL, or a file"
            ) from None
        file.flush()

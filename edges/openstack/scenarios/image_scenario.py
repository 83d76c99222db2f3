"""Base of scenarios with images of Glance."""

from __future__ import annotations

from osbench.common.plugin.atomic import action_timer
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

IMAGE = ResourceKind(service="glance", path="images", key="image")
#: A wait of `WAITS`, for an image that gets its data.
CREATE = "glance_image_create"
#: States of an image whose data are going.
GOING = ("deleted", "pending_delete")
_FAILED = (*GOING, "killed", "error")


class ImageScenario(ResourceScenario):
    """Base of scenarios that wait for images of Glance and delete them."""

    def await_image(self, image: str, wait: str = CREATE) -> None:
        """Poll an image, by its id, until it is active; `wait` is a key of `WAITS`.

        Raises NotReady if the image or its import has failed, if it is deleted, or at the timeout.
        """

        def look() -> bool | None:
            found = self.show(IMAGE, image, traced=False)
            if found["status"] in _FAILED:
                raise NotReady(f"the image is {found['status']}; see the log of Glance")
            if found.get("os_glance_failed_import"):
                raise NotReady("the import of the image failed; see the log of Glance")
            return True if found["status"] == "active" else None

        self.wait_until("the image", wait, look)

    @action_timer("glance_v2.delete_image")
    def delete_image(self, image: str) -> None:
        """Request the deletion of an image, as an action; does not wait until it is gone."""
        self.delete(IMAGE, image)

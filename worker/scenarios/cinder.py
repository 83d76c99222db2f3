"""Scenarios of Cinder's volumes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.request_errors import NotReady
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.worker.scenarios.nova import sought
from osbench.worker.scenarios.openstack_scenario import ACCEPTED, OpenStackScenario, openstack

_SCENARIO: Mapping[str, Any] = {"services": ("cinder",), "cleanup": ("cinder",)}


class CinderVolumes(OpenStackScenario):
    """Rally's `CinderVolumes` scenarios that create, list and delete.

    `size` is in GB, or `{min, max}` for a random size.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Look up the image."""
        image = context["args"].get("image")
        context["image"] = sought(cloud, "image", image) if image else ""

    @openstack("CinderVolumes.create_volume", **_SCENARIO)
    def create_volume(self, size: Any, image: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Create a volume."""
        self._create(size, kwargs)

    @openstack("CinderVolumes.create_and_delete_volume", **_SCENARIO)
    def create_and_delete_volume(
        self,
        size: Any,
        image: dict[str, Any] | None = None,
        min_sleep: float = 0,
        max_sleep: float = 0,
        **kwargs: Any,
    ) -> None:
        """Create a volume, pause, and delete it."""
        volume = self._create(size, kwargs)
        self.sleep_between(min_sleep, max_sleep)
        with ActionTimer(self, "cinder_v3.delete_volume"):
            path = f"volumes/{volume}"
            with ActionTimer(self, ACCEPTED):
                self.cloud.request("DELETE", "cinder", path)

            def look() -> bool | None:
                answer = self.cloud.request(
                    "GET", "cinder", path, expected=(200, 404), traced=False
                )
                if answer.status_code == 404:
                    return True
                _refuse_error(answer.json()["volume"]["status"])
                return None

            self.wait_until("the end of the volume", look)

    @openstack("CinderVolumes.list_volumes", services=("cinder",))
    def list_volumes(
        self,
        detailed: bool = True,
        search_opts: dict[str, Any] | None = None,
        marker: str | None = None,
        limit: int | None = None,
        sort: str | None = None,
    ) -> None:
        """List volumes."""
        asked = {**(search_opts or {}), "marker": marker, "limit": limit, "sort": sort}
        params = {key: value for key, value in asked.items() if value is not None}
        with ActionTimer(self, "cinder_v3.list_volumes"):
            path = "volumes/detail" if detailed else "volumes"
            self.cloud.document("GET", "cinder", path, params=params)

    @action_timer("cinder_v3.create_volume")
    def _create(self, size: Any, wanted: Mapping[str, Any]) -> str:
        if isinstance(size, Mapping):
            size = random.randint(size["min"], size["max"])  # noqa: S311 - load, not secrets
        fields = {**wanted, "name": self.new_name(), "size": size}
        if self.context["image"]:
            fields["imageRef"] = self.context["image"]
        with ActionTimer(self, ACCEPTED):
            document = self.cloud.document("POST", "cinder", "volumes", json={"volume": fields})
        volume = str(document["volume"]["id"])

        def look() -> str | None:
            found = self.cloud.document("GET", "cinder", f"volumes/{volume}", traced=False)
            status = found["volume"]["status"]
            _refuse_error(status)
            return volume if status == "available" else None

        return self.wait_until("the volume", look)


def _refuse_error(status: str) -> None:
    if status.startswith("error"):
        raise NotReady(f"the volume is in {status}")

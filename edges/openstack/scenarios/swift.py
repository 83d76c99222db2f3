"""Scenarios of Swift's containers and objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from osbench.common.plugin.atomic import action_timer
from osbench.edges.openstack.common.object_body import ZeroBody
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, openstack
from osbench.edges.openstack.scenarios.transfer_scenario import TransferScenario

#: Usual size of an object, bytes.
_SIZE = 1024
_SCENARIO: Mapping[str, Any] = {"services": ("swift",), "cleanup": ("swift",)}
_FILLED: Mapping[str, Any] = {"services": ("swift",), "contexts": {"swift_objects": {}}}
#: The header that lets everybody read a container.
_PUBLIC: Mapping[str, str] = {"X-Container-Read": ".r:*,.rlistings"}
_ANY: Mapping[str, str] = {"Accept": "*/*"}


class SwiftObjects(TransferScenario, OpenStackScenario):
    """Rally's `SwiftObjects` scenarios: create containers, upload, list and download objects.

    Objects have `object_size` bytes, all zero.
    """

    # the arguments of scenarios that create a container

    def _fill(
        self,
        objects_per_container: int = 1,
        object_size: int = _SIZE,
        public: bool = False,
        headers: dict[str, str] | None = None,
    ) -> tuple[str, list[str]]:
        """Create a container with objects of `object_size` bytes; return its name and theirs."""
        container = self._create_container({**(_PUBLIC if public else {}), **(headers or {})})
        body = ZeroBody(object_size)
        return container, [self._upload(container, body) for _ in range(objects_per_container)]

    # scenarios

    @openstack(
        "SwiftObjects.create_container_and_object_then_list_objects", takes=_fill, **_SCENARIO
    )
    def create_container_and_object_then_list_objects(self, **container_kwargs: Any) -> None:
        """Create a container with objects, list them, and check that each is listed."""
        container, names = self._fill(**container_kwargs)
        missing = set(names) - set(self._list_objects(container))
        self.checked(not missing, f"{len(missing)} of the objects are not in the list")

    @openstack("SwiftObjects.create_container_and_object_then_delete_all", takes=_fill, **_SCENARIO)
    def create_container_and_object_then_delete_all(self, **container_kwargs: Any) -> None:
        """Create a container with objects; delete the objects, then the container."""
        container, names = self._fill(**container_kwargs)
        for name in names:
            self._delete_object(container, name)
        self._delete_container(container)

    @openstack(
        "SwiftObjects.create_container_and_object_then_download_object", takes=_fill, **_SCENARIO
    )
    def create_container_and_object_then_download_object(self, **container_kwargs: Any) -> None:
        """Create a container with objects, download each, and check its size."""
        container, names = self._fill(**container_kwargs)
        wanted = container_kwargs.get("object_size", _SIZE)
        for name in names:
            size = self._download(container, name)
            self.checked(size == wanted, f"an object of {wanted} bytes came back with {size}")

    @openstack("SwiftObjects.list_objects_in_containers", **_FILLED)
    def list_objects_in_containers(self) -> None:
        """List all containers of the project, and the objects of each."""
        for container in self._list_containers():
            self._list_objects(container)

    @openstack("SwiftObjects.list_and_download_objects_in_containers", **_FILLED)
    def list_and_download_objects_in_containers(self) -> None:
        """List all containers of the project and their objects, and download each object."""
        found = {container: self._list_objects(container) for container in self._list_containers()}
        for container, names in found.items():
            for name in names:
                self._download(container, name)

    # atomic actions

    @action_timer("swift.create_container")
    def _create_container(self, headers: Mapping[str, str]) -> str:
        name = self.new_name()
        self.cloud.request("PUT", "swift", name, headers={**_ANY, **headers})
        return name

    @action_timer("swift.delete_container")
    def _delete_container(self, container: str) -> None:
        self.cloud.request("DELETE", "swift", _path(container))

    @action_timer("swift.upload_object")
    def _upload(self, container: str, body: ZeroBody) -> str:
        name = self.new_name()
        headers = {**_ANY, "Content-Type": "application/octet-stream"}
        path = _path(container, name)
        answer = self.cloud.transfer("PUT", "swift", path, headers=headers, body=body)
        self.note_transfer("swift.upload_object", len(body), answer.lasted_s)
        return name

    @action_timer("swift.download_object")
    def _download(self, container: str, name: str) -> int:
        """Download an object and discard it; return its size in bytes."""
        answer = self.cloud.transfer("GET", "swift", _path(container, name), headers=_ANY)
        self.note_transfer("swift.download_object", answer.body_bytes, answer.lasted_s)
        return answer.body_bytes

    @action_timer("swift.delete_object")
    def _delete_object(self, container: str, name: str) -> None:
        self.cloud.request("DELETE", "swift", _path(container, name))

    @action_timer("swift.list_containers")
    def _list_containers(self) -> list[str]:
        return self._names("")

    @action_timer("swift.list_objects")
    def _list_objects(self, container: str) -> list[str]:
        return self._names(_path(container))

    def _names(self, path: str) -> list[str]:
        found: list[str] = []
        params = {"format": "json"}
        before = None
        while page := self.cloud.document("GET", "swift", path, params=params):
            # a service that does not know markers gives the same page for ever
            if page == before:
                break
            before = page
            found += [one["name"] for one in page]
            params["marker"] = found[-1]
        return found


def _path(*names: str) -> str:
    return "/".join(quote(name, safe="") for name in names)

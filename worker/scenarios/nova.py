"""Scenarios of Nova's servers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.request_errors import NotReady
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.worker.scenarios import server_arguments
from osbench.worker.scenarios.openstack_scenario import ACCEPTED, OpenStackScenario, openstack

_SCENARIO: Mapping[str, Any] = {"services": ("nova",), "cleanup": ("nova",)}
#: Page size of lists of images and flavors; services may return fewer.
_PAGE = 1000
#: Service and path of the lists in which names are looked up.
_LISTS = {"image": ("glance", "images"), "flavor": ("nova", "flavors")}


class Servers(OpenStackScenario):
    """Base of scenarios with servers."""

    def _boot(self, image: str, wanted: Mapping[str, Any]) -> str:
        with ActionTimer(self, "nova.boot_server"):
            with ActionTimer(self, ACCEPTED):
                server = self._post_server(image, wanted)
            self._await_server(f"servers/{server}")
        return server

    def _boot_many(self, image: str, count: int, wanted: Mapping[str, Any]) -> None:
        """Boot servers, one request per server, then wait for each of them."""
        with ActionTimer(self, "nova.boot_servers"):
            with ActionTimer(self, ACCEPTED):
                servers = [self._post_server(image, wanted) for _ in range(count)]
            for server in servers:
                self._await_server(f"servers/{server}")

    def _post_server(self, image: str, wanted: Mapping[str, Any]) -> str:
        fields = {"name": self.new_name(), "flavorRef": self.context["flavor"]}
        if image:
            fields["imageRef"] = image
        sent, microversion = server_arguments.body(fields, wanted)
        found = self.cloud.document("POST", "nova", "servers", json=sent, microversion=microversion)
        return str(found["server"]["id"])

    def _await_server(self, path: str) -> None:
        def look() -> bool | None:
            found = self.cloud.document("GET", "nova", path, traced=False)["server"]
            _refuse_error(found)
            return True if found["status"] == "ACTIVE" else None

        self.wait_until("the server", look)


class NovaServers(Servers):
    """Rally's `NovaServers` scenarios that boot, list and delete.

    `image` and `flavor` are `{id: ...}` or `{name: ...}`, a name or a regular expression that
    matches one. `nics` is `none`, `auto` or a list of `{net-id: ...}`; further arguments are those
    of novaclient for new servers. `auto_assign_nic` must be false where there are no `nics`.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments; look up image and flavor."""
        named = set(inspect.signature(cls.method(context)).parameters) - {"auto_assign_nic"}
        server_arguments.check({k: v for k, v in context["args"].items() if k not in named})
        for what in ("image", "flavor"):
            given = context["args"].get(what)
            context[what] = sought(cloud, what, given) if given else ""

    @openstack("NovaServers.boot_server", **_SCENARIO)
    def boot_server(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        auto_assign_nic: bool = False,
        **kwargs: Any,
    ) -> None:
        """Boot a server."""
        self._boot(self.context["image"], kwargs)

    @openstack("NovaServers.boot_and_list_server", **_SCENARIO)
    def boot_and_list_server(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        detailed: bool = True,
        auto_assign_nic: bool = False,
        **kwargs: Any,
    ) -> None:
        """Boot a server, list all servers, and find it among them."""
        server = self._boot(self.context["image"], kwargs)
        found = {one["id"] for one in self._list(detailed)}
        self.checked(server in found, "the server that was booted is not in the list")

    @openstack("NovaServers.list_servers", services=("nova",))
    def list_servers(self, detailed: bool = True) -> None:
        """List all servers."""
        self._list(detailed)

    @openstack("NovaServers.boot_and_delete_server", **_SCENARIO)
    def boot_and_delete_server(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        auto_assign_nic: bool = False,
        **kwargs: Any,
    ) -> None:
        """Boot a server, pause, and delete it."""
        server = self._boot(self.context["image"], kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self._delete(server, force_delete)

    def _delete(self, server: str, force: bool) -> None:
        path = f"servers/{server}"
        with ActionTimer(self, f"nova.{'force_' if force else ''}delete_server"):
            with ActionTimer(self, ACCEPTED):
                if force:
                    self.cloud.request("POST", "nova", f"{path}/action", json={"forceDelete": None})
                else:
                    self.cloud.request("DELETE", "nova", path)

            def look() -> bool | None:
                answer = self.cloud.request("GET", "nova", path, expected=(200, 404), traced=False)
                if answer.status_code == 404:
                    return True
                _refuse_error(answer.json()["server"])
                return None

            self.wait_until("the end of the server", look)

    @action_timer("nova.list_servers")
    def _list(self, detailed: bool) -> list[dict[str, Any]]:
        """All servers, page after page."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            path = "servers/detail" if detailed else "servers"
            document = self.cloud.document("GET", "nova", path, params=params)
            found += document["servers"]
            if not document.get("servers_links"):
                return found
            params["marker"] = found[-1]["id"]


def _refuse_error(server: Mapping[str, Any]) -> None:
    if server["status"] == "ERROR":
        raise NotReady(f"the server is in ERROR: {server.get('fault', {}).get('message')}")


def sought(cloud: Cloud, what: str, given: Any) -> str:
    """Id of an image or a flavor. Raises DeploymentError unless exactly one matches."""
    wanted = given if isinstance(given, Mapping) else {"id": given}
    if "id" in wanted:
        return str(wanted["id"])
    name = str(wanted.get("name") or wanted.get("regex") or "")
    found = _listed(cloud, *_LISTS[what])
    fitting = [one for one in found if one["name"] == name]
    if not fitting:
        try:
            pattern = re.compile(name)
        except re.error as error:
            raise DeploymentError(
                f"there is no {what} {name!r}, and it is no regular expression: {error}"
            ) from None
        fitting = [one for one in found if pattern.search(one["name"] or "")]
    if len(fitting) != 1:
        there = ", ".join(sorted(str(one["name"]) for one in (fitting or found))[:10])
        count = "no" if not fitting else "more than one"
        raise DeploymentError(f"there is {count} {what} {name!r}; there are {there or 'none'}")
    return str(fitting[0]["id"])


def _listed(cloud: Cloud, service: str, path: str) -> list[dict[str, Any]]:
    """All images or flavors, page after page."""
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {"limit": _PAGE}
    while True:
        document = cloud.document("GET", service, path, params=params)
        found += document[path]
        # Glance has the former key, Nova the latter
        if not (document.get("next") or document.get(f"{path}_links")):
            return found
        params["marker"] = found[-1]["id"]

"""Nova of the small cloud, answering as its API reference says: under /nova."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from helpers.json_server import QuietHandler
from osbench.common.ports import clock as time

#: Seconds until a server is ACTIVE, or gone.
BUILD_S = 0.25
TASK_STATE = "OS-EXT-STS:task_state"
HOST = "OS-EXT-SRV-ATTR:host"
HOSTNAME = "OS-EXT-SRV-ATTR:hypervisor_hostname"
#: The states in which an action is allowed, the next state, and that which it leads to.
_ACTIONS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "reboot": (("ACTIVE",), "REBOOT", "ACTIVE"),
    "os-start": (("SHUTOFF",), "SHUTOFF", "ACTIVE"),
    "os-stop": (("ACTIVE",), "ACTIVE", "SHUTOFF"),
    "rescue": (("ACTIVE",), "ACTIVE", "RESCUE"),
    "unrescue": (("RESCUE",), "RESCUE", "ACTIVE"),
    "suspend": (("ACTIVE",), "ACTIVE", "SUSPENDED"),
    "resume": (("SUSPENDED",), "SUSPENDED", "ACTIVE"),
    "pause": (("ACTIVE",), "ACTIVE", "PAUSED"),
    "unpause": (("PAUSED",), "PAUSED", "ACTIVE"),
    "shelve": (("ACTIVE",), "SHELVED", "SHELVED_OFFLOADED"),
    "unshelve": (("SHELVED_OFFLOADED",), "SHELVED_OFFLOADED", "ACTIVE"),
    "rebuild": (("ACTIVE",), "REBUILD", "ACTIVE"),
    "resize": (("ACTIVE", "SHUTOFF"), "RESIZE", "VERIFY_RESIZE"),
    "migrate": (("ACTIVE",), "RESIZE", "VERIFY_RESIZE"),
    "os-migrateLive": (("ACTIVE",), "MIGRATING", "ACTIVE"),
    "confirmResize": (("VERIFY_RESIZE",), "VERIFY_RESIZE", "ACTIVE"),
    "revertResize": (("VERIFY_RESIZE",), "REVERT_RESIZE", "ACTIVE"),
    "lock": (("ACTIVE",), "ACTIVE", "ACTIVE"),
    "unlock": (("ACTIVE",), "ACTIVE", "ACTIVE"),
}
_MOVES = ("migrate", "os-migrateLive")


def advance(objects: dict[str, dict[str, Any]]) -> None:
    """Bring objects closer to the state that they change to: one look each."""
    for identity, one in list(objects.items()):
        if "looks" not in one:
            continue
        one["looks"] -= 1
        if one["looks"] <= 0:
            del one["looks"]
            then = one.pop("then")
            if then is None:
                del objects[identity]
            else:
                one.update(then)


def change(one: dict[str, Any], now: dict[str, Any], then: dict[str, Any] | None) -> None:
    """Change an object, and once more after two looks: None is its end."""
    one.update(now)
    one |= {"looks": 2, "then": then}


class ComputeRoutes(QuietHandler):
    """Routes of a cloud's handler."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]
    _objects: Callable[..., None]

    def _nova(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        body = json.loads(data) if data else {}
        kind, *more = rest
        if kind == "servers":
            return self._servers(more, body, data)
        handle = getattr(self, f"_{kind.removeprefix('os-').replace('-', '_')}", None)
        return handle(more, body, who) if handle else self._answer(404, {})

    # servers

    def _servers(self, more: list[str], body: dict[str, Any], data: bytes) -> None:  # noqa: PLR0911, PLR0912 - one for each route
        servers = self.server.objects.setdefault("servers", {})
        for server in list(servers.values()):
            if server.get("gone_at", math.inf) < time.monotonic():
                self._release_volumes(server["id"])
                del servers[server["id"]]
            elif server["status"] == "BUILD" and server["made_at"] + BUILD_S < time.monotonic():
                server["status"] = server["boots"]
        if more == ["detail"]:
            more = []
        if self.command == "GET":
            advance(servers)
        if self.command == "POST" and not more:
            return self._boot(body["server"])
        if more and more[0] not in servers:
            return self._answer(404, {"itemNotFound": {"message": "Instance could not be found."}})
        if more[1:] == ["action"]:
            return self._act(servers[more[0]], body)
        if more[1:2] == ["os-volume_attachments"]:
            return self._attach(more[0], more[2:], body)
        if more[1:] == ["remote-consoles"]:
            return self._answer(200, {"remote_console": {"url": "http://127.0.0.1/"}})
        if more[1:] == ["os-interface"]:
            network = body.get("interfaceAttachment", {})
            found = {"interfaceAttachment": {"port_id": "p", **network}}
            return self._answer(200, found if network else {"interfaceAttachments": []})
        if self.command == "DELETE":
            return self._end(servers[more[0]])
        if self.command == "PUT":
            servers[more[0]] |= body["server"]
            return self._answer(200, {"server": servers[more[0]]})
        return self._objects("servers", more, data, "server", {})

    def _boot(self, fields: dict[str, Any]) -> None:
        count = fields.get("min_count", 1)
        usual = {
            "status": "BUILD",
            "addresses": self.server.fixed_addresses,
            HOST: "host-1",
            HOSTNAME: "host-1",
            TASK_STATE: None,
            "boots": "ERROR" if self.server.boots_fail() else "ACTIVE",
        }
        for number in range(count):
            name = f"{fields['name']}-{number + 1}" if count > 1 else fields["name"]
            made = self.server.make("servers", {**fields, **usual, "name": name})
            self._use_volumes(made)
        self._answer(202, {"server": {"id": made["id"]}})

    def _use_volumes(self, server: dict[str, Any]) -> None:
        for disk in server.get("block_device_mapping_v2", ()):
            if disk["source_type"] == "volume":
                volume = self.server.objects["volumes"][disk["uuid"]]
                volume |= {"status": "in-use", "server": server["id"]}

    def _release_volumes(self, server: str) -> None:
        for volume in self.server.objects.get("volumes", {}).values():
            if volume.get("server") == server:
                volume.pop("then", None), volume.pop("looks", None)
                volume |= {"status": "available", "server": ""}

    def _end(self, server: dict[str, Any]) -> None:
        if server.get("locked"):
            said = f"Instance {server['id']} is locked"
            return self._answer(409, {"conflictingRequest": {"message": said}})
        if self.server.undeletable:
            server |= {"status": "ERROR", "fault": {"message": "it cannot go"}}
        else:
            server.setdefault("gone_at", time.monotonic() + BUILD_S)
        return self._answer(204, None)

    def _act(self, server: dict[str, Any], body: dict[str, Any]) -> None:  # noqa: PLR0911 - one for each route
        ((action, wanted),) = body.items()
        if action == "forceDelete":
            return self._end(server)
        if action == "os-getConsoleOutput":
            return self._answer(200, {"output": "login: "})
        if action == "os-getVNCConsole":
            return self._answer(200, {"console": {**wanted, "url": "http://127.0.0.1/"}})
        if action == "createImage":
            image = self.server.make("images", {"name": wanted["name"], "status": "active"})
            place = f"{self.server.url}/glance/v2/images/{image['id']}"
            change(server, {TASK_STATE: "image_uploading"}, {TASK_STATE: None})
            return self._answer(202, None, Location=place)
        allowed, now, then = _ACTIONS[action]
        if server["status"] not in allowed:
            said = f"Cannot '{action}' instance while it is in vm_state {server['status']}"
            return self._answer(409, {"conflictingRequest": {"message": said}})
        if action in ("lock", "unlock"):
            server["locked"] = action == "lock"
            return self._answer(202, None)
        if action == "resize":
            server["was"] = server["status"]
        if action in ("confirmResize", "revertResize"):
            then = server.pop("was", then)
        moved = {HOST: "host-2", HOSTNAME: "host-2"} if action in _MOVES else {}
        if action in _MOVES and self.server.immovable:
            moved = {}
        final = {"status": "ERROR", "fault": {"message": "it broke"}}
        if action != self.server.broken_action:
            final = {"status": then, TASK_STATE: None, **moved}
        change(server, {"status": now, TASK_STATE: action}, final)
        return self._answer(202, None)

    def _attach(self, server: str, more: list[str], body: dict[str, Any]) -> None:
        volumes = self.server.objects["volumes"]
        if self.command == "GET":
            mine = [one for one in volumes.values() if one.get("server") == server]
            found = [{"id": one["id"], "volumeId": one["id"], "serverId": server} for one in mine]
            return self._answer(200, {"volumeAttachments": found})
        volume = volumes[more[0] if more else body["volumeAttachment"]["volumeId"]]
        if self.command == "DELETE":
            change(volume, {"status": "detaching"}, {"status": "available", "server": ""})
            return self._answer(202, None)
        if volume["status"] != "available":
            said = f"Invalid volume: volume '{volume['id']}' status must be 'available'."
            return self._answer(400, {"badRequest": {"message": said}})
        change(volume, {"status": "attaching", "server": server}, {"status": "in-use"})
        found = {"id": volume["id"], "volumeId": volume["id"], "serverId": server}
        return self._answer(200, {"volumeAttachment": found})

    # what users have

    def _keypairs(self, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        kept = self.server.objects.setdefault("keypairs", {})
        own = {one["name"]: one for one in kept.values() if one["user_id"] == who["user"]}
        if self.command == "POST":
            fields = {"public_key": "ssh-rsa AAAA", **body["keypair"], "user_id": who["user"]}
            if fields["name"] in own:
                said = f"Key pair '{fields['name']}' already exists."
                return self._answer(409, {"conflictingRequest": {"message": said}})
            made = self.server.make("keypairs", fields)
            return self._answer(200, {"keypair": {**made, "private_key": "-----BEGIN"}})
        if not more:
            return self._answer(200, {"keypairs": [{"keypair": one} for one in own.values()]})
        if more[0] not in own:
            return self._answer(404, {"itemNotFound": {"message": "Keypair not found"}})
        if self.command == "DELETE":
            del kept[own[more[0]]["id"]]
            return self._answer(202, None)
        return self._answer(200, {"keypair": own[more[0]]})

    def _server_groups(self, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        self._simple("server_groups", "server_group", more, body)

    # what administrators have

    def _flavors(self, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        kept = self.server.objects.setdefault("flavors", {})
        if more == ["detail"]:
            more = []
        if more[1:] == ["os-extra_specs"]:
            kept[more[0]]["extra_specs"] = body["extra_specs"]
            return self._answer(200, body)
        if more[1:] == ["os-flavor-access"]:
            return self._answer(200, {"flavor_access": []})
        if more[1:] == ["action"]:
            public = kept[more[0]].get("os-flavor-access:is_public", True)
            said = {"conflictingRequest": {"message": "Can not add access to a public flavor."}}
            return self._answer(409, said) if public else self._answer(200, {"flavor_access": []})
        if self.command == "POST":
            fields = body["flavor"]
            if fields.get("id") in kept or self.server.find("flavors", fields["name"]):
                said = f"Flavor with name {fields['name']} already exists."
                return self._answer(409, {"conflictingRequest": {"message": said}})
        if not more and self.command == "GET":
            every = "None" in self.params.get("is_public", "")
            found = [
                one for one in kept.values() if every or one.get("os-flavor-access:is_public", True)
            ]
            return self._answer(200, {"flavors": [] if "marker" in self.params else found})
        return self._simple("flavors", "flavor", more, body)

    def _aggregates(self, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        kept = self.server.objects.setdefault("aggregates", {})
        found = kept.get(more[0]) if more else None
        if found and more[1:] == ["action"]:
            ((action, wanted),) = body.items()
            hosts = found.setdefault("hosts", [])
            if action == "add_host":
                hosts.append(wanted["host"])
            elif action == "remove_host":
                hosts.remove(wanted["host"])
            return self._answer(200, {"aggregate": found})
        if found and self.command == "DELETE" and found.get("hosts"):
            said = f"Cannot remove host from aggregate {more[0]}. Reason: it is not empty."
            return self._answer(409, {"conflictingRequest": {"message": said}})
        if self.command == "POST":
            number = len(kept) + 1
            body["aggregate"] |= {"id": str(number), "hosts": []}
        return self._simple("aggregates", "aggregate", more, body)

    def _hypervisors(self, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        found = [
            {
                "id": number,
                "hypervisor_hostname": f"host-{number}",
                "state": "up",
                "status": "enabled",
                "service": {"host": f"host-{number}"},
            }
            for number in range(1, self.server.hypervisors + 1)
        ]
        if more in ([], ["detail"]) or more[1:] == ["search"]:
            return self._answer(200, {"hypervisors": found})
        if more == ["statistics"]:
            return self._answer(200, {"hypervisor_statistics": {"count": len(found)}})
        return self._answer(200, {"hypervisor": found[int(more[0]) - 1]})

    def _services(self, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        self._answer(200, {"services": []})

    def _availability_zone(
        self, more: list[str], body: dict[str, Any], who: dict[str, str]
    ) -> None:
        self._answer(200, {"availabilityZoneInfo": []})

    def _simple(self, kind: str, key: str, more: list[str], body: dict[str, Any]) -> None:
        """Make, list, get, change and delete objects of a kind."""
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "POST":
            return self._answer(200, {key: self.server.make(kind, body[key])})
        if not more:
            return self._answer(200, {kind: list(kept.values())})
        if more[0] not in kept:
            return self._answer(404, {"itemNotFound": {"message": f"{more[0]} is not there"}})
        if self.command == "DELETE":
            del kept[more[0]]
            return self._answer(204, None)
        if self.command == "PUT":
            kept[more[0]] |= body[key]
        return self._answer(200, {key: kept[more[0]]})

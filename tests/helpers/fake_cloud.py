"""A small OpenStack cloud in a thread: what scenarios and contexts make is kept and can be counted.

Keystone under /v3, Zaqar under /zaqar, Glance under /glance, Placement under /placement, the lists
of Mistral under /mistral, and what the other modules `helpers.fake_...` have. It knows no roles
beyond their names: everybody may do everything, unless a test says otherwise with `faults`.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from helpers.fake_compute import ComputeRoutes
from helpers.fake_network import NetworkRoutes, is_quota_path
from helpers.fake_services import ServiceRoutes
from helpers.fake_stacks import StackRoutes
from helpers.fake_store import StoreRoutes
from helpers.fake_volumes import VolumeRoutes
from helpers.json_server import LoopbackServer, serving
from osbench.common.ports import clock as time

#: The administrator.
ADMIN, PASSWORD = "admin", "right"

_SERVICES = {
    "identity": "v3",
    "messaging": "zaqar",
    "compute": "nova",
    "image": "glance",
    "placement": "placement",
    "block-storage": "cinder",
    "workflowv2": "mistral",
    "network": "neutron",
    "load-balancer": "octavia",
    "orchestration": "heat",
    "object-store": "swift",
    "key-manager": "barbican",
    "dns": "designate",
    "metric": "gnocchi",
    "baremetal": "ironic",
    "container-infra": "magnum/v1",
    "shared-file-system": "manila/v2",
}
#: Answers to requests for the versions of services that clients ask.
_VERSIONS = {
    "barbican": {"id": "v1", "status": "CURRENT", "min_version": "1.0", "max_version": "1.1"},
}
#: What services call themselves in spans, by their paths.
_PROJECTS = {"v3": "keystone", "zaqar": "Zaqar", "nova": "nova", "glance": "glance"}


class FakeCloud(LoopbackServer):
    """The cloud; a test looks into `objects`."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        #: Requests are answered one by one; who holds it lets them arrive unanswered.
        self.lock = threading.Lock()
        #: By kind, as paths name it, and by id: the object as it is answered.
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        #: Role assignments: (project, user, role).
        self.assigned: set[tuple[str, str, str]] = set()
        #: Tokens that are good, with who has them.
        self.tokens: dict[str, dict[str, str]] = {}
        #: Method, path and headers (names in small letters) of each request.
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        #: Their bodies.
        self.bodies: list[bytes] = []
        #: Answers in place of the usual ones: regular expression of "METHOD /path", status, times.
        self.faults: list[list[Any]] = []
        #: Header Retry-After of these answers, or "".
        self.retry_after = ""
        #: Requests that are served and answered with 503: regular expression, times.
        self.lost: list[list[Any]] = []
        #: Types that the catalogue lacks, unless a test wants them.
        self.absent: set[str] = {
            *("workflowv2", "block-storage", "network", "load-balancer"),
            *("orchestration", "object-store", "key-manager", "dns", "metric", "baremetal"),
            *("container-infra", "shared-file-system"),
        }
        #: Quotas that were set, by service and project; objects on a page of Neutron's lists, 0 for
        #: the usual number; whether load balancers get into an error.
        self.quotas: dict[tuple[str, str], dict[str, int]] = {}
        self.page = 0
        #: First three parts of floating IPs; addresses of new servers, by network.
        self.floating_range = "192.0.2"
        self.fixed_addresses: dict[str, list[dict[str, str]]] = {}
        self.balancers_fail = False
        #: The Redis of the trace store, and the keys that a service takes, by its path.
        self.traces: Any = None
        self.trace_keys: dict[str, list[str]] = {}
        #: Servers and volumes go into an error where they are to be deleted.
        self.undeletable = False
        #: Whether servers that are booted now get into an error.
        self.boots_fail: Callable[[], bool] = lambda: False
        #: An action that breaks servers; whether they stay on their host; how many hosts there are.
        self.broken_action = ""
        self.immovable = False
        self.hypervisors = 2
        #: Volumes and snapshots get into an error; how many a page of them has.
        self.volumes_fail = False
        self.volumes_page = 1000
        #: Extensions of Neutron; whether servers have ports.
        self.extensions = {"ext-gw-mode", "security-group"}
        self.has_ports = True
        #: An action that fails for stacks, such as CREATE.
        self.stacks_fail = ""
        #: Objects of Swift by project, container and name; how many names a page has.
        self.containers: dict[str, dict[str, dict[str, bytes]]] = {}
        self.store_page = 10_000
        #: Names of the roles in every token, and when all of them end.
        self.roles = ["admin"]
        self.expires_at = "2999-01-01T00:00:00.000000Z"
        #: Objects of Keystone on a page at most, of any name, as releases from 2025 on; 0: all.
        self.keystone_page = 0
        #: Seconds that making a user takes.
        self.slow_s = 0.0
        self.make("users", {"name": ADMIN, "password": PASSWORD, "domain_id": "default"})
        self.make("projects", {"name": ADMIN, "domain_id": "default"})
        for role in ("admin", "member", "reader"):
            self.make("roles", {"name": role})
        self.objects["domains"] = {"default": {"id": "default", "name": "Default"}}

    @property
    def auth_url(self) -> str:
        return f"{self.url}/v3"

    def deployment(self, **more: Any) -> dict[str, Any]:
        """The record of this cloud."""
        domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
        admin = {"username": ADMIN, "password": PASSWORD, "project_name": ADMIN, **domains}
        return {"openstack": {"auth_url": self.auth_url, "admin": admin, **more}}

    def variables(self) -> dict[str, str]:
        """The administrator's variables of openrc."""
        return {
            "OS_AUTH_URL": self.auth_url,
            "OS_USERNAME": ADMIN,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": ADMIN,
        }

    def make(self, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Store an object; returns it with its id."""
        identity = fields.get("id") or uuid.uuid4().hex
        made = {"made_at": time.monotonic(), **fields, "id": identity}
        self.objects.setdefault(kind, {})[identity] = made
        return made

    def named(self, kind: str) -> list[str]:
        """Names of all objects of a kind, sorted."""
        with self.lock:
            return sorted(str(one["name"]) for one in self.objects.get(kind, {}).values())

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        return next((x for x in self.objects.get(kind, {}).values() if x["name"] == name), None)

    def catalogue(self) -> list[dict[str, Any]]:
        def endpoint(path: str) -> dict[str, str]:
            return {"id": path, "interface": "public", "region": "R", "url": f"{self.url}/{path}"}

        return [
            {"type": kind, "name": kind, "id": kind, "endpoints": [endpoint(path)]}
            for kind, path in _SERVICES.items()
            if kind not in self.absent
        ]


class _Handler(ComputeRoutes, VolumeRoutes, StackRoutes, StoreRoutes, NetworkRoutes, ServiceRoutes):
    server: FakeCloud

    def _serve(self) -> None:  # noqa: PLR0911 - one for each route
        split = urlsplit(self.path)
        self.params = {key: several[0] for key, several in parse_qs(split.query).items()}
        path = split.path.rstrip("/")
        data, headers = self.sent_body(), self.sent_headers()
        cloud = self.server
        if self.command == "POST" and path == "/v3/users":
            time.sleep(cloud.slow_s)
        cloud.seen.append((self.command, self.path, headers))
        cloud.bodies.append(data)
        with cloud.lock:
            self.lost = False
            fault = self._fault(f"{self.command} {path}")
            if fault:
                after = {"Retry-After": cloud.retry_after} if cloud.retry_after else {}
                return self._answer(fault, {"error": {"message": "as the test says"}}, **after)
            if path == "/v3/auth/tokens" and self.command == "POST":
                return self._authenticate(json.loads(data))
            who = cloud.tokens.get(headers.get("x-auth-token", ""))
            if who is None and path != "/v3":
                return self._answer(401, {"error": {"message": "Who are you?"}})
            service, *rest = path.removeprefix("/").split("/")
            if service in _VERSIONS and rest in ([], ["v1"]):
                links = [{"rel": "self", "href": f"{cloud.url}/{service}/v1/"}]
                return self._answer(
                    200, {"versions": {"values": [{**_VERSIONS[service], "links": links}]}}
                )
            if not rest and service not in ("v3", "swift"):
                version = {"id": "v3.14", "status": "stable"}
                return self._answer(300, {"versions": {"values": [version]}})
            self._trace(service, headers)
            self.lost = self._is_lost(f"{self.command} {path}")
            route = "quota_sets" if is_quota_path(path) else service
            handle = getattr(self, f"_{route}", None)
            if handle is None:
                return self._answer(404, {})
            return handle(rest, data, who or {})

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = _serve

    def _trace(self, service: str, headers: dict[str, str]) -> None:
        """Write a span where the request is signed with a key that the service takes."""
        packed = headers.get("x-trace-info", "")
        for key in self.server.trace_keys.get(service, ()):
            if hmac.digest(key.encode(), packed.encode(), "sha1").hex() == headers.get(
                "x-trace-hmac"
            ):
                base_id = json.loads(base64.urlsafe_b64decode(packed))["base_id"]
                event = {"name": "wsgi-start", "project": _PROJECTS[service]}
                self.server.traces.lpush(f"osprofiler_opt:{base_id}", json.dumps(event))

    def _fault(self, what: str) -> int:
        for fault in self.server.faults:
            if fault[2] and re.search(fault[0], what):
                fault[2] -= 1
                return int(fault[1])
        return 0

    def _is_lost(self, what: str) -> bool:
        for lost in self.server.lost:
            if lost[1] and re.search(lost[0], what):
                lost[1] -= 1
                return True
        return False

    def _authenticate(self, body: dict[str, Any]) -> None:
        cloud = self.server
        identity, scope = body["auth"]["identity"], body["auth"].get("scope", {})
        if "application_credential" in identity:
            # one of the administrator, in its project
            asked = {"name": ADMIN, "password": identity["application_credential"]["secret"]}
            scope = {"project": {"name": ADMIN}}
        else:
            asked = identity["password"]["user"]
        user = cloud.find("users", asked["name"])
        system = "system" in scope
        project = None if system else cloud.find("projects", scope["project"]["name"])
        wrong = user is None or user["password"] != asked["password"]
        if wrong or (project is None and not system):
            return self._answer(401, {"error": {"message": "This is not your password."}})
        assert user is not None
        token = uuid.uuid4().hex
        cloud.tokens[token] = {"user": user["id"], "project": project["id"] if project else ""}
        domain = {"id": "default", "name": "Default"}
        content = {
            "methods": identity["methods"],
            "expires_at": cloud.expires_at,
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "user": {"id": user["id"], "name": user["name"], "domain": domain},
            "catalog": cloud.catalogue(),
            "roles": [{"id": name, "name": name} for name in cloud.roles],
        }
        if project is None:
            content["system"] = {"all": True}
        else:
            content["project"] = {"id": project["id"], "name": project["name"], "domain": domain}
        return self._answer(201, {"token": content}, **{"X-Subject-Token": token})

    def _v3(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        if not rest:
            return self._versions()
        if rest in (["auth", "projects"], ["role_assignments"]):
            return self._answer(200, self._memberships(rest[0], who))
        if len(rest) >= 5 and rest[0] == "projects" and rest[4] == "roles":
            return self._roles(rest[1], rest[3], rest[5] if len(rest) > 5 else "")
        if rest[0] == "users" and rest[2:4] == ["credentials", "OS-EC2"]:
            return self._ec2(rest[1], rest[4:], data)
        in_pages = self.command == "GET" and len(rest) == 1 and self.server.keystone_page
        if in_pages:
            return self._keystone_page(rest[0])
        return self._objects(rest[0], rest[1:], data, rest[0][:-1], {})

    def _versions(self) -> None:
        links = [{"rel": "self", "href": f"{self.server.auth_url}/"}]
        version = {"id": "v3.14", "status": "stable", "links": links}
        return self._answer(200, {"version": version})

    def _memberships(self, what: str, who: dict[str, str]) -> dict[str, Any]:
        """The project of a token, or the users with a role in a project."""
        if what == "auth":
            mine = self.server.objects["projects"][who["project"]]
            return {"projects": [{**mine, "enabled": True}], "links": {"next": None}}
        project, role = self.params["scope.project.id"], self.params["role.id"]
        users = [u for p, u, r in self.server.assigned if (p, r) == (project, role)]
        return {"role_assignments": [{"user": {"id": u}} for u in users]}

    def _ec2(self, user: str, rest: list[str], data: bytes) -> None:
        kept = self.server.objects.setdefault("ec2_credentials", {})
        if self.command == "POST":
            access, secret = uuid.uuid4().hex, uuid.uuid4().hex
            made = {"access": access, "secret": secret, "user": user, "id": access}
            kept[access] = {**made, "tenant_id": json.loads(data)["tenant_id"]}
            return self._answer(201, {"credential": kept[access]})
        if self.command == "DELETE":
            return self._answer(204 if kept.pop(rest[0], None) else 404, None)
        found = [one for one in kept.values() if one["user"] == user]
        return self._answer(200, {"credentials": found})

    def _roles(self, project: str, user: str, role: str) -> None:
        assigned = self.server.assigned
        if not role:
            found = [{"id": r} for p, u, r in assigned if (p, u) == (project, user)]
            return self._answer(200, {"roles": found})
        one = (project, user, role)
        if self.command == "HEAD":
            return self._answer(204 if one in assigned else 404, None)
        (assigned.add if self.command == "PUT" else assigned.discard)(one)
        return self._answer(204, None)

    def _zaqar(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        if rest[:1] == ["v2"]:
            rest = rest[1:]
        queues = self.server.objects.setdefault("queues", {})
        if len(rest) == 1:
            mine = [one for one in queues.values() if one["project"] == who["project"]]
            after = [one for one in mine if one["name"] > self.params.get("marker", "")]
            page = sorted(after, key=lambda one: one["name"])[: int(self.params.get("limit", 10))]
            href = f"/v2/queues?marker={page[-1]['name']}" if page else ""
            return self._answer(
                200, {"queues": page, "links": [{"rel": "next", "href": href}] if page else []}
            )
        if self.command == "DELETE":
            queues.pop(rest[1], None)
            return self._answer(204, None)
        if rest[2:] == ["messages"] and self.command == "GET":
            return self._messages(queues[rest[1]])
        if rest[1] in queues and len(rest) == 2:
            return self._answer(204, None)
        if rest[1] not in queues:
            self.server.make("queues", {"id": rest[1], "name": rest[1], "project": who["project"]})
        if rest[2:] == ["messages"] and self.command == "POST":
            queues[rest[1]].setdefault("messages", []).extend(json.loads(data)["messages"])
        return self._answer(201, None)

    def _messages(self, queue: dict[str, Any]) -> None:
        """Answer ten messages of a queue; a client sees its own only if it asks for them."""
        shown = queue.get("messages", []) if self.params.get("echo") == "true" else []
        begin = int(self.params.get("marker", 0))
        href = f"/v2/queues/{queue['name']}/messages?marker={begin + 10}&limit=10"
        links = [{"rel": "next", "href": href}]
        self._answer(200, {"messages": shown[begin : begin + 10], "links": links})

    def _glance(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        if rest[:1] == ["v2"]:
            rest = rest[1:]
        images = self.server.objects.setdefault("images", {})
        if rest[2:3] == ["file"] and self.command == "GET":
            content = bytes(images[rest[1]].get("size", 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return None
        if rest[2:3] == ["file"]:
            images[rest[1]] |= {"status": "active", "size": len(data)}
            return self._answer(204, None)
        return self._objects("images", rest[1:], data, "", {"status": "queued"})

    def _placement(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        self._objects(rest[0], rest[1:], data, "", {})

    def _mistral(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        self._objects(rest[1], rest[2:], data, "", {})

    def _objects(
        self, kind: str, rest: list[str], data: bytes, wrapped: str, more: dict[str, Any]
    ) -> None:
        """Make, list, get, change and delete objects of a kind."""
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "POST":
            body = json.loads(data)
            fields = body[wrapped] if wrapped else body
            if kind != "images" and self.server.find(kind, fields["name"]):
                return self._answer(409, {"error": {"message": f"{fields['name']} exists."}})
            made = self.server.make(kind, {**fields, **more})
            made.setdefault("uuid", made["id"])
            return self._answer(201, {wrapped: made} if wrapped else made)
        if not rest:
            found = [one for one in kept.values() if self._fits(one) and self._shown(kind, one)]
            return self._answer(200, {kind: [] if "marker" in self.params else found})
        if rest[0] not in kept:
            return self._answer(404, {"error": {"message": f"Could not find {rest[0]}."}})
        if self.command == "DELETE":
            del kept[rest[0]]
            return self._answer(204, None)
        if self.command == "PATCH":
            kept[rest[0]] |= json.loads(data)[wrapped]
        return self._answer(200, {wrapped: kept[rest[0]]} if wrapped else kept[rest[0]])

    def _keystone_page(self, kind: str) -> None:
        """Answer a page of a list as Keystone does: it compares names after it has cut the page."""
        most = self.server.keystone_page
        size = min(int(self.params.get("limit", most)), most)
        exact = self.params.get("name")
        found = self.server.objects.get(kind, {}).values()
        rows = [one for one in found if exact in (None, one["name"]) and self._shown(kind, one)]
        rows.sort(key=lambda one: one["id"])
        rows = [one for one in rows if one["id"] > self.params.get("marker", "")]
        page = [one for one in rows[:size] if self._fits(one)]
        # without a limit the list is cut without a word
        cut = "limit" in self.params and len(rows) > size
        href = (
            f"{self.server.auth_url}/{kind}?limit={size}&marker={rows[size - 1]['id']}"
            if cut
            else None
        )
        self._answer(
            200, {kind: page, "links": {"next": href, "self": self.path, "previous": None}}
        )

    def _fits(self, one: dict[str, Any]) -> bool:
        name = str(one["name"])
        beginning = self.params.get("name__startswith", "")
        exact = self.params.get("name", name)
        return name.startswith(beginning) and bool(re.search(exact, name))

    def _shown(self, kind: str, one: dict[str, Any]) -> bool:
        """Whether a list shows an object: of one domain, or of none, and hidden or not."""
        if kind == "images":
            if "tag" in self.params and self.params["tag"] not in one.get("tags", ()):
                return False
            return str(one.get("os_hidden", False)).lower() == self.params.get("os_hidden", "false")
        if kind not in ("users", "roles"):
            return True
        # users as in a cloud where each domain has its own driver
        usual = "default" if kind == "users" else None
        return bool(one.get("domain_id", usual) == self.params.get("domain_id", usual))

    def _answer(self, status: int, document: Any, **headers: str) -> None:
        self.answer(
            503 if self.lost else status,
            document,
            **{"X-Openstack-Request-Id": f"req-{uuid.uuid4()}"},
            **headers,
        )


def fake_cloud() -> AbstractContextManager[FakeCloud]:
    """Serve from a thread for as long as the block runs."""
    return serving(FakeCloud())

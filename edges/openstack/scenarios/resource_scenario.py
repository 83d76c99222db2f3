"""Base of scenarios that create objects of a service, wait for them, list and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.object_lists import listed_objects
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED, OpenStackScenario


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """A kind of objects of a service, such as servers: path in its API, fields of the state."""

    service: str
    #: Path of the list.
    path: str
    #: Key of one object in a document; the name of one in messages.
    key: str
    #: Field with the state of an object; "" if it has none.
    status: str = "status"
    #: Beginning or end of the states that an object does not leave by itself, in small letters.
    failed: str = "error"
    #: Field with the reason for such a state; of an object in it, the message.
    reason: str = ""

    def state(self, found: Mapping[str, Any]) -> str:
        """Return the state of an object as in a response; "" if its kind has none."""
        return str(found[self.status]) if self.status else ""

    def refuse_failed(self, found: Mapping[str, Any]) -> None:
        """Raise NotReady if an object is in a failed state; its reason is in the message, if known.

        `found` is the object as in a response.
        """
        status = self.state(found)
        if not status.lower().startswith(self.failed) and not status.lower().endswith(self.failed):
            return
        reason = found.get(self.reason) or ""
        if isinstance(reason, Mapping):
            reason = reason.get("message") or ""
        raise NotReady(f"the {self.key} is in {status}" + (f": {reason}" if reason else ""))


class ResourceScenario(OpenStackScenario):
    """Base of scenarios that create, list, change and delete objects of a service.

    Methods send requests as the iteration's user, or by the client `cloud` if that is given. They
    raise RequestFailed if the service refuses a request.
    """

    def list_pages(
        self,
        kind: ResourceKind,
        path: str = "",
        params: Mapping[str, Any] | None = None,
        *,
        page: int = 0,
        cloud: Cloud | None = None,
    ) -> list[dict[str, Any]]:
        """Return all objects of a kind, page after page; only one page if `params` have a limit.

        `path` replaces the kind's path, as for a list with details; "" keeps it. `params` are
        parameters of the URL. `page` is the page size; 0 leaves it to the service.
        """
        key = kind.path.rpartition("/")[2].removeprefix("os-")
        return listed_objects(
            cloud or self.cloud, kind.service, path or kind.path, key, params, page=page
        )

    def post(
        self, kind: ResourceKind, fields: Mapping[str, Any], *, cloud: Cloud | None = None
    ) -> dict[str, Any]:
        """Create an object with a unique name and `fields`; return it as in the response.

        Does not wait until it is ready.
        """
        sent = {kind.key: {"name": self.new_name(), **fields}}
        found = (cloud or self.cloud).document("POST", kind.service, kind.path, json=sent)
        return dict(found[kind.key])

    def send_action(
        self,
        kind: ResourceKind,
        identity: str,
        body: Mapping[str, Any],
        *,
        cloud: Cloud | None = None,
    ) -> Any:
        """Request an action on an object by its id; return the JSON of the response, None if empty.

        `body` names the action. Does not wait for its end.
        """
        path = f"{kind.path}/{identity}/action"
        return (cloud or self.cloud).document("POST", kind.service, path, json=body)

    def show(
        self,
        kind: ResourceKind,
        identity: str,
        *,
        cloud: Cloud | None = None,
        traced: bool = True,
    ) -> dict[str, Any]:
        """Get an object by its id and return it.

        `traced=False` sends no trace headers, for polls.
        """
        path = f"{kind.path}/{identity}"
        found = (cloud or self.cloud).document("GET", kind.service, path, traced=traced)
        return dict(found.get(kind.key, found))

    def await_status(
        self,
        kind: ResourceKind,
        identity: str,
        *wanted: str,
        wait: str,
        cloud: Cloud | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Poll an object until its state is in `wanted`, and its `fields` have the given values.

        `wait` is a key of `WAITS`. Returns the object as in the last response. Raises NotReady if
        its state is a failed one, or at the timeout. Polls are not traced.
        """

        def look() -> dict[str, Any] | None:
            found = self.show(kind, identity, cloud=cloud, traced=False)
            kind.refuse_failed(found)
            ready = kind.state(found) in wanted
            same = all(found.get(name) == value for name, value in fields.items())
            return found if ready and same else None

        return self.wait_until(f"the {kind.key}", wait, look)

    def await_end(
        self,
        kind: ResourceKind,
        identity: str,
        *,
        wait: str,
        gone: tuple[str, ...] = (),
        cloud: Cloud | None = None,
    ) -> None:
        """Poll an object until the service replies 404 or its state is in `gone`.

        `wait` is a key of `WAITS`. Raises NotReady if its state is a failed one, or at the timeout.
        Polls are not traced.
        """
        path = f"{kind.path}/{identity}"

        def look() -> bool | None:
            response = (cloud or self.cloud).request(
                "GET", kind.service, path, expected=(200, 404), traced=False
            )
            if response.status_code == 404:
                return True
            found = response.json()
            found = found.get(kind.key, found)
            if kind.state(found) in gone:
                return True
            kind.refuse_failed(found)
            return None

        self.wait_until(f"the end of the {kind.key}", wait, look)

    def delete(self, kind: ResourceKind, identity: str, *, cloud: Cloud | None = None) -> None:
        """Request the deletion of an object by its id; does not wait until it is gone."""
        (cloud or self.cloud).request("DELETE", kind.service, f"{kind.path}/{identity}")

    def delete_and_wait(self, action: str, kind: ResourceKind, identity: str, *, wait: str) -> None:
        """Delete an object by its id and wait until it is gone, all as the action named `action`.

        `wait` is a key of `WAITS`. Raises NotReady if its state is a failed one, or at the timeout.
        """
        with ActionTimer(self, action):
            with ActionTimer(self, ACCEPTED):
                self.delete(kind, identity)
            self.await_end(kind, identity, wait=wait)

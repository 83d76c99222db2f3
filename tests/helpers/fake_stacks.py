"""Heat of the small cloud, answering as its API reference says: under /heat."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from helpers.fake_compute import advance, change
from helpers.json_server import QuietHandler

_ACTIONS = ("check", "suspend", "resume")

#: The output of each stack.
OUTPUT = {"output_key": "address", "output_value": "192.0.2.1"}


class StackRoutes(QuietHandler):
    """Routes of a cloud's handler."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]

    def _heat(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        body = json.loads(data) if data else {}
        _, *more = rest
        kept = self.server.objects.setdefault("stacks", {})
        if self.command == "GET":
            advance(kept)
        if not more:
            if self.command == "POST":
                return self._create_stack(body)
            found = [one for one in kept.values() if one["stack_status"] != "DELETE_COMPLETE"]
            return self._answer(200, {"stacks": [] if "marker" in self.params else found})
        name, identity, *below = more
        found_one = kept.get(identity)
        if found_one is None or found_one["stack_name"] != name:
            return self._answer(404, {"error": {"message": f"The Stack ({name}) is not there."}})
        if below:
            return self._below_stack(found_one, below, body)
        if self.command == "DELETE":
            self._begin_stack(found_one, "DELETE")
            return self._answer(204, None)
        if self.command == "PUT":
            found_one |= body
            self._begin_stack(found_one, "UPDATE")
            return self._answer(202, None)
        return self._answer(200, {"stack": {**found_one, "outputs": [OUTPUT]}})

    def _create_stack(self, body: dict[str, Any]) -> None:
        if self.server.find("stacks", body["stack_name"]):
            return self._answer(409, {"error": {"message": "The Stack already exists."}})
        made = self.server.make("stacks", {**body, "name": body["stack_name"]})
        self._begin_stack(made, "CREATE")
        return self._answer(201, {"stack": {"id": made["id"], "links": []}})

    def _below_stack(self, stack: dict[str, Any], below: list[str], body: dict[str, Any]) -> None:
        if below[0] == "outputs":
            only = {"output": OUTPUT} if below[1:] == [OUTPUT["output_key"]] else None
            return self._answer(200, only or {"outputs": [OUTPUT]})
        if below[0] in ("resources", "events"):
            return self._answer(200, {below[0]: []})
        if below == ["actions"]:
            (action,) = body
            assert action in _ACTIONS
            self._begin_stack(stack, action.upper())
            return self._answer(201, None)
        if below == ["snapshots"]:
            self._begin_stack(stack, "SNAPSHOT")
            return self._answer(200, {"id": "s1", "status": "IN_PROGRESS"})
        assert below[2:] == ["restore"]
        self._begin_stack(stack, "RESTORE")
        return self._answer(202, None)

    def _begin_stack(self, stack: dict[str, Any], action: str) -> None:
        failed = action == self.server.stacks_fail
        then = {"stack_status": f"{action}_{'FAILED' if failed else 'COMPLETE'}"}
        if failed:
            then["stack_status_reason"] = "Resource CREATE failed: no valid host"
        change(stack, {"stack_status": f"{action}_IN_PROGRESS"}, then)

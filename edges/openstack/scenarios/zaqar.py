"""Scenarios of Zaqar's queues and messages."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, openstack

#: Seconds after which a message expires, as in Rally.
_TTL_S = 360


class ZaqarBasic(OpenStackScenario):
    """Rally's `ZaqarBasic` scenarios: create queues, post and read messages.

    `name_length` is ignored.
    """

    @openstack("ZaqarBasic.create_queue", services=("zaqar",), cleanup=("zaqar",))
    def create_queue(
        self, name_length: int | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        """Create a queue with `metadata`. Unlike Rally's scenario, it sends a request to Zaqar."""
        self._create(metadata)

    @openstack("ZaqarBasic.producer_consumer", services=("zaqar",), cleanup=("zaqar",))
    def producer_consumer(
        self,
        name_length: int | None = None,
        min_msg_count: int = 50,
        max_msg_count: int = 200,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Create a queue, post messages in one request, read all of them, and delete the queue.

        Their number is random, between the two bounds. Fails if not all are read.
        """
        queue = self._create(metadata)
        count = random.randint(min_msg_count, max_msg_count)  # noqa: S311 - load, not secrets
        messages = [{"body": {"id": number}, "ttl": _TTL_S} for number in range(count)]
        with ActionTimer(self, f"zaqar.post_between_{min_msg_count}_and_{max_msg_count}_messages"):
            path = f"queues/{queue}/messages"
            self.cloud.request("POST", "zaqar", path, json={"messages": messages})
        self.checked(self._read(queue) == count, f"not all of {count} messages came back")
        with ActionTimer(self, "zaqar.delete_queue"):
            self.cloud.request("DELETE", "zaqar", f"queues/{queue}")

    @action_timer("zaqar.create_queue")
    def _create(self, metadata: dict[str, Any] | None) -> str:
        name = self.new_name()
        self.cloud.request("PUT", "zaqar", f"queues/{name}", json=metadata or {})
        return name

    @action_timer("zaqar.list_messages")
    def _read(self, queue: str) -> int:
        # Zaqar hides a client's own messages from it unless asked
        params: dict[str, Any] = {"echo": "true"}
        count, before = 0, None
        while True:
            found = self.cloud.document("GET", "zaqar", f"queues/{queue}/messages", params=params)
            # a service that does not know markers gives the same page for ever
            if not found or not found["messages"] or found["messages"] == before:
                return count
            before = found["messages"]
            count += len(found["messages"])
            following = next((x["href"] for x in found["links"] if x["rel"] == "next"), "")
            if not following:
                return count
            params = {"echo": "true"} | dict(parse_qsl(urlsplit(following).query))

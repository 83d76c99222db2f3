"""The context `zaqar_queues`: queues, optionally with messages."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext

#: Messages per request; Zaqar accepts more, up to a configured size.
_AT_ONCE = 50


class ZaqarQueues(PerProjectContext):
    """Makes queues in every project, and posts messages to them.

    One queue and no message by default.
    """

    NAME: ClassVar[str] = "zaqar_queues"
    ORDER: ClassVar[int] = 420
    SERVICE: ClassVar[str] = "zaqar"
    KEY: ClassVar[str] = "zaqar_queues"
    COUNT: ClassVar[str] = "queues_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "queues_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "queues in each project; 1 by default",
            },
            "messages_per_queue": {
                "type": "integer",
                "minimum": 0,
                "description": "messages in each queue; none by default",
            },
        },
        "additionalProperties": False,
        "examples": [{"queues_per_tenant": 2, "messages_per_queue": 100}],
    }

    def setup(self) -> None:
        """Create the queues and post their messages; store the queues' names by project id."""
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create the queue `name` and post the configured number of messages; return `name`.

        With messages, a queue that exists, from an earlier attempt, is deleted and created again.
        """
        count = self.config.get("messages_per_queue", 0)
        response = cloud.request("PUT", "zaqar", f"queues/{name}", json={})
        if count and response.status_code != HTTPStatus.CREATED:
            # an earlier try has made it, and may have filled it in part
            cloud.request("DELETE", "zaqar", f"queues/{name}")
            cloud.request("PUT", "zaqar", f"queues/{name}", json={})
        for first in range(0, count, _AT_ONCE):
            numbers = range(first, min(count, first + _AT_ONCE))
            messages = [{"ttl": 3600, "body": {"id": number}} for number in numbers]
            cloud.request("POST", "zaqar", f"queues/{name}/messages", json={"messages": messages})
        return name

"""The Redis that holds the lab's traces (database 0) and Zaqar's messages (database 1)."""

from __future__ import annotations

from services.lab import Lab
from services.process import Process
from services.service import Service


class Redis(Service):
    """Redis or Valkey, all in memory."""

    name = "redis"
    ports = ("redis",)

    def processes(self, lab: Lab) -> list[Process]:
        redis = lab.traces
        return [
            Process(
                name="redis",
                command=redis.command(),
                port=redis.port,
                ready=redis.is_ours,
            )
        ]

    def url(self, lab: Lab) -> str:
        return f"redis://127.0.0.1:{lab.port('redis')}/0"

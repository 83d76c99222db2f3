"""Locust at its leanest: a user that never waits and reports one event an iteration."""

from __future__ import annotations

import locust_report  # noqa: F401 - it listens
from locust import User, constant, task


class Noop(User):
    wait_time = constant(0)

    @task
    def nothing(self):
        self.environment.events.request.fire(
            request_type="noop",
            name="noop",
            response_time=0.01,
            response_length=0,
            exception=None,
            context={},
        )

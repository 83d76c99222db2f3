"""Scenarios that do as little as there is to measure."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.edges.openstack.worker.cloud_sessions import Sessions
from osbench.edges.openstack.worker.short_way import SHORT_WAY
from osbench.plugin import atomic, scenario


class Bench(scenario.Scenario):
    """No-ops, a sleep, and a request by keystoneauth1."""

    @scenario.configure(name="Bench.noop")
    def noop(self) -> None:
        """Do nothing."""

    @scenario.configure(name="Bench.action")
    def action(self) -> None:
        """Do nothing, in an atomic action."""
        with atomic.ActionTimer(self, "nothing"):
            pass

    @scenario.configure(name="Bench.sleep")
    def sleep(self, sleep_s: float) -> None:
        """Sleep."""
        time.sleep(sleep_s)

    @scenario.configure(name="Bench.think")
    async def think_only(self, think_s: float) -> None:
        """Think, as a coroutine; it counts as service time."""
        with atomic.ActionTimer(self, "think"):
            await asyncio.sleep(think_s)


class Keystoneauth(scenario.Scenario):
    """Requests by the sessions that OpenStack scenarios use."""

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Open the deployment's sessions."""
        deployment: Deployment = context["deployment"]
        context["sessions"] = Sessions(deployment, short_way=context.get(SHORT_WAY))

    @scenario.configure(name="Bench.keystoneauth_get")
    def get(self, url: str) -> None:
        """One GET."""
        with atomic.ActionTimer(self, "get"):
            sessions: Sessions = self.context["sessions"]
            sessions.session().get(url, authenticated=False)

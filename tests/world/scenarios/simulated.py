"""Iterations of a world: each tells that it starts, takes a while, and tells that it ends."""

from __future__ import annotations

import asyncio

from osbench.plugin import scenario
from world import ports, present


class Simulated(scenario.Scenario):
    """What workloads of a world do."""

    @scenario.configure(name="Simulated.work")
    def work(self, least_s: float = 0.01, most_s: float = 0.05) -> None:
        """Take a random time."""
        known = present.world().runs[self.context["run"]].known
        ports.sleep(known.begins(self.context["iteration"]).uniform(least_s, most_s))
        known.ends(self.context["iteration"])

    @scenario.configure(name="Simulated.awaited")
    async def awaited(self, least_s: float = 0.01, most_s: float = 0.05) -> None:
        """Take a random time as a coroutine."""
        known = present.world().runs[self.context["run"]].known
        await asyncio.sleep(known.begins(self.context["iteration"]).uniform(least_s, most_s))
        known.ends(self.context["iteration"])

    @scenario.configure(name="Simulated.served")
    def served(self, service_s: float = 0.1, servers: int = 4) -> None:
        """Ask a service with some servers and a queue: its capacity is servers / service_s."""
        known = present.world().runs[self.context["run"]].known
        known.begins(self.context["iteration"])
        ports.sleep(present.world().service.served_in(service_s, servers))
        known.ends(self.context["iteration"])

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


class Lived(scenario.Scenario):
    """Iterations of users that begin and end, of whom no two have a number at once."""

    def on_start(self) -> None:
        """Take a moment, as a login does."""
        known, user = present.world().runs[self.context["run"]].known, self.user
        known.user_begins(user.number)
        known.notes.append(f"{user.number} {dict(user.data)}")
        ports.sleep(0.02)

    def on_stop(self) -> None:
        """Take a moment, then be nobody."""
        ports.sleep(0.02)
        present.world().runs[self.context["run"]].known.user_ends(self.user.number)

    @scenario.configure(name="Simulated.lived")
    def lived(self, least_s: float = 0.01, most_s: float = 0.05) -> None:
        """Take a random time."""
        known = present.world().runs[self.context["run"]].known
        ports.sleep(known.begins(self.context["iteration"]).uniform(least_s, most_s))
        known.ends(self.context["iteration"])

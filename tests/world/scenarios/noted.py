"""Plug-ins of a world that note what they do: a scenario, a context, and a hook."""

from __future__ import annotations

from typing import ClassVar

from osbench.plugin import atomic, context, hook, scenario
from world import ports, present


class Noted(scenario.Scenario):
    """Iterations whose times and outcomes depend on their numbers alone."""

    @scenario.configure(name="Noted.work")
    def work(
        self,
        name: str = "",
        row: str = "",
        slot_s: float = 0.01,
        slots: int = 3,
        fails: int = 9,
        judged: bool = False,
    ) -> None:
        """Take a slot or some, and fail each time that `fails` divides the number.

        `judged`: judges are to know of it, as of those of one workload of a run.
        """
        known, number = present.world().runs[self.context["run"]].known, self.context["iteration"]
        known.notes.append(f"{name} {number} {row}")
        if judged:
            known.begins(number)
        with atomic.ActionTimer(self, "step"):
            ports.sleep(slot_s * (1 + number % slots))
        if judged:
            known.ends(number)
        data = [["of slots", number % slots]]
        self.add_output(additive={"title": "numbers", "chart_plugin": "StatsTable", "data": data})
        if number % fails == 0:
            raise ValueError("one of some")

    @scenario.configure(name="Noted.user")
    def user_row(self) -> None:
        """Note the number of the user and its row of a data file."""
        known, user = present.world().runs[self.context["run"]].known, self.user
        known.notes.append(f"{user.number} {user.data['row']}")
        ports.sleep(0.1)


class NotedContext(context.Context):
    """Notes when it begins and ends."""

    NAME: ClassVar[str] = "noted"

    def setup(self) -> None:
        """Make something, which takes a while."""
        self._note("setup")
        self.made["noted"] = "it"
        self.keep()
        ports.sleep(0.2)

    def cleanup(self) -> None:
        """Take a while."""
        self._note("cleanup")
        ports.sleep(0.2)
        self._note("cleaned")

    def _note(self, what: str) -> None:
        present.world().runs[self.surroundings.run].known.notes.append(what)


class NotedHook(hook.Hook):
    """Notes that it was fired."""

    NAME: ClassVar[str] = "noted"

    def run(self, event: hook.Event) -> None:
        """Note it."""
        present.world().runs[event.run].known.notes.append("hook")

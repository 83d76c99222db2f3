"""Scenarios and a context whose causes are known: what binds a load of them is planted."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import context, hook, scenario


@scenario.configure(name="Planted.sleep")
class Sleep(scenario.Scenario):
    """Sleep in a thread: a service that answers late, as a client without coroutines sees it."""

    def run(self, sleep_s: float) -> None:
        """Wait and do nothing."""
        time.sleep(sleep_s)


@scenario.configure(name="Planted.compute")
class Compute(scenario.Scenario):
    """Compute: threads of one process take turns, since they share the interpreter's lock."""

    def run(self, cpu_s: float) -> None:
        """Use so much CPU of the own thread."""
        end = time.thread_time() + cpu_s
        while time.thread_time() < end:
            pass


@scenario.configure(name="Planted.keep_lock")
class KeepLock(scenario.Scenario):
    """Sleep, but keep the interpreter's lock for long within C code in one iteration."""

    def run(self, lock_s: float, at: int) -> None:
        """Call C code that takes `lock_s` seconds and gives the lock to nobody meanwhile."""
        if self.context["iteration"] != at:
            time.sleep(0.5)
            return
        count = 1_000_000
        begun = time.perf_counter()
        sum(range(count))
        sum(range(int(count * lock_s / (time.perf_counter() - begun))))


@scenario.configure(name="Planted.block_loop")
class BlockLoop(scenario.Scenario):
    """Call what blocks, in a coroutine: no other virtual user of the process runs meanwhile."""

    async def run(self, block_s: float) -> None:
        """Block the event loop."""
        time.sleep(block_s)


@scenario.configure(name="Planted.visit")
class Visit(scenario.Scenario):
    """Send a request, and block the event loop after it in some iterations, as a parser may."""

    async def run(self, block_s: float, blocking: float = 0.0, failing: float = 0.0) -> None:
        """`blocking`, `failing`: shares of iterations that block, and that get a 503."""
        number = self.context["iteration"]
        # multiples of irrational numbers: any stretch of iterations has these shares
        blocks, fails = number * 0.618034 % 1 < blocking, number * 0.754878 % 1 < failing
        try:
            await self.http.get("/fail" if fails else "/item", name="visit")
        finally:
            if blocks:
                time.sleep(block_s)


@scenario.configure(name="Planted.ask_again")
class AskAgain(scenario.Scenario):
    """Send several requests instead of one in some iterations, as a loop over items does."""

    async def run(self, share: float, requests: int) -> None:
        """`share` of the iterations sends `requests` requests."""
        many = self.context["iteration"] * 0.618034 % 1 < share
        for _ in range(requests if many else 1):
            await self.http.get("/item", name="item")


@scenario.configure(name="Planted.no_warm_up")
class NoWarmUp(scenario.Scenario):
    """Fail before the load."""

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Fail, as an import of something that is not there does."""
        raise OSError("planted: no licence")

    def run(self) -> None:
        """Never called."""


class Ask(hook.Hook):
    """Send a request: it tells the referee to answer otherwise from now on."""

    NAME: ClassVar[str] = "ask"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "string"}

    def run(self, event: hook.Event) -> None:
        """Send it."""
        with urllib.request.urlopen(self.config, timeout=60):
            pass


class File(context.Context):
    """Make a file, so that somebody can look whether it was removed."""

    NAME = "file"

    def setup(self) -> None:
        """Make the file."""
        Path(self.config["path"]).touch()

    def cleanup(self) -> None:
        """Remove the file."""
        Path(self.config["path"]).unlink()


class NoSetUp(context.Context):
    """Fail before the load of a workload."""

    NAME = "no_set_up"

    def setup(self) -> None:
        """Fail, as a cloud that is not there does."""
        raise OSError("planted: no cloud")

    def cleanup(self) -> None:
        """Undo nothing."""

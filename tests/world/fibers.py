"""Virtual time, and processes whose threads are fibers of one thread of the operating system.

A fiber runs until it waits; then the scheduler takes the next instant at which something is due,
ties in the order in which they were asked for. Whatever blocks in the product is written as it
always was. A process that is killed never runs again, wherever its fibers wait.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

S = 1_000_000_000
#: The virtual instant 0, seconds since 1970.
EPOCH_S = 1_800_000_000
#: What the monotonic clock of a host shows at the virtual instant 0, nanoseconds.
BOOTED_NS = 1000 * S
#: A wait takes at least as much longer: one that ends too early would be begun again for ever.
LATE_NS = 1000
#: Turns of fibers that a second takes at most.
TURNS_MOST = 200_000
#: For how long a thread may be put aside where it looks at the clock or takes a lock, seconds.
ASIDE_S = (0.0, 0.001, 0.05)


class Process:
    """A process: its clocks, its chance, and whether it takes steps."""

    def __init__(self, name: str, seed: int, *, rate: float = 1.0) -> None:
        """`rate`: how fast its clock runs."""
        self.name = name
        self.rate = rate
        #: The boot of its host, and what its monotonic clock showed at the virtual instant 0.
        self.boot = "host"
        self.booted_ns = BOOTED_NS
        #: How far its wall clock was set, nanoseconds.
        self.wall_ns = 0
        #: Its own, by its name: what another one draws shifts nothing here.
        self.chance = random.Random(f"{seed}/{name}")
        self.alive = True
        #: Until when it takes no step, and how long its clock has stood still.
        self.paused_until = 0
        self.stood_ns = 0
        #: Since when and until when its host reaches no server.
        self.cut_off_from = 0
        self.cut_off_until = 0

    def monotonic_ns(self, now: int) -> int:
        """What its monotonic clock shows."""
        return self.booted_ns + int((now - self.stood_ns) * self.rate)

    def time_ns(self, now: int) -> int:
        """What its wall clock shows."""
        return EPOCH_S * S + now - self.stood_ns + self.wall_ns


def _no_swap(loop: asyncio.AbstractEventLoop, task: object) -> None:
    """Python 3.11 keeps tasks by loop."""


_swap_current_task: Callable[..., Any] = getattr(asyncio.tasks, "_swap_current_task", _no_swap)


class Fiber:
    """A thread of a process."""

    def __init__(
        self, scheduler: Scheduler, process: Process, target: Callable[[], object], name: str
    ) -> None:
        self.process = process
        self.name = name
        self.ident = len(scheduler.fibers) + 1
        #: The thread object of the product, if there is one.
        self.thread: Any = None
        #: Counts its waits; a wake-up for another wait than the present one is stale.
        self.token = 0
        self.ended = False
        self.joiners: list[tuple[Fiber, int]] = []
        self._scheduler = scheduler
        self._target = target
        self.greenlet = greenlet(self._run, parent=scheduler.hub)

    def _run(self) -> None:
        try:
            self._target()
        except GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever ends a thread is a failure
            self._scheduler.failures.append((f"{self.process.name}/{self.name}", error))
        finally:
            self.ended = True
            self._scheduler.wake(self.joiners)


class Scheduler:
    """Takes the next instant, and lets its fiber run until that waits."""

    def __init__(self, seed: int) -> None:
        #: Virtual nanoseconds since the beginning.
        self.now = 0
        self.hub = getcurrent()
        self.current: Fiber | None = None
        #: Of the schedule; processes have their own.
        self.chance = random.Random(seed)
        #: How likely a thread is put aside where it looks at the clock or takes a lock.
        self.preempt = 0.0
        self.switches = 0
        self.fibers: list[Fiber] = []
        #: Fibers that ended by an exception, and what else must not happen in a world.
        self.failures: list[tuple[str, BaseException]] = []
        self.closing = False
        #: `run` returns before the next instant.
        self.stopped = False
        self._queue: list[tuple[int, int, Any, int]] = []
        self._asked = 0
        #: At how many switches it is looked whether a fiber spins, and the second of the last look.
        self._most = TURNS_MOST
        self._second = -1

    def spawn(self, process: Process, target: Callable[[], object], name: str) -> Fiber:
        """Begin a thread of a process."""
        fiber = Fiber(self, process, target, name)
        self.fibers.append(fiber)
        self._push(self.now, fiber, 0)
        return fiber

    def at(self, at_ns: int, call: Callable[[], object]) -> None:
        """Have the world itself do something at an instant; that must not wait."""
        self._push(max(at_ns, self.now), call, -1)

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Have the world itself do something later; that must not wait."""
        self.at(self.now + int(seconds * S), call)

    def wake(self, waiting: list[tuple[Fiber, int]], most: int | None = None) -> None:
        """Let fibers that wait for something go on, and take them off the list."""
        for fiber, token in waiting[:most]:
            self._push(self.now, fiber, token)
        del waiting[:most]

    def _push(self, at: int, what: Any, token: int) -> None:
        self._asked += 1
        heapq.heappush(self._queue, (at, self._asked, what, token))

    def run(self, until_ns: int) -> None:
        """Play until an instant, or until `stopped`."""
        queue, pop = self._queue, heapq.heappop
        self.stopped = False
        while queue and not self.stopped:
            entry = pop(queue)
            at, _, what, token = entry
            if at > until_ns:
                heapq.heappush(queue, entry)
                break
            if token < 0:
                self.now = max(self.now, at)
                what()
                continue
            process = what.process
            if what.ended or token != what.token or not process.alive:
                continue
            if process.paused_until > at:
                self._push(process.paused_until, what, token)
                continue
            self.now = max(self.now, at)
            what.token += 1
            self.switches += 1
            if self.switches > self._most and self._spins(what):
                break
            self.current = what
            what.greenlet.switch()
            self.current = None
        if not self.stopped:
            self.now = max(self.now, until_ns)

    def _spins(self, fiber: Fiber) -> bool:
        """Whether a second takes no end of turns: some fiber waits for no time again and again."""
        second = self.now // S
        spins = second == self._second
        if spins:
            error = AssertionError(f"{TURNS_MOST} turns within a second")
            self.failures.append((f"{fiber.process.name}/{fiber.name}", error))
        self._second, self._most = second, self.switches + TURNS_MOST
        return spins

    def wait(self, seconds: float | None) -> None:
        """Let others run until that is over, or until somebody wakes the fiber."""
        fiber = self.current
        assert fiber is not None, "the world itself must not wait"
        if self.closing:
            raise GreenletExit
        if seconds is not None:
            span = int(seconds * S / fiber.process.rate) + LATE_NS if seconds > 0 else 0
            self._push(self.now + span, fiber, fiber.token)
        # asyncio keeps the running loop by thread of the operating system and, since Python 3.14,
        # the running task, too: without a swap no other loop could run a task during the wait
        loop = asyncio._get_running_loop()
        if loop is not None:
            task = _swap_current_task(loop, None)
            asyncio._set_running_loop(None)
        self.hub.switch()
        if loop is not None:
            asyncio._set_running_loop(loop)
            _swap_current_task(loop, task)
        if self.closing:
            raise GreenletExit

    def perhaps_aside(self) -> None:
        """Put the thread aside for a moment, by chance."""
        if self.preempt and self.chance.random() < self.preempt and not self.closing:
            self.wait(self.chance.choice(ASIDE_S))

    def close(self) -> None:
        """End all fibers, so that the next world is alone."""
        self.closing = True
        for one in self.fibers:
            if not one.ended and one.greenlet:
                self.current = one
                one.greenlet.throw(GreenletExit)
        self.current = None

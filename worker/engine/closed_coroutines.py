"""Closed load on coroutines: a virtual user starts its next iteration when its last has ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from osbench.common.ports.clock import monotonic_ns
from osbench.worker.engine.coroutine_engine import CoroutineEngine, TaskUser, let_others_run
from osbench.worker.engine.engine import (
    ENDED,
    GIVEN_UP,
    LEASE_OVER,
    NEVER,
    NOT_STARTED,
    EngineSetup,
)
from osbench.worker.engine.granted_numbers import Found, GrantedNumbers, Wait


class ClosedCoroutines(GrantedNumbers, CoroutineEngine):
    """Engine of closed load on coroutines: at most `user_limit` users in one event loop.

    They run the granted numbers. Users are created, woken and removed in the loop's thread only.
    """

    def __init__(self, setup: EngineSetup) -> None:
        self._users: dict[int, TaskUser] = {}
        self._waiters: deque[tuple[TaskUser, asyncio.Future[None]]] = deque()
        #: Wakes users at the stop time.
        self._at_stop: asyncio.TimerHandle | None = None
        super().__init__(setup)

    @property
    def users(self) -> int:
        return len(self._users)

    def _fill(self) -> None:
        self._loop.call(self._start_users)

    def _notify(self) -> None:
        self._loop.call(self._wake)

    def _notify_of_work(self, count: int) -> None:
        # thousands may wait: each would look for a number, and most find none
        self._loop.call(self._wake_some, count)

    def _start_users(self) -> None:
        for number in range(self.user_limit):
            self._start(number, self._free_at(number))

    def _start(self, number: int, free_ns: int) -> None:
        if number in self._users or number >= self.user_limit or self.stopped:
            return
        user = self._users[number] = TaskUser(number, free_ns)
        self._begin(user, self._serve(user))

    def _renew(self, user: TaskUser, now: int) -> None:
        if self._users.get(user.number) is user:
            del self._users[user.number]
        self._start(user.number, now)

    async def _serve(self, user: TaskUser) -> None:
        """Run one virtual user: wait for t0, then `on_start`, iterations and `on_stop`."""
        try:
            while (wait_ns := self.t0_ns - monotonic_ns()) > 0:
                await asyncio.sleep(wait_ns / 1e9)
            await self._pause_until(user.free_ns, user)
            if not self.body.users.has_life:
                await self._work(user)
            elif await self._begin_life(user):
                await self._work(user)
                if user.number in self.living and self._users.get(user.number) is user:
                    await self._live(user, ENDED)
        finally:
            self._alive.discard(user)
            if self._users.get(user.number) is user:
                del self._users[user.number]
        # its number may have come back while it ended
        if monotonic_ns() < self.stop_ns:
            self._start(user.number, monotonic_ns())

    async def _work(self, user: TaskUser) -> None:
        due, seq, turn = user.free_ns, 0, 0
        source: Iterator[int] = iter(range(0))
        run, loop, think = self.run, self._loop, self.body.users.think
        pacing = self.pacing
        while True:
            if pacing.limits:
                turn = await self._await_turn(user, turn, due)
            iteration = next(source, 0)
            if iteration:
                if turn:
                    due, turn = max(due, turn), 0
                self._turn = user
                ended = await run(iteration, due, user)
                if ended > NOT_STARTED:
                    due = ended
                    if think is not None:
                        due += think()
                        await self._pause_until(due, user)
                    elif ended > loop.late_ns and self._turn is user:
                        await let_others_run()
                    continue
                if ended == GIVEN_UP:
                    return
                if ended == LEASE_OVER:
                    self._keep(seq, iteration)
            found = await self._more(user, due)
            if found is None:
                return
            source, seq, due = found

    async def _await_turn(self, user: TaskUser, turn: int, due: int) -> int:
        """Do the same as `ClosedEngine._await_turn`, without blocking the thread."""
        turns = self.pacing.turns(turn, due)
        while user.number < self.user_limit and not self.stopped and monotonic_ns() < self.stop_ns:
            try:
                await self._pause_until(next(turns), user)
            except StopIteration as taken:
                return int(taken.value)
        return 0

    async def _more(self, user: TaskUser, due: int) -> Found | None:
        """Do the same as `ClosedEngine._more`, without blocking the thread."""
        wait = Wait(due, self.stop_ns)
        while not self._is_over(user):
            with self._changed:
                found = self._offer(user, wait)
            if found is not None:
                return found
            waiter = self._loop.loop.create_future()
            # whoever changes something wakes the waiters in this thread, so not before this
            self._waiters.append((user, waiter))
            await waiter
        return None

    def _wake_some(self, count: int) -> None:
        """Wake up to `count` waiting users within the user limit, longest wait first.

        Users beyond the user limit wait on; if the engine is closed, they are woken as well.
        """
        outside = []
        while self._waiters and count > 0:
            user, waiter = self._waiters.popleft()
            if user.number >= self.user_limit and not self.stopped and not waiter.done():
                # the user limit has no place for it
                outside.append((user, waiter))
            elif not waiter.done():
                waiter.set_result(None)
                count -= 1
        self._waiters.extend(outside)

    def _wake(self) -> None:
        """Wake all users that wait for a number, so that they check whether to start, wait or end.

        Called in the loop's thread. Also ends the pauses of users that must end; at and after the
        stop time, of all. Before a stop time, sets a timer that calls this function then.
        """
        if self.stopped or monotonic_ns() >= self.stop_ns:
            self._wake_pausing()
        elif len(self._users) > self.places:
            self._wake_pausing(self.places)
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        if self._at_stop is not None:
            self._at_stop.cancel()
            self._at_stop = None
        left_ns = self.stop_ns - monotonic_ns()
        if self.stop_ns < NEVER and left_ns > 0:
            self._at_stop = self._loop.loop.call_later(left_ns / 1e9, self._wake)

    def _end(self) -> None:
        if self._at_stop is not None:
            self._at_stop.cancel()

"""Open load on coroutines: each arrival gets a virtual user of its process."""

from __future__ import annotations

import heapq

from osbench.common.plugin.scenario import VirtualUser
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.coroutine_engine import CoroutineEngine, TaskUser, let_others_run
from osbench.worker.engine.engine import ENDED, GIVEN_UP, LEASE_OVER
from osbench.worker.engine.granted_arrivals import Arrival, ArrivalSetup, GrantedArrivals
from osbench.worker.engine.loop.alarm import Alarm

#: Arrivals that are due together are started in portions of this much work, nanoseconds.
PORTION_NS = 1_000_000


class OpenCoroutines(GrantedArrivals, CoroutineEngine):
    """Engine of open load on coroutines: starts arrivals at due times.

    It has at most `user_limit` users. They are tasks of one event loop: created, woken and removed
    in the loop's thread only.
    """

    def __init__(self, setup: ArrivalSetup) -> None:
        #: Numbers of users that are free, below `_top`.
        self._free: list[int] = []
        self._top = 0
        self._alarm: Alarm | None = None
        #: The time of the next arrival, and how long before it the loop is awake, nanoseconds.
        self._awaited_ns = self._ahead_ns = 0
        #: When the turn of the loop that it is awake for began, monotonic nanoseconds; 0: none.
        self._awake_since_ns = 0
        #: What scenarios see of users, by position; and users that are about to begin.
        self._states: dict[int, VirtualUser] = {}
        self._beginning = 0
        super().__init__(setup)

    @property
    def users(self) -> int:
        return self._top - len(self._free)

    @property
    def _full(self) -> bool:
        return self.users >= self.user_limit

    def add(self, batch: Batch) -> None:
        super().add(batch)
        self._loop.call(self._advance)

    def _fill(self) -> None:
        """Start the first users now if users have `on_start`, `on_stop` or a row of a data file.

        All users of the limit if the task limits concurrency and there is an `on_start`, else one.
        Other users are created by arrivals as needed.
        """
        if self.body.users.has_life:
            ready = self.user_limit if self._limited and self.body.users.begins else 1
            self._loop.call(self._begin_users, ready)

    def _notify(self) -> None:
        self._loop.call(self._advance)

    # users that have to begin before their first arrival

    def _begin_users(self, count: int) -> None:
        while self._top < min(count, self.user_limit) and not self.stopped:
            self._top += 1
            self._begin_user(self._top - 1)

    def _begin_user(self, number: int) -> None:
        user = TaskUser(number, monotonic_ns())
        self._beginning += 1
        self._begin(user, self._grow(user))

    async def _grow(self, user: TaskUser) -> None:
        """Run `on_start` of a new user until it succeeds; then add the user to the free users.

        If it must end before, it is not added. Either way arrivals that are due are started then.
        """
        try:
            if await self._begin_life(user):
                assert user.state is not None
                self._states[user.number] = user.state
                heapq.heappush(self._free, user.number)
        finally:
            self._beginning -= 1
            self._alive.discard(user)
        self._advance()

    def _end_users(self) -> None:
        """Remove the free users; start `on_stop` of the `living` ones without waiting for it."""
        while self._free:
            number = heapq.heappop(self._free)
            if number in self.living:
                user = TaskUser(number, 0, self._states.get(number))
                self._begin(user, self._end_user(user))

    async def _end_user(self, user: TaskUser) -> None:
        try:
            if user.number in self.living:
                await self._live(user, ENDED)
        finally:
            self._alive.discard(user)

    def _advance(self) -> None:
        """Start the arrivals that are due, and set an alarm for the next; in the loop's thread.

        Starts none while all users are busy, or if the lease or load is over. If users must begin
        first and none is free, more users begin instead, unless some do already. After `PORTION_NS`
        of work the rest follows in the loop's next turn. Requests work if no arrival is queued. If
        the engine is closed, free users end.
        """
        end = monotonic_ns() + PORTION_NS
        while not self.stopped:
            now = monotonic_ns()
            first = self._arrivals[:1]
            if not first:
                self._ask()
                return
            # after the stop time the watchdog returns all arrivals
            if now >= self.until_ns:
                return
            due = first[0][0]
            if due > now:
                self._wait(due, now)
                return
            if self._full:
                # a user that ends takes it
                self._full_until = now
                return
            if now > end:
                self._loop.loop.call_soon(self._advance)
                return
            if self.body.users.has_life and not self._free:
                # one that has begun goes on here; the more there are, the more begin at once
                if not self._beginning:
                    self._begin_users(2 * self._top + 1)
                return
            arrival = self._take()
            if arrival is not None:
                self._start(arrival)
        if self.stopped:
            self._wake_pausing()
            if self.living:
                self._end_users()

    def _take(self) -> Arrival | None:
        arrival = self._pop()
        return None if arrival is None else self._expect(*arrival)

    def _wait(self, due: int, now: int) -> None:
        """Arrange that `_advance` runs at `due`: by an alarm, or by keeping the loop awake.

        The alarm is set for a margin before `due`; within it `_advance` runs in each turn of the
        loop. The margin is 0 if no core is idle or the budget of `PreciseSleep` is spent. Times are
        monotonic ns.
        """
        if due != self._awaited_ns:
            self._awaited_ns, self._ahead_ns = due, self._sleep.ahead_ns(now)
        if due - now > self._ahead_ns:
            self._set_alarm(due - self._ahead_ns)
        elif not self._awake_since_ns:
            self._awake_since_ns = now
            self._loop.loop.call_soon(self._stay_awake)

    def _stay_awake(self) -> None:
        begun, self._awake_since_ns = self._awake_since_ns, 0
        self._sleep.pay(monotonic_ns() - begun)
        self._advance()

    def _set_alarm(self, due: int) -> None:
        if self._alarm is None:
            self._alarm = Alarm(self._loop.loop, self._advance)
        self._alarm.set(due)

    def _start(self, arrival: Arrival) -> None:
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number = self._top
            self._top += 1
        state = self._states.get(number)
        user = TaskUser(number, arrival[0], state)
        if state is None:
            self._states[number] = self._new_state(user)
        self._begin(user, self._serve(user, arrival))

    def _renew(self, user: TaskUser, now: int) -> None:
        self._states.pop(user.number, None)
        if self.body.users.has_life:
            if not self.stopped:
                self._begin_user(user.number)
            return
        heapq.heappush(self._free, user.number)
        self._advance()

    async def _serve(self, user: TaskUser, arrival: Arrival | None) -> None:
        """Run `arrival` on `user`, then further due arrivals; then the user is free again.

        If an iteration timed out, the user does not become free: another has its number. If the
        engine is closed, runs `on_stop` before.
        """
        try:
            while arrival is not None:
                due, iteration, _ = arrival
                self._turn = user
                ended = await self.run(iteration, due, user)
                if ended == GIVEN_UP:
                    return
                if ended == LEASE_OVER:
                    self._keep(arrival)
                now = monotonic_ns()
                if self._full:
                    self._full_until = now
                if now > self._loop.late_ns and self._turn is user:
                    await let_others_run()
                arrival = self._next(user)
            if self.stopped and user.number in self.living:
                await self._live(user, ENDED)
            heapq.heappush(self._free, user.number)
        finally:
            self._alive.discard(user)
        self._advance()

    def _next(self, user: TaskUser) -> Arrival | None:
        while not self.stopped and user.number < self.user_limit:
            now = monotonic_ns()
            first = self._arrivals[:1]
            if not first or first[0][0] > now or now >= self.until_ns:
                return None
            arrival = self._take()
            if arrival is not None:
                return arrival
        return None

    def look(self, now: int) -> None:
        """Drop arrivals more than `max_lag_ns` late, with a row; measure whether a core is idle."""
        self._sleep.look(now)
        if now < self.stop_ns:
            self._drop_late(now, full=self._full)

    def _end(self) -> None:
        if self._alarm is not None:
            self._alarm.close()

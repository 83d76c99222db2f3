"""Open load on virtual users that are threads.

Leader and followers: one idle virtual user, the leader, holds the lock `_turn` and sleeps until the
next due time; then it releases the lock and runs the arrival itself. So no hand-off through a queue
delays the start.
"""

from __future__ import annotations

from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.worker.engine.engine import GIVEN_UP, LEASE_OVER
from osbench.worker.engine.granted_arrivals import Arrival, ArrivalSetup, GrantedArrivals
from osbench.worker.engine.thread_engine import ThreadEngine, ThreadUser

#: Longest sleep of the leader: an earlier arrival that is added meanwhile is noticed after it.
NAP_NS = 20_000_000
#: Sleep of the leader while there is no arrival.
REST_NS = 5_000_000
#: Idle users in addition to the leader.
SPARE = 2
#: Least time to the next arrival for the leader to start a thread before it.
THREAD_START_NS = 1_000_000


class OpenEngine(GrantedArrivals, ThreadEngine):
    """Engine of open load on threads: starts arrivals at due times, on at most `user_limit` users.

    Threads are started as arrivals need them; one idle thread waits for the next arrival.
    """

    def __init__(self, setup: ArrivalSetup) -> None:
        self._turn = threading.Lock()
        self._idle: list[None] = []
        super().__init__(setup)

    @property
    def min_users(self) -> int:
        # more are started as arrivals need them, unless each has to begin first
        ready = self.body.users.begins and self._limited
        return self.user_limit if ready else min(self.user_limit, SPARE + 1)

    def serve(self, user: ThreadUser) -> None:
        while True:
            self._idle.append(None)
            with self._turn:
                self._idle.pop()
                arrival = self._next(user)
            if arrival is None:
                return
            due, iteration, _ = arrival
            ended = self.run(iteration, due, user)
            if ended == GIVEN_UP:
                return
            if ended == LEASE_OVER:
                self._keep(arrival)
            if self._full and not self._turn.locked():
                self._full_until = monotonic_ns()

    @property
    def _full(self) -> bool:
        """Return whether all allowed users exist and all but the leader are busy.

        None waits for `_turn` then.
        """
        return not self._idle and len(self._users) >= self.user_limit

    def _next(self, user: ThreadUser) -> Arrival | None:
        """Wait for the next arrival, and take it from the queue; None if `user` must end.

        It must end if the engine is closed or it is beyond the user limit. Called with the lock
        `_turn` held. Meanwhile starts a spare user if few are idle, drops late arrivals, and
        requests work if none is queued.
        """
        arrivals = self._arrivals
        started = False
        while not self.stopped and user.number < self.user_limit:
            now = monotonic_ns()
            # after the stop time the watchdog returns all arrivals
            first = arrivals[:1]
            if not first or now >= self.until_ns:
                if now < self.stop_ns:
                    self._drop_late(now, full=False)
                self._rest()
                continue
            wait = first[0][0] - now
            # one per turn: a new user is not counted as idle yet
            if not started and self._scarce(wait):
                started = True
                self._start_spare()
                continue
            if wait > 0:
                if wait > NAP_NS:
                    time.sleep(NAP_NS / 1e9)
                    continue
                self._sleep.until(first[0][0])
            arrival = self._pop()
            if arrival is None:
                continue
            taken = self._expect(*arrival)
            if taken is not None:
                return taken
        return None

    def _scarce(self, wait_ns: int) -> bool:
        """Return whether to start a spare user before the next arrival, due in `wait_ns` ns.

        True if fewer than SPARE users are idle (wait for `_turn`), fewer than `user_limit` exist,
        and either none is idle or there is time to start a thread: more than THREAD_START_NS.
        """
        idle = len(self._idle)
        return (
            idle < SPARE
            and len(self._users) < self.user_limit
            and (not idle or wait_ns > THREAD_START_NS)
        )

    def _start_spare(self) -> None:
        number = len(self._users)
        if number in self._users:
            number = next((n for n in range(self.user_limit) if n not in self._users), number)
        self.start_user(number, monotonic_ns())

    def _rest(self) -> None:
        self._ask()
        time.sleep(REST_NS / 1e9)

    def look(self, now: int) -> None:
        """Drop arrivals more than `max_lag_ns` late, unless a user does; measure idle cores."""
        self._sleep.look(now)
        if not self._arrivals or not self._turn.acquire(blocking=False):
            return
        # the lock was free: all users are busy, or one is just about to take it
        try:
            self._drop_late(now, full=self._full)
        finally:
            self._turn.release()

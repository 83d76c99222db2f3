"""Closed load on threads: a virtual user starts its next iteration when its last has ended."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.ports import clock as time
from osbench.common.ports.clock import monotonic_ns
from osbench.worker.engine.engine import GIVEN_UP, LEASE_OVER, NOT_STARTED
from osbench.worker.engine.granted_numbers import Found, GrantedNumbers, Wait
from osbench.worker.engine.thread_engine import ThreadEngine, ThreadUser


class ClosedEngine(GrantedNumbers, ThreadEngine):
    """Engine of closed load on threads: `user_limit` users, a thread each, run granted numbers."""

    def _run_user(self, user: ThreadUser) -> None:
        super()._run_user(user)
        # its number may have come back while it ended
        if monotonic_ns() < self.stop_ns:
            self.start_user(user.number, monotonic_ns())

    def await_start(self, user: ThreadUser) -> None:
        wait_s = (self.t0_ns - monotonic_ns()) / 1e9
        if wait_s > 0:
            time.sleep(wait_s)
        self.pause_until(user.free_ns, user)

    def serve(self, user: ThreadUser) -> None:
        self.await_start(user)
        due, seq, turn = user.free_ns, 0, 0
        source: Iterator[int] = iter(range(0))
        run, think, pacing = self.run, self.body.users.think, self.pacing
        while True:
            if pacing.limits:
                turn = self._await_turn(user, turn, due)
            iteration = next(source, 0)
            if iteration:
                if turn:
                    due, turn = max(due, turn), 0
                ended = run(iteration, due, user)
                if ended > NOT_STARTED:
                    due = ended
                    if think is not None:
                        due += think()
                        self.pause_until(due, user)
                    continue
                if ended == GIVEN_UP:
                    return
                if ended == LEASE_OVER:
                    self._keep(seq, iteration)
            found = self._more(user, due)
            if found is None:
                return
            source, seq, due = found

    def _await_turn(self, user: ThreadUser, turn: int, due: int) -> int:
        """Wait until the rate limit lets `user` start an iteration; return that time, monotonic ns.

        `turn`: a time that an earlier call returned and no iteration used; 0 if none. `due`: time
        from which the user is free, monotonic ns. Returns 0 without a time if the rate limit was
        lifted, the user is beyond the user limit, or the load is over.
        """
        turns = self.pacing.turns(turn, due)
        while user.number < self.user_limit and not self.stopped and monotonic_ns() < self.stop_ns:
            try:
                self.pause_until(next(turns), user)
            except StopIteration as taken:
                return int(taken.value)
        return 0

    def _more(self, user: ThreadUser, due: int) -> Found | None:
        """Wait until `user` may start an iteration; return a shared iterator of granted numbers.

        With it come the batch of the numbers, and the time from which the user is free, monotonic
        ns; `due` is that time as known before. None if the engine is closed, or the user's number
        went to another worker. After the stop time, or while the user is beyond the user limit, it
        waits on.
        """
        wait = Wait(due, self.stop_ns)
        with self._changed:
            while not self._is_over(user):
                found = self._offer(user, wait)
                if found is not None:
                    return found
                self._changed.wait(self._left_s() if wait.until_stop else None)
        return None

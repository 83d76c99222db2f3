"""Virtual users of a load: asks the runner for its step, and sets the user limit of each worker.

A user limit is the number of virtual users that a worker may have. A closed load keeps them all
busy; an open load starts iterations at planned times, on as many of them as it needs. All
that differs between the two is here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from osbench.common.plugin.runner import Step, Totals
from osbench.common.values.intervals import Interval
from osbench.coordinator.load.dispatch.moved_users import regrant
from osbench.coordinator.load.fleet.worker import NOT_GRANTED, WorkerHandle
from osbench.coordinator.load.fleet.worker_request import ANY_NUMBER
from osbench.coordinator.load.run.workload.load_parts import LoadParts, Phase
from osbench.coordinator.results.accounting.totals import Offered

#: Seconds after the stop time within which its results arrive.
LINGER_S = 0.25
#: Seconds until other parts of the turns of `max_rate` hold: all workers know them by then.
PARTS_S = 1.0


class UserAllocation:
    """The user limits of the workers of one load.

    A subclass each is for closed, open and scripted runners.
    """

    def __init__(self, load: LoadParts) -> None:
        self._load = load
        #: Numbers of virtual users, from 1 on, that the plan needs.
        self._numbers = ANY_NUMBER
        #: The last step of the runner.
        self.step = Step()
        #: Zones of the load that had no worker when that was last noted; None before.
        self._absent: list[str] | None = None if load.plan.zones else []

    def ask(self) -> None:
        """Ask the runner for the load to be offered, and grant virtual users to workers.

        Keeps the runner's reply in `step`; also updates the stop time, the pace of workers and the
        numbers of users. Raises StorageError.
        """
        load = self._load
        workers, ledger, data = load.workers, load.results.ledger, load.plan.data
        active, elapsed_s = workers.active, load.elapsed()
        totals = Totals(
            allotted=load.dispatcher.planned,
            settled=ledger.decided,
            ended=load.results.script_end is not None,
        )
        capacity = [worker.capacity for worker in active]
        step = load.runner.step(elapsed_s, totals, capacity)
        self.step = step if data is None else data.within(step, totals)
        load.rules.apply(self.step, elapsed_s)
        others = [worker for worker in workers.present if worker not in active]
        limits = self._limits(capacity, elapsed_s)
        regrant([*active, *others], [*limits, *[0] * len(others)], self._unheard())
        self._pace(active)
        if load.phase is not Phase.PREPARING:
            self._number(active, self._most(active, capacity))

    def _split(self, users: int, capacity: Sequence[int], least: int = 0) -> list[int]:
        labels = [worker.beat.label for worker in self._load.workers.active]
        return self._load.plan.zones.split(users, labels, capacity, least)

    def _unheard(self) -> int:
        """Return the count of users that workers of an earlier coordinator may still have.

        They have not accepted this coordinator yet, and start their granted iterations for as long
        as their lease lasts.
        """
        users = self._load.results.users
        return sum(users.count(worker.mid) for worker in self._load.workers.unheard)

    def _number(self, workers: Sequence[WorkerHandle], most: Sequence[int]) -> None:
        """Assign numbers to the virtual users that each worker may have and that lack one.

        The numbers are journalled. `most`: the greatest number of users of each of `workers`, in
        order. Raises StorageError.
        """
        register = self._load.results.users
        for worker, many in zip(workers, most, strict=True):
            numbers = register.numbers_for(worker.mid, worker.user_limit, many, self._numbers)
            if numbers:
                self._decide("users", worker, numbers)
                # workers receive them with the next control record
                worker.granted = NOT_GRANTED

    def _decide(self, what: str, worker: WorkerHandle, numbers: list[Interval]) -> None:
        record = {"do": what, "workload": self._load.number, "mid": worker.mid, "numbers": numbers}
        self._load.services.port.decide([record])

    def _limits(self, capacity: Sequence[int], elapsed_s: float) -> Sequence[int]:
        """Return how many virtual users each active worker is to have, in their order.

        `capacity`: how many each can have, in the same order; `elapsed_s`: seconds after t0.
        """
        raise NotImplementedError

    def _most(self, workers: Sequence[WorkerHandle], capacity: Sequence[int]) -> Sequence[int]:
        """Return the most virtual users that each of `workers` will ever have, in their order.

        `capacity`: the most that each can have, in the same order.
        """
        raise NotImplementedError

    def _pace(self, workers: Sequence[WorkerHandle]) -> None:
        """Limit the rate of each worker's iterations if a closed load has `max_rate`.

        Does nothing here.
        """

    def note_held(self) -> None:
        """Note in the journal which zones of the load have no worker, if that has changed.

        Of a closed load also the numbers of users that are requested and that live workers have.
        """
        load = self._load
        absent = load.plan.zones.absent(worker.beat.label for worker in load.workers.active)
        if absent != self._absent and not self.step.done:
            self._absent = absent
            at_s = load.rules.within(load.elapsed())
            event = {"do": "zones", "workload": load.number, "at_s": at_s, "absent": absent}
            load.services.port.note(event)

    def skip_gap(self) -> None:
        """Drop arrivals due without a coordinator; does nothing unless the load is open."""

    @property
    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the requested load over time: (seconds after t0, virtual users or arrivals/s)."""
        return self._load.runner.asked()

    @property
    def timed(self) -> bool:
        """Return whether the runner ends the load at a time, not by a number of iterations."""
        return self.step.stop_s is not None

    @property
    def planned(self) -> int | None:
        """Number of iterations of the plan; None if something else ends the load."""
        return self._load.runner.planned

    @property
    def budget(self) -> int | None:
        """Number of iterations that the closed ledger accounts for; None for all that started."""
        return self._load.runner.planned

    @property
    def linger_s(self) -> float:
        """Seconds after the stop time in which users report their waits; 0 if no user does."""
        return 0.0

    @property
    def script_lost(self) -> bool:
        """Return whether a scripted runner's worker is gone for good; False for other runners."""
        return False

    @property
    def runs_short(self) -> bool:
        """Return whether some worker may run out of work before the next pass of the loop.

        The passes are short then.
        """
        return False

    @property
    def scant(self) -> int:
        """The number of workers if some worker has few granted iterations for each user, else 0."""
        return 0

    def offered(self, duration_s: float, cut_short: str | None) -> Offered:
        """Return the offered load next to the requested load, for the report.

        `duration_s`: seconds of load; `cut_short`: cause of an early end, or None.
        """
        raise NotImplementedError


class OpenUserAllocation(UserAllocation):
    """Grants virtual users of an open load, which run arrivals (iterations with a planned time)."""

    def _limits(self, capacity: Sequence[int], elapsed_s: float) -> Sequence[int]:
        # beyond the capacity of workers if the user wishes so
        most = self._load.specification.max_concurrency
        return self._split(most, [ANY_NUMBER] * len(capacity), 1) if most else capacity

    def _most(self, workers: Sequence[WorkerHandle], capacity: Sequence[int]) -> Sequence[int]:
        return [worker.target for worker in workers]

    def skip_gap(self) -> None:
        """Drop arrivals that were due up to now, while there was no coordinator."""
        elapsed_s = self._load.elapsed()
        while True:
            self.ask()
            self._load.dispatcher.skip(self.step, elapsed_s)
            if not self.step.arrivals or self.step.arrivals[-1] >= elapsed_s:
                return

    def offered(self, duration_s: float, cut_short: str | None) -> Offered:
        """Return the offered load next to the requested load: rates in arrivals per second."""
        dispatcher, statistics = self._load.dispatcher, self._load.results.statistics
        return Offered(
            duration_s=duration_s,
            rate_planned=dispatcher.rate_planned,
            rate_offered=statistics.rate_started,
            cut_short=cut_short,
        )


class ClosedUserAllocation(UserAllocation):
    """Grants virtual users of a closed load, which are kept busy with iterations."""

    def __init__(self, load: LoadParts) -> None:
        super().__init__(load)
        plan, workload = load.plan, load.plan.workload
        self._numbers = plan.runner.concurrency
        #: Users that start a second, and iterations of all, at most; None for no bound.
        self._start_rate: float | None = workload.users.get("start_rate")
        self._max_rate: float | None = workload.users.get("max_rate")
        #: Users of each membership by which turns of `max_rate` are parted, and the number of the
        #: turn from which this holds.
        self._paced: dict[str, int] = {}
        self._paced_from = 0
        #: Virtual users that were requested and held when that was last noted.
        self._noted: tuple[int, int] | None = None

    def _limits(self, capacity: Sequence[int], elapsed_s: float) -> Sequence[int]:
        # as far as its users start already
        asked, due, zones = self.step.users or (), self._due(elapsed_s), self._load.plan.zones
        whole = due >= sum(asked)
        limits = list(asked) if whole and not zones else self._split(min(due, sum(asked)), capacity)
        workers, register = self._load.workers, self._load.results.users
        # a number of another worker, and the last one of a worker without users, may never return
        idle = [one for one, limit in zip(workers.active, limits, strict=True) if not limit]
        returning = sum(register.count(one.mid) for one in workers.present if one.returns_numbers)
        returning -= sum(register.count(one.mid) == 1 for one in idle)
        spare = max(register.spare(self._numbers), max(self._numbers, sum(limits)) - returning)
        for place, worker in enumerate(workers.active):
            lack = max(0, limits[place] - register.count(worker.mid))
            limits[place] -= max(0, lack - spare)
            spare = max(0, spare - lack)
        return limits

    def ask(self) -> None:
        """Also frees the numbers of users that have ended to move to a worker that has joined."""
        register = self._load.results.users
        for worker in self._load.workers.present:
            if worker.numbers is not None and worker.follows:
                numbers = register.beyond(worker.mid, worker.numbers)
                if numbers:
                    self._decide("users_back", worker, numbers)
                worker.numbers = None
        super().ask()

    def _number(self, workers: Sequence[WorkerHandle], most: Sequence[int]) -> None:
        super()._number(workers, most)
        register = self._load.results.users
        for worker, many in zip(workers, most, strict=True):
            # one number stays: without any, users have the numbers of their positions
            kept = max(1, many) if max(1, many) < register.count(worker.mid) else None
            if kept != worker.numbers:
                worker.numbers = kept
                worker.generation += 1

    def _due(self, elapsed_s: float) -> int:
        """Return how many virtual users the load is to have `elapsed_s` seconds after t0.

        The lesser of the runner's request and the number that `start_rate` has let start.
        """
        users, rate = self._load.runner.users(elapsed_s), self._start_rate
        return min(users, math.floor(rate * max(0.0, elapsed_s)) + 1) if rate else users

    def _most(self, workers: Sequence[WorkerHandle], capacity: Sequence[int]) -> Sequence[int]:
        plan = self._load.plan
        in_all = self._split(plan.runner.concurrency, capacity)
        return [max(one.target, most) for one, most in zip(workers, in_all, strict=True)]

    def _pace(self, workers: Sequence[WorkerHandle]) -> None:
        """Give each worker its part of the starts that `max_rate` allows, as large as its users.

        Other parts hold from a turn on that has not come yet, so that no turn is taken twice or by
        no worker. Does nothing without `max_rate`.
        """
        rate, users = self._max_rate, {worker.mid: worker.user_limit for worker in workers}
        if not rate or not any(users.values()):
            return
        elapsed_s = self._load.elapsed()
        holds = not self._paced_from or elapsed_s * rate >= self._paced_from
        if users != self._paced and holds:
            # there are no parts before the first ones
            turn = math.ceil((elapsed_s + PARTS_S) * rate) if self._paced else 0
            self._paced_from = max(0, turn)
            self._paced = users
        ends = dict(zip(self._paced, accumulate(self._paced.values()), strict=True))
        in_all = sum(self._paced.values())
        for worker in workers:
            end = ends.get(worker.mid, 0)
            begin = end - self._paced.get(worker.mid, 0)
            worker.pace = rate
            worker.pace_part = (begin, end, in_all, self._paced_from)

    def note_held(self) -> None:
        """Also note how many users are requested and how many live workers have, after a change.

        Without further work no more users count as requested than there are; after the stop time 0
        do.
        """
        super().note_held()
        load = self._load
        elapsed_s = load.elapsed()
        held = sum(worker.user_limit for worker in load.workers.present)
        asked = 0 if load.rules.reached(elapsed_s) else self._due(elapsed_s)
        if not load.dispatcher.has_work(self.step):
            # there is nothing to do for others
            asked = min(asked, held)
        if (asked, held) != self._noted:
            self._noted = asked, held
            event = {"do": "held", "workload": load.number, "at_s": load.rules.within(elapsed_s)}
            load.services.port.note({**event, "asked": asked, "held": held})

    @property
    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the requested load over time: (seconds after t0, virtual users), in order.

        If `start_rate` alone shapes the load, a ramp from 0.
        """
        points, rate = self._load.runner.asked(), self._start_rate
        if not rate or len(points) != 1:
            return points
        users = points[0][1]
        return ((0.0, 0.0), (users / rate, users))

    @property
    def _is_loaded(self) -> bool:
        return self._load.under_load and self._load.elapsed() >= 0

    @property
    def linger_s(self) -> float:
        """Seconds after the stop time in which users report their waits; 0 if no time ends it."""
        return LINGER_S if self.timed else 0.0

    @property
    def runs_short(self) -> bool:
        """Return whether some worker may run out of work before the next pass of the loop."""
        load = self._load
        if not self._is_loaded or not load.dispatcher.has_work(self.step):
            return False
        return any(one.user_limit and not one.known for one in load.workers.takers)

    @property
    def scant(self) -> int:
        """Under load, the number of workers if one has few granted iterations per user; else 0."""
        takers = self._load.workers.takers if self._is_loaded else []
        return len(takers) if any(one.user_limit and one.scant for one in takers) else 0

    @property
    def planned(self) -> int | None:
        """Number of iterations of the plan; None if something else ends the load.

        The number of rows of a data file is not a plan.
        """
        # rows are not a plan: most often something else ends the load
        rows = self._load.plan.data is not None and self._load.runner.planned is None
        return None if rows else self.step.budget

    @property
    def budget(self) -> int | None:
        """Number of iterations that the closed ledger accounts for; None for all that started."""
        # if a time ends the load, rows that were not reached do not belong to the plan
        return self._load.runner.planned if self.timed else self.step.budget

    def offered(self, duration_s: float, cut_short: str | None) -> Offered:
        """Return the offered load next to the requested one: users, and seconds they waited."""
        load, results = self._load, self._load.results
        history, users = load.services.history, load.runner.concurrency
        if load.runner.is_search:
            # its plan only has a bound
            users = max((int(level) for _, level in load.runner.asked()), default=0)
        wanting_s = results.want_ns / 1e9 + history.missing_user_s(load.number, load.elapsed())
        asked_s = results.busy_s + wanting_s
        return Offered(
            duration_s=duration_s,
            concurrency=users,
            concurrency_held=results.busy_s / asked_s if asked_s > 0 else None,
            waited_s=wanting_s / max(1, users),
            cut_short=cut_short,
        )

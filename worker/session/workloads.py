"""The workloads of one session, one after another: each is prepared, then run by an engine."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable

from osbench.common.errors import OsbenchError, PluginError, Untrusted
from osbench.common.machine.process_memory import resident_bytes
from osbench.common.machine.redis_clock import ClockOffset
from osbench.common.plugin.scripted_runner import ScriptedLoad, ScriptedRunner, scripted_part
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.messages import Batch, Control, Specification
from osbench.common.protocol.store import Store
from osbench.common.secrets.masking import secret_values
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.asides import tell_forgotten_awaits
from osbench.worker.engine.closed_coroutines import ClosedCoroutines
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import NEVER, Engine, EngineSetup, Remains
from osbench.worker.engine.failures import message_of
from osbench.worker.engine.granted_arrivals import ArrivalSetup
from osbench.worker.engine.open_coroutines import OpenCoroutines
from osbench.worker.engine.open_engine import OpenEngine
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.preparation import Prepared
from osbench.worker.session.refusals import OTHER_SPECIFICATION
from osbench.worker.session.shipper import Shipper
from osbench.worker.session.shown_requests import ShownRequests

#: How often a specification that is not there yet is asked for, seconds.
ASK_S = 0.1
#: Two times at which a load is to stop are one if they are as close, nanoseconds: two
#: coordinators may compute it.
SAME_STOP_NS = 10**9
#: Thresholds of the garbage collector: Python's own; and for thousands of coroutines, whose objects
#: it would traverse again and again, which took half of the CPU time.
FEW_USERS = gc.get_threshold()
MANY_USERS = (100_000, 20, 100)
#: By how much a process grows before all its objects are traversed again, bytes. To traverse the
#: objects that it shares with other processes takes a copy of them, 21 to 28 MB.
TRAVERSE_BYTES = 64 << 20


class Workloads:
    """Prepares the workloads of a run, one after another, and holds the engine of the present one.

    Called under the session's lock, except `fetch`, `close` and the facts for heartbeats.
    """

    def __init__(
        self,
        *,
        run: str,
        equipment: Equipment,
        store: Store,
        shipper: Shipper,
        news: Callable[[], None],
    ) -> None:
        self._run = run
        self._equipment = equipment
        self._store = store
        self._shipper = shipper
        self._news = news
        #: Memory of the process when the garbage collector traversed all objects last, bytes; a new
        #: process has no garbage among the exempt ones.
        self._traversed_bytes = equipment.begun_bytes
        self.engine: Engine | None = None
        #: Engines of earlier workloads that still have iterations or threads.
        self._past: list[Engine] = []
        #: Batches of the workload that is not under load yet.
        self._stock: list[Batch] = []
        #: Workloads of which a runner's own code was begun.
        self._scripts: set[int] = set()
        self.preparing = -1
        self.prepared = -1
        self.problem = ""
        self.generation = 0
        self._lease_ns = 0
        self._ready: Prepared | None = None
        #: Digest of the specification that is wanted, and of the last other one; whether the one
        #: that was wanted is found.
        self._wanted = b""
        self._refused = b""
        self._found = False
        self._asked_at = float("-inf")
        self._shown = ShownRequests(equipment.log)
        self._lock = threading.Lock()

    # facts for heartbeats

    @property
    def eager(self) -> bool:
        """Return whether control records are to be read often, because they may change at any time.

        True before the load, in its ramps, and while no iteration runs or waits.
        """
        engine, ready = self.engine, self._ready
        if engine is None or ready is None or not (self.queued or self.busy):
            return True
        eager_ns = int(ready.specification.eager_s * 1e9)
        return monotonic_ns() < engine.t0_ns + eager_ns

    @property
    def user_limit(self) -> int:
        """Return the number of virtual users of the workload under load; 0 before the load."""
        return self.engine.user_limit if self.engine is not None else 0

    @property
    def surplus(self) -> int:
        """Return the number of running iterations beyond this worker's user limit.

        The limit was lowered, or the workload is over.
        """
        left = sum(len(engine.inflight) for engine in self._past)
        return left + (self.engine.surplus if self.engine is not None else 0)

    @property
    def busy(self) -> int:
        """Return the number of running iterations, also of earlier workloads."""
        return sum(len(engine.inflight) for engine in self._engines())

    @property
    def living(self) -> int:
        """Return the number of virtual users that have begun and still have to run `on_stop`."""
        return sum(len(engine.living) for engine in self._engines())

    @property
    def queued(self) -> int:
        """Return the number of iterations that were granted to this process and not started."""
        waiting = sum(map(len, self._stock.copy()))
        engine = self.engine
        return waiting + (engine.queued if engine is not None else 0)

    @property
    def unsettled(self) -> int:
        """Return the number of granted iterations, in engines, that are not in a block yet."""
        return sum(engine.unsettled for engine in self._engines())

    def longest(self) -> list[tuple[int, int, str, str]]:
        """Return the iteration that has run for longest, as a list of one; [] if none has run long.

        The entry has its number, its nanoseconds so far, the innermost open action and the present
        line of code.
        """
        found = [one for engine in self._engines() if (one := engine.longest()) is not None]
        return sorted(found, key=lambda one: -one[1])[:1]

    def stuck(self) -> list[Remains]:
        """Return the remainders of timed-out iterations that still run: threads, coroutines, calls.

        Of this run's engines only.
        """
        found = [one for engine in self._engines() for one in engine.abandoned]
        return [one for one in found if one.is_alive()]

    @property
    def awaits_start(self) -> bool:
        """Return whether the workload is prepared, and its load has no start time (t0) yet."""
        return self.engine is None and self._ready is not None

    # granted numbers

    def add(self, batch: Batch) -> None:
        """Give the iterations of a batch to the engine; before the load the batch waits.

        If another workload is under load, its iterations are returned to the coordinator.
        """
        engine, ready = self.engine, self._ready
        if engine is None:
            self._stock.append(batch)
        elif ready is None or batch.workload != self.preparing:
            self._shipper.give_back(batch.workload, batch.intervals)
        else:
            if engine.body.feed is not None:
                engine.body.feed(batch)
            engine.add(batch)

    def take_back(self, seq: int) -> None:
        """Return the unstarted iterations of batch `seq` to the coordinator, by the next block."""
        found = [batch for batch in self._stock if batch.seq == seq]
        self._stock = [batch for batch in self._stock if batch.seq != seq]
        for batch in found:
            self._shipper.give_back(batch.workload, batch.intervals)
        if self.engine is not None:
            self.engine.give_back(self.engine.take_back(seq))
            self._shipper.wake()

    def set_lease(self, until_ns: int) -> None:
        """Let nothing start at or after `until_ns`, monotonic ns; a renewed lease moves that time.

        Applies to the present engine and to the next.
        """
        self._lease_ns = until_ns
        if self.engine is not None:
            self.engine.set_lease(until_ns)

    def stop(self) -> None:
        """Start nothing more, and return unstarted iterations to the coordinator.

        Running iterations go on.
        """
        if self.engine is not None:
            self.engine.stop(monotonic_ns())
        self.return_rest()

    def return_rest(self) -> None:
        """Return waiting batches, and unstarted iterations of engines past their stop time.

        A result block returns them to the coordinator, which may grant them to another worker.
        """
        self._return_stock()
        now = monotonic_ns()
        for engine in self._engines():
            if now >= engine.stop_ns:
                engine.give_back(engine.take_back())

    def close(self) -> None:
        """Stop noting requests, and close the present engine; running iterations go on."""
        self._shown.end()
        if self.engine is not None:
            self.engine.close()

    # instructions

    def follow(self, control: Control, offset: ClockOffset, since_ns: int) -> None:
        """Apply a control record to the workload; `offset` converts Redis time.

        `since_ns`: monotonic time before which it was not written. Another workload number leaves
        the present engine; so does a stopped load that is to go on. A load starts here once the
        record has a t0 and the workload is prepared. Then stop time, rate and user limit are set.
        """
        if control.workload != self.preparing:
            self._leave()
            self._begin(control.workload)
        if self.engine is None:
            self._return_stock(but=control.workload)
        if control.workload >= 0 and not self._found:
            self._wanted = control.specification
        if self.engine is not None and _goes_on(self.engine, control):
            # an earlier coordinator had stopped the load, and this one resumes it
            self._leave()
        # t0 is only set after all workers have reported that they are prepared
        if self.engine is None and control.t0_at is not None and self._ready is not None:
            t0_ns = offset.told_ns(control.t0_at, control.told_at, since_ns)
            self._start(self._ready, control, t0_ns)
        engine = self.engine
        if engine is None:
            return
        if control.stop_s is not None:
            engine.stop(engine.t0_ns + int(control.stop_s * 1e9))
        # before there are users who would start without a limit
        engine.pacing.set_rate(control.pace, engine.t0_ns, control.pace_part)
        if control.generation != self.generation:
            engine.set_user_limit(min(control.user_limit, self._most_users), control.numbers)
            self.generation = control.generation

    def fetch(self) -> None:
        """Read the requested specification from Redis, and begin to prepare it in a thread.

        Reads at most every `ASK_S` seconds, until it is found. A specification whose digest is not
        the one in the control record counts as refused, once. Raises StoreUnreachable, StoreError.
        """
        now = time.monotonic()
        if self._found or not self._wanted or now - self._asked_at < ASK_S:
            return
        self._asked_at = now
        data = self._store.specification(self.preparing)
        if data is None:
            return
        digest = hashlib.sha256(data).digest()
        if digest != self._wanted:
            if digest != self._refused:
                self._refused = digest
                self._equipment.refusals.count(OTHER_SPECIFICATION, "a specification")
            return
        self._found = True
        threading.Thread(
            target=self._prepare, args=(self.preparing, data), name="preparation", daemon=True
        ).start()

    @property
    def _most_users(self) -> int:
        """Return how many virtual users this process can have of its prepared workload.

        The limits of threads and of coroutines differ.
        """
        ready = self._ready
        coroutines = ready is not None and ready.coroutines
        return self._equipment.user_limits.of(coroutines=coroutines)

    def _engines(self) -> list[Engine]:
        engine = self.engine
        return [*self._past, engine] if engine is not None else list(self._past)

    def _begin(self, workload: int) -> None:
        with self._lock:
            self.preparing, self.prepared, self.problem = workload, -1, ""
            self._ready = None
        self._wanted, self._found, self._asked_at = b"", False, float("-inf")

    def _prepare(self, workload: int, data: bytes) -> None:
        ready, problem = None, ""
        try:
            specification = self._specification(workload, data)
            observer = self._shown.note if specification.shown else None
            ready = self._equipment.preparation.prepare(specification, observer)
            ready.body.mask_failures(self._equipment.log.masked)
            self._shown.begin(specification.shown, ready.body.cls)
            self._traverse()
            gc.set_threshold(*(MANY_USERS if ready.body.is_coroutine else FEW_USERS))
        except OsbenchError as error:
            problem = str(error)
        except BaseException as error:  # noqa: BLE001 - a plug-in's warm-up may raise anything
            said = self._equipment.log.masked(message_of(error))
            problem = f"preparing failed: {type(error).__name__}: {said}"
        # ignored if another workload has been started meanwhile
        with self._lock:
            if workload == self.preparing:
                self._ready, self.problem = ready, problem
                self.prepared = workload
        self._news()

    def _traverse(self) -> None:
        """Exempt existing objects from garbage collection, so that it does little under load.

        Collects garbage before. Objects that were exempt before are traversed again only after
        growth by `TRAVERSE_BYTES`: their garbage is no more than that.
        """
        everything = resident_bytes() - self._traversed_bytes > TRAVERSE_BYTES
        _exempt_from_garbage_collection(everything=everything)
        if everything:
            self._traversed_bytes = resident_bytes()

    def _specification(self, workload: int, data: bytes) -> Specification:
        signed = self._equipment.signer.verify(Specification.KIND, data)
        token = signed.get("vault")
        if not isinstance(token, bytes):
            raise Untrusted("malformed specification message")
        found = Specification.parse(self._equipment.vault.decrypt(token))
        if (found.run, found.workload) != (self._run, workload):
            raise Untrusted("the specification is of another workload")
        parts = [found.args, found.context, found.deployment, found.http, found.users]
        self._equipment.log.hide(secret_values(parts))
        return found

    def _start(self, ready: Prepared, control: Control, t0_ns: int) -> None:
        specification, equipment = ready.specification, self._equipment
        page = equipment.page
        if page is not None:
            page.serve(control.workload, specification.open)
        engine: Engine
        if specification.open:
            # without max_concurrency, or beyond the capacity, the limit is this worker's capacity
            limited = not specification.max_concurrency or control.user_limit > self._most_users
            engine = (OpenCoroutines if ready.body.is_coroutine else OpenEngine)(
                ArrivalSetup(
                    body=ready.body,
                    t0_ns=t0_ns,
                    request_work=self._shipper.wake,
                    page=page,
                    max_lag_ns=int(specification.max_lag_s * 1e9),
                    at_limit=Outcome.DROPPED_CAPACITY
                    if limited
                    else Outcome.DROPPED_MAX_CONCURRENCY,
                    sleep=equipment.sleep,
                )
            )
        else:
            setup = EngineSetup(
                body=ready.body, t0_ns=t0_ns, request_work=self._shipper.wake, page=page
            )
            if ready.script is not None:
                drive = self._once(control.workload, ready.script)
                engine = scripted_part("engine")(setup, drive, specification.args)
            else:
                engine = (ClosedCoroutines if ready.body.is_coroutine else ClosedEngine)(setup)
        tell_forgotten_awaits(engine.forget)
        engine.set_lease(self._lease_ns)
        self.generation = -1
        self._shipper.serve(engine, control.workload, specification.ship_interval_s)
        self.engine = engine
        stock, self._stock = self._stock, []
        for batch in stock:
            self.add(batch)

    def _once(self, workload: int, script: ScriptedRunner) -> Callable[[ScriptedLoad], None]:
        """Return the code of a runner; once begun for a workload, a function that raises.

        A load that was stopped and is resumed is not begun again. The function raises PluginError.
        """
        if workload not in self._scripts:
            self._scripts.add(workload)
            return script.drive

        def refuse(load: ScriptedLoad) -> None:
            raise PluginError("it ended when the load was stopped, and is not begun again")

        return refuse

    def _leave(self) -> None:
        """Close the present engine, if any; return its unstarted iterations to the coordinator.

        Running iterations go on, and their results are shipped later.
        """
        if self.engine is None:
            return
        self.engine.close()
        self.engine.give_back(self.engine.take_back())
        self._past = [
            engine
            for engine in self._engines()
            if engine.unsettled
            or engine.has_users_to_end
            or any(one.is_alive() for one in engine.abandoned)
        ]
        self.engine = None

    def _return_stock(self, *, but: int = -1) -> None:
        """Return waiting batches to the coordinator, except batches of the workload `but`."""
        stock, self._stock = self._stock, []
        for batch in stock:
            if batch.workload == but:
                self._stock.append(batch)
            else:
                self._shipper.give_back(batch.workload, batch.intervals)


def _goes_on(engine: Engine, control: Control) -> bool:
    """Return whether a control record lets a load go on after its engine got a time to stop.

    True if its stop time is more than a second later, or it has none. False if the engine has no
    stop time, or the record no t0.
    """
    if engine.stop_ns >= NEVER or control.t0_at is None:
        return False
    asked_ns = NEVER if control.stop_s is None else engine.t0_ns + int(control.stop_s * 1e9)
    return asked_ns > engine.stop_ns + SAME_STOP_NS


def _exempt_from_garbage_collection(*, everything: bool) -> None:
    """Collect garbage, then exempt all remaining objects from later collections.

    `everything`: collect among objects that were exempt before, too. Modules, plug-ins and prepared
    data are some hundred thousand objects; to traverse them would stop every virtual user for tens
    of milliseconds.
    """
    if everything:
        gc.unfreeze()
    gc.collect()
    gc.freeze()

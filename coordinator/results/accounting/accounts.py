"""The state of a run that follows from its journal and its result blocks, and from nothing else.

A live run writes a decision to the journal and then applies it here, and writes blocks to disk and
then takes them here. A resumed run folds the files of its directory in the same order, and has the
same state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import DamagedRun, Untrusted
from osbench.common.protocol.messages import Block, Will
from osbench.common.values.intervals import Interval, Intervals
from osbench.common.values.outcomes import DROP_REASONS, Outcome
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.results.accounting.drill_figures import LeftFigures, LeftKind
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.ledger import BEYOND, Ledger
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.merging import groups, join
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.run_directory import RunDirectory

Ints = NDArray[np.int64]
Record = dict[str, Any]
_REASONS = {word: outcome for outcome, word in DROP_REASONS.items()}
#: Errors that a record or body may raise if this code has not written it.
_MALFORMED = (Untrusted, AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """The iterations found in a group of result blocks of one membership and workload."""

    mid: str
    workload: int
    #: Iterations that ran, and their user-seconds.
    ran: int = 0
    busy_s: float = 0.0
    #: Reason if a block could not be read; "" if all could.
    problem: str = ""


class Accounts:
    """The state of a run: its memberships, and the results of its workloads by their number.

    A membership is one stay of a worker process in the run. `apply` changes the state by a record
    of the journal, `take` by result blocks. Does no I/O except in `fold`.
    """

    def __init__(self) -> None:
        #: Counts the coordinator processes of the run.
        self.epoch = 0
        #: By id.
        self.memberships: dict[str, Membership] = {}
        #: By workload, as far as they are registered.
        self.results: dict[int, WorkloadResults] = {}
        #: When the load of a workload began, seconds since 1970, Redis time.
        self.t0_at: dict[int, float] = {}
        #: Host and boot of the coordinator that began each load, and t0 on its monotonic clock, ns.
        self.anchors: dict[int, tuple[str, int]] = {}
        #: Changes of a workload's load while it went on, oldest first.
        self.changes: defaultdict[int, list[LoadChange]] = defaultdict(list)
        #: Workloads whose ledger is closed.
        self.closed: set[int] = set()
        #: Blocks of workloads that are not registered.
        self.refused = 0
        #: Characters that workers printed and logged, and entries that were left out or cut.
        self.log_chars = 0
        self.log_cut = 0
        #: Numbers and due times by workload, member and batch, while the batch is open.
        self._dues: dict[tuple[int, str], dict[int, tuple[Ints, Ints]]] = {}
        self._appliers: dict[str, Callable[[Record], None]] = {
            "open": self._open,
            "member": self._enrol,
            "start": self._start,
            "users": self._number,
            "users_back": self._number,
            "control": self._control,
            "phase": self._phase,
            "left": self._leave,
            "cut": self._cut,
            "lost": self._lose,
            "heard": self._hear,
            "missing": self._miss,
            "again": self._again,
            "will": self._will,
            "drop": self._drop,
            "close": self._close,
        }

    def register(self, workload: int, results: WorkloadResults) -> None:
        """Count the blocks of a workload in `results` from now on.

        Sets its `t0_at` if the load has begun, and marks lost and damaged memberships in its
        ledger.
        """
        self.results[workload] = results
        results.t0_at = self.t0_at.get(workload, 0.0)
        for member in self.memberships.values():
            if member.lost:
                results.ledger.mark_lost(member.name)
            if member.damaged:
                results.ledger.damaged(member.name)

    @property
    def _ledgers(self) -> list[Ledger]:
        return [results.ledger for results in self.results.values()]

    def next_name(self, incarnation: str) -> str:
        """Return the name of a worker process's next membership in ledger and statistics.

        `incarnation` is the id of the process; its later memberships are named with "+2", "+3".
        """
        before = sum(one.incarnation == incarnation for one in self.memberships.values())
        return f"{incarnation}+{before + 1}" if before else incarnation

    # decisions that are to be written down

    def enrolment(self, mid: str, incarnation: str) -> Record:
        """Return the journal record of a new membership; nothing changes until `apply` gets it."""
        name = self.next_name(incarnation)
        return {"do": "member", "mid": mid, "incarnation": incarnation, "name": name}

    def execution(self, will: Will) -> list[Record]:
        """Return journal records that move unstarted iterations of a dead worker to the pools.

        A will is the notice that a supervisor signs for a dead worker process. One record per
        workload with such iterations, also for workloads other than the will's: the process may not
        have begun with the present one. Empty if the membership is not known or of another process.
        """
        member = self.memberships.get(will.membership)
        if member is None or member.incarnation != will.incarnation:
            return []
        found = []
        for workload, results in self.results.items():
            if workload != will.workload:
                back = results.ledger.behind(member.name, will.seq, BEYOND)
            elif will.due_ns is None:
                back = results.ledger.behind(member.name, will.seq, will.number)
            else:
                back = self._due_after(workload, member.name, will.due_ns)
            if back:
                found.append(_inheritance(will, workload, back))
        return found

    def closing(self, workload: int, budget: int | None, *, unused: bool) -> Record:
        """Return the journal record that closes a workload's ledger; nothing changes until `apply`.

        `budget`: iterations of the plan, None if a duration ended it. `unused`: numbers that were
        not started leave the plan. Raises KeyError unless the workload is registered.
        """
        return {
            "do": "close",
            "workload": workload,
            "budget": budget,
            "unused": unused,
            "allotted": self.results[workload].ledger.allotted,
        }

    def _due_after(self, workload: int, name: str, due_ns: int) -> Intervals:
        found = Intervals()
        for numbers, dues in self._dues.get((workload, name), {}).values():
            found.update(Intervals.of(numbers[dues > due_ns]))
        return self.results[workload].ledger.held(name).intersection(found)

    # decisions that are on disk

    def apply(self, record: Record) -> None:
        """Change the state by a journal record; ignore unknown kinds.

        Begin, changes and closing of an unregistered workload are kept; its other data are ignored.
        Raises KeyError, TypeError or ValueError if the record has another shape, or names a
        membership that is not known.
        """
        applier = self._appliers.get(record["do"])
        if applier is not None:
            applier(record)

    def _open(self, record: Record) -> None:
        self.epoch = max(self.epoch, int(record["epoch"]))
        for workload, results in self.results.items():
            drill = results.drill
            if drill is not None and workload not in self.closed:
                drill.break_off()

    def _enrol(self, record: Record) -> None:
        mid, incarnation, name = (str(record[field]) for field in ("mid", "incarnation", "name"))
        member = Membership(mid=mid, incarnation=incarnation, name=name)
        self.memberships.setdefault(mid, member)

    def _start(self, record: Record) -> None:
        workload, t0_at = int(record["workload"]), float(record["t0_at"])
        self.t0_at[workload] = t0_at
        # older journals have none
        self.anchors[workload] = (str(record.get("boot", "")), int(record.get("t0_ns", 0)))
        if workload in self.results:
            self.results[workload].t0_at = t0_at

    def _control(self, record: Record) -> None:
        workload, change = int(record["workload"]), LoadChange.of(record)
        self.changes[workload].append(change)
        if workload in self.results:
            self.results[workload].change(change)

    def _phase(self, record: Record) -> None:
        drill = self._drill_of(record)
        if drill is None:
            return
        if "at_s" in record:
            drill.begin(str(record["phase"]), float(record["at_s"]))
        else:
            drill.end_hook(str(record["phase"]), str(record["error"]))

    def _leave(self, record: Record) -> None:
        drill = self._drill_of(record)
        if drill is not None:
            left = LeftFigures(
                kinds=tuple(LeftKind(**one) for one in record["kinds"]),
                unlisted=dict(record["unlisted"]),
                waited_s=float(record["waited_s"]),
                problem=str(record["problem"]),
                unplaced=str(record["unplaced"]),
            )
            drill.leave(left, record["rows"])

    def _drill_of(self, record: Record) -> DrillStatistics | None:
        results = self.results.get(int(record["workload"]))
        return results.drill if results is not None else None

    def _cut(self, record: Record) -> None:
        member = self.memberships[record["mid"]]
        workload, seq = int(record["workload"]), int(record["seq"])
        member.seq = max(member.seq, seq)
        if workload not in self.results:
            return
        ledger = self.results[workload].ledger
        numbers = _intervals(record["intervals"])
        ledger.cut(member.name, seq, numbers)
        dues = np.frombuffer(record.get("dues", b""), "<i8")
        if len(dues):
            if len(dues) != len(numbers):
                raise ValueError(
                    f"expected a due time for each of {len(numbers)} arrivals, got {len(dues)}"
                )
            held = self._dues.setdefault((workload, member.name), {})
            for over in held.keys() - set(ledger.open_batches(member.name)):
                del held[over]
            held[seq] = (numbers.members(), dues)

    def _number(self, record: Record) -> None:
        results = self.results.get(int(record["workload"]))
        if results is not None:
            numbers = [(int(low), int(high)) for low, high in record["numbers"]]
            users = results.users
            (users.give if record["do"] == "users" else users.take_back)(record["mid"], numbers)

    def _lose(self, record: Record) -> None:
        member = self.memberships[record["mid"]]
        member.lost = True
        for ledger in self._ledgers:
            ledger.mark_lost(member.name)

    def _hear(self, record: Record) -> None:
        member = self.memberships[record["mid"]]
        member.lost = False
        for ledger in self._ledgers:
            ledger.heard(member.name)

    def _miss(self, record: Record) -> None:
        """Mark acknowledged blocks that are not on disk as received: no worker resends them.

        Their membership is marked as damaged in all ledgers.
        """
        member = self.memberships[record["mid"]]
        for number in record["numbers"]:
            if not member.has(int(number)):
                member.note(int(number))
        self._damage(member)

    def _damage(self, member: Membership) -> None:
        member.damaged = True
        for ledger in self._ledgers:
            ledger.damaged(member.name)

    def _again(self, record: Record) -> None:
        member = self.memberships[record["mid"]]
        for ledger in self._ledgers:
            if ledger.idempotent:
                ledger.offer_again(member.name)

    def _will(self, record: Record) -> None:
        member = self.memberships[record["mid"]]
        results = self.results.get(int(record["workload"]))
        if results is not None:
            results.ledger.give_back(member.name, _intervals(record["intervals"]))
            # its process has ended
            results.users.free(member.mid)

    def _drop(self, record: Record) -> None:
        results = self.results.get(int(record["workload"]))
        if results is not None:
            numbers = _intervals(record["numbers"])
            why = _REASONS[record.get("why", DROP_REASONS[Outcome.DROPPED_WORKER_LOST])]
            for _, end in numbers:
                results.ledger.allot_up_to(end - 1)
            results.ledger.drop(numbers, why)

    def _close(self, record: Record) -> None:
        workload = int(record["workload"])
        self.closed.add(workload)
        results = self.results.get(workload)
        if results is None:
            return
        ledger = results.ledger
        ledger.allot_up_to(int(record.get("allotted", 0)))
        if record.get("unused"):
            ledger.release_unused()
        ledger.close(record.get("budget"))

    # blocks that are on disk

    def take(self, blocks: Sequence[Block]) -> list[Arrival]:
        """Count blocks that are on disk, each once; return an `Arrival` per group of joined blocks.

        A group has one membership and workload; if it cannot be read, each block is a group. A
        block that cannot be read alone damages its membership. A block of an unregistered workload
        from 0 on is counted in `refused`. Adds the size of log entries to `log_chars`, `log_cut`.
        """
        fresh: list[Block] = []
        seen: set[tuple[str, int]] = set()
        for block in blocks:
            key = (block.membership, block.number)
            if key not in seen and not self._member_of(block).has(block.number):
                seen.add(key)
                fresh.append(block)
                self.log_chars += sum(map(_chars, block.log))
                self.log_cut += block.log_cut
        return [arrival for group in groups(fresh) for arrival in self._count(group)]

    def _member_of(self, block: Block) -> Membership:
        """Return the membership of a block; create and keep it if the journal does not know it."""
        member = self.memberships.get(block.membership)
        if member is None:
            incarnation, name = block.incarnation.partition("+")[0], block.incarnation
            member = Membership(mid=block.membership, incarnation=incarnation, name=name)
            self.memberships[block.membership] = member
        return member

    def _count(self, blocks: Sequence[Block]) -> Iterator[Arrival]:
        """Count a group of blocks of one membership and workload, and yield its `Arrival`.

        If the blocks cannot be read together, each is counted alone and has its own `Arrival`; an
        unreadable one damages the membership.
        """
        mid, workload = blocks[0].membership, blocks[0].workload
        member, results = self.memberships[mid], self.results.get(workload)
        problem, ran, busy_s = "", 0, 0.0
        if results is not None:
            try:
                ran, busy_s = results.add(join(blocks))
            except Untrusted as error:
                if len(blocks) > 1:
                    for block in blocks:
                        yield from self._count([block])
                    return
                problem = str(error)
                self._damage(member)
                results.refused += 1
        elif workload >= 0:
            self.refused += len(blocks)
        for block in blocks:
            self._note(member, block, readable=not problem)
        yield Arrival(mid=mid, workload=workload, ran=ran, busy_s=busy_s, problem=problem)

    def _note(self, member: Membership, block: Block, *, readable: bool) -> None:
        member.note(block.number)
        if block.final:
            member.final = block.number
            for results in self.results.values():
                results.users.free(member.mid)
        # most blocks say nothing of the ledgers
        if not block.voids and not member.whole:
            return
        for ledger in self._ledgers:
            if block.voids and readable:
                ledger.reject(member.name, block.voids)
            # iterations that an unreadable block reported may have run
            if member.whole and not member.damaged:
                ledger.consent(member.name)

    # blocks that are on disk

    def fold(
        self, directory: RunDirectory, seen: Callable[[Record], None] = lambda record: None
    ) -> None:
        """Apply all records and take all blocks of a run directory, in the order of the live run.

        `seen` is called with each record after it was applied. Raises DamagedRun if a record or
        block is damaged.
        """
        for entry in directory.replay():
            try:
                if entry.record is not None:
                    self.apply(entry.record)
                    seen(entry.record)
                self.take([Block.parse(_with_text_keys(body)) for body in entry.bodies])
            except _MALFORMED as error:
                reason = f"{type(error).__name__}: {error}"
                raise DamagedRun(f"{entry.place} cannot be read: {reason}") from None


def _chars(entry: Sequence[Any]) -> int:
    return sum(len(part) for part in entry if isinstance(part, str))


def _inheritance(will: Will, workload: int, back: Intervals) -> Record:
    return {
        "do": "will",
        "mid": will.membership,
        "workload": workload,
        "seq": will.seq,
        "number": will.number,
        "due_ns": will.due_ns,
        "intervals": list(back),
    }


def _with_text_keys(body: Mapping[Any, Any]) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in body):
        raise ValueError("a field without a name")
    return dict(body)


def _intervals(pairs: Iterable[Sequence[Any]]) -> Intervals:
    """Return pairs as intervals. Raises ValueError, TypeError for any without 0 < low <= high."""
    found: list[Interval] = []
    for low, high in pairs:
        if not 0 < int(low) <= int(high):
            raise ValueError(f"expected a range of numbers from 1, got {low} to {high}")
        found.append((int(low), int(high)))
    return Intervals(found)

"""Events of a run, folded from its journal, for reports and checkpoints.

A live run passes each record on when it is written; a resumed run folds the records in its
directory first. Accounts have the rest of the journal. A record without these fields is of an
older release, or of a worker that had said that it leaves: it is in the accounts alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from osbench.common.plugin.hook import Event
from osbench.coordinator.formatting import count
from osbench.coordinator.load.fleet.zones import zone_title
from osbench.coordinator.load.transport.outages import Outage
from osbench.coordinator.plugins.hooks.executor import FAILED, KEPT, Error, Result
from osbench.coordinator.results.accounting.marks import JOIN, LOSS, STOP, Mark

Record = Mapping[str, Any]

_STOPPED = {
    "interrupted": ("stopped", "The user stopped the load."),
    "sla": ("SLA failed", "The load was stopped because an SLA criterion failed."),
    "abort": ("aborted", "The load was stopped by the rule of the workload's key `abort`."),
    "no_users": ("no users", "The load was ended because no virtual user could begin."),
    "runner_failed": ("runner failed", "The load was ended because the runner's own code failed."),
    "runner_lost": (
        "runner lost",
        "The load was ended because the worker of the runner's own code was lost or left.",
    ),
}


@dataclass(slots=True)
class HookHistory:
    """Firings of one hook of a workload, folded from the journal: running, ended, and counted."""

    #: The last value for which its trigger was evaluated; -1 for none.
    seen: int = -1
    #: Events that were fired and have no result.
    running: list[Event] = field(default_factory=list)
    #: The first results, at most `KEPT`, and all of them by status.
    results: list[Result] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def fire(self, record: Record) -> None:
        """Add an event to `running` for each firing in a record; update `seen`.

        The record is journalled just before the actions begin.
        """
        self.seen = record["seen"]
        self.running += [Event(unit=record["unit"], value=value) for value in record["values"]]

    def end(self, record: Record) -> None:
        """Add the result in a record to the kept results, and remove its event from `running`.

        The result is of one action, or of `times` firings that could not begin: `counts` grows by
        `times`. Only the first `KEPT` results are kept.
        """
        result = Result.of(json.loads(record["result"]))
        value = result.event.value
        self.running = [event for event in self.running if event.value != value]
        self._keep(result, record["times"])

    def break_off(self) -> None:
        """Count all running actions as failed: the coordinator that ran them is gone."""
        error = Error(etype="CoordinatorGone", msg="the coordinator was killed during the action")
        for event in self.running:
            self._keep(Result(status=FAILED, event=event, error=error), 1)
        self.running.clear()

    def _keep(self, result: Result, times: int) -> None:
        self.counts[result.status] += times
        if len(self.results) < KEPT:
            self.results.append(result)


@dataclass(slots=True)
class _LoadHistory:
    """Events of one workload; times are seconds after its t0."""

    marks: list[Mark] = field(default_factory=list)
    hooks: dict[int, HookHistory] = field(default_factory=dict)
    closed: bool = False
    #: Iterations of the plan when the ledger was closed; None if only a time ended the load.
    planned: int | None = None
    #: Cause and time if the load was stopped; "" if it was not.
    stop: tuple[str, float] = ("", 0.0)
    #: Virtual users that are requested, and held, since a time.
    asked: int = 0
    held: int = 0
    since_s: float = 0.0
    #: When users were last requested.
    asked_until_s: float = 0.0
    #: User-seconds in which no worker held the requested users.
    missing_s: float = 0.0
    #: Times (from, to) in which a zone had no worker, by zone; infinity while it has none.
    zones: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def lose(self, record: Record) -> str:
        """Count the users of a lost worker as missing while it was silent; return a message.

        The record has the worker, its users and its silence. Also adds a mark to the charts.
        Returns "" and does nothing if the load is closed.
        """
        if self.closed:
            return ""
        at_s = float(record["at_s"])
        silent_from_s = max(0.0, at_s - record["silent_s"])
        until_s = at_s if self.asked else min(at_s, self.asked_until_s)
        self.missing_s += record["users"] * max(0.0, until_s - silent_from_s)
        sentence = f"worker {_place(record)} fell silent before the load"
        if at_s >= 0:
            sentence = (
                f"worker {_place(record)} fell silent {silent_from_s:.0f} s into the load "
                f"and was declared lost {at_s - silent_from_s:.0f} s later"
            )
        text = f"{sentence[0].upper()}{sentence[1:]}."
        self.marks.append(_mark(LOSS, at_s, f"{_name(record)} lost", text, silent_from_s))
        return sentence

    def join(self, record: Record) -> None:
        """Add a mark to the charts: a worker joined the load, or replaces a lost one."""
        instead = "took the place of a worker that was lost or left"
        done = "joined the load" if record.get("more") else instead
        text = f"Worker {_place(record)} {done}."
        self.marks.append(_mark(JOIN, float(record["at_s"]), f"{_name(record)} joins", text))

    def hold(self, record: Record) -> None:
        """Set the numbers of users that are requested and that workers have.

        Adds the users that were missing until then to `missing_s`, in user-seconds.
        """
        at_s = float(record["at_s"])
        self.missing_s = self.missing_until(at_s)
        if self.asked and not record["asked"]:
            self.asked_until_s = at_s
        self.asked, self.held, self.since_s = record["asked"], record["held"], at_s

    def missing_until(self, at_s: float) -> float:
        """Return the user-seconds in which requested users were missing, up to `at_s` s after t0.

        After the close of the load the sum is final.
        """
        if self.closed:
            return self.missing_s
        lasted_s = max(0.0, at_s - max(0.0, self.since_s))
        return self.missing_s + lasted_s * max(0, self.asked - self.held)

    def miss_zones(self, record: Record) -> None:
        """Set the zones that have no worker now."""
        at_s = max(0.0, float(record["at_s"]))
        for zone, spans in self.zones.items():
            if zone not in record["absent"]:
                spans[-1] = (spans[-1][0], min(spans[-1][1], at_s))
        for zone in record["absent"]:
            spans = self.zones.setdefault(zone, [])
            if not spans or spans[-1][1] < math.inf:
                spans.append((at_s, math.inf))

    def zone_losses(self) -> Iterator[str]:
        """Yield a message on each zone that had no worker for some time of the load."""
        for zone, spans in self.zones.items():
            times = [
                f"from {from_s:.0f} s " + ("on" if to_s == math.inf else f"to {to_s:.0f} s")
                for from_s, to_s in spans
            ]
            yield (
                f"{zone_title(zone)} had no worker {' and '.join(times)}: other zones, if any had "
                "workers, made its share of the load"
            )

    def zone_marks(self) -> Iterator[Mark]:
        """Yield a mark for each time in which a zone had no worker."""
        for zone, spans in self.zones.items():
            for from_s, to_s in spans:
                name, until_s = zone_title(zone), from_s if to_s == math.inf else to_s
                text = f"{name[0].upper()}{name[1:]} had no worker."
                yield _mark(LOSS, until_s, f"{name} lost", text, from_s)

    def halt(self, record: Record) -> None:
        """Note cause and time of a stop before the planned end of the load; the latest counts."""
        self.stop = record["why"], float(record["at_s"])

    def close(self, record: Record) -> None:
        """Note that the ledger (accounting of iterations) is closed: no more users are missing.

        Also notes the planned number of iterations, None if a time ended the load.
        """
        self.missing_s = self.missing_until(float(record.get("at_s", self.since_s)))
        self.closed, self.planned = True, record.get("planned")

    def go_on(self) -> None:
        """Forget a stop, unless the load is closed: another coordinator goes on with the load.

        Running hooks count as failed.
        """
        if not self.closed:
            self.stop = "", 0.0
        for hook in self.hooks.values():
            hook.break_off()


_OF_A_LOAD = {
    "joined": _LoadHistory.join,
    "held": _LoadHistory.hold,
    "zones": _LoadHistory.miss_zones,
    "stop": _LoadHistory.halt,
    "close": _LoadHistory.close,
}
_OF_A_HOOK = {"hook": HookHistory.fire, "fired": HookHistory.end}


class RunHistory:
    """Events of all workloads of a run, folded from records of its journal."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """`names`: names of the workloads by number, for messages."""
        self._names = names
        self._loads = {number: _LoadHistory() for number in names}
        self._outages: dict[Outage, Outage] = {}
        self._blocks_lost = 0
        #: By server, or "blocks".
        self._losses: dict[object, str] = {}

    def apply(self, record: Record) -> None:
        """Apply a record of the journal; ignore other kinds, and records of unknown workloads.

        A record `open`, of another coordinator, makes running hooks fail. Raises KeyError,
        TypeError or ValueError if the record has another shape.
        """
        kind, number = record["do"], record.get("workload", -1)
        load = self._loads.get(number)
        if kind == "open":
            for one in self._loads.values():
                one.go_on()
        elif kind == "outage":
            self._miss_server(record)
        elif kind == "missing":
            self._miss_blocks(record)
        elif load is None:
            return
        elif kind == "lost":
            if sentence := load.lose(record):
                self._losses[len(self._losses), number] = f"{self._names[number]}: {sentence}"
        elif kind in _OF_A_HOOK:
            _OF_A_HOOK[kind](load.hooks.setdefault(record["hook"], HookHistory()), record)
        elif kind in _OF_A_LOAD:
            _OF_A_LOAD[kind](load, record)

    def _miss_server(self, record: Record) -> None:
        """Count an outage of a server; one message on all its outages so far becomes the newest."""
        server = Outage(str(record["server"]), bool(record["is_broker"]))
        before = self._outages.get(server, server)
        every = self._outages[server] = before.again(float(record["lasted_s"]))
        self._losses.pop(server, None)
        self._losses[server] = str(every)

    def _miss_blocks(self, record: Record) -> None:
        """Count result blocks that the coordinator's disk has lost; replace the message on them."""
        self._blocks_lost += len(record["numbers"])
        self._losses.pop("blocks", None)
        self._losses["blocks"] = (
            f"the disk of the coordinator has lost {count(self._blocks_lost, 'result block')} that "
            "it had acknowledged: the iterations in them count as lost"
        )

    def losses(self) -> tuple[str, ...]:
        """Return messages on lost workers, unreachable servers and lost blocks, newest last.

        One for each loss of a worker, one per server, one for all blocks. Then messages on zones
        without workers.
        """
        zones = (
            f"{self._names[number]}: {one}"
            for number, load in self._loads.items()
            for one in load.zone_losses()
        )
        return (*self._losses.values(), *zones)

    def marks(self, number: int, started: int) -> tuple[Mark, ...]:
        """Return the marks of workload `number`: workers lost and joined, a stop if `cut_short`.

        `started`: the number of iterations that have started, by which `cut_short` judges.
        """
        load = self._loads[number]
        cause = self.cut_short(number, started)
        marks = (*load.marks, *load.zone_marks())
        if cause is None:
            return marks
        return (*marks, _mark(STOP, load.stop[1], *_STOPPED[cause]))

    def cut_short(self, number: int, started: int) -> str | None:
        """Return the cause if the load of workload `number` was stopped before its end, else None.

        Causes are "interrupted", "sla", "abort", "no_users", "runner_failed" and "runner_lost".
        None also if all planned iterations are among the `started`: then the stop came after the
        last start.
        """
        load = self._loads[number]
        complete = load.planned is not None and started >= load.planned
        return None if complete else load.stop[0] or None

    def missing_user_s(self, number: int, elapsed_s: float) -> float:
        """Return the user-seconds, until `elapsed_s`, in which a workload lacked requested users.

        `elapsed_s`: seconds after t0. Used for closed loads, whose requested users are noted.
        """
        return self._loads[number].missing_until(elapsed_s)

    def hook_results(self, number: int, hook: int) -> HookHistory:
        """Return the history of a hook of workload `number`; empty if it has not fired.

        `hook` is its index in the task. Later records change the returned object.
        """
        return self._loads[number].hooks.setdefault(hook, HookHistory())


def _mark(kind: str, at_s: float, label: str, text: str, from_s: float = math.inf) -> Mark:
    return Mark(kind=kind, from_s=min(from_s, at_s), to_s=at_s, label=label, text=text)


def _place(record: Record) -> str:
    return f"{record['host']}:{record['pid']}"


def _name(record: Record) -> str:
    return str(record["label"] or record["host"])

"""One round: an arena under its schedule, to the end of all runs, judged."""

from __future__ import annotations

import contextlib
import heapq
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from chaos import contexts
from chaos.faults import FAULTS, FILLER, Skipped
from chaos.schedule import Fault, RunShape, Schedule
from helpers.arena import PATIENCE_S, Arena, Load, arena, wait_until
from helpers.judge import STATES
from osbench.coordinator.results.storage.run_listing import FINISHED, RESUMABLE

#: What a round adds up, over its runs.
SUMS = (
    *("planned", *STATES, "not begun", "reruns"),
    *("unaccounted", "counted twice", "started twice", "resumed"),
)
#: How often a run that can be resumed is, before that counts as a violation.
_RESUMES = 4
#: Size of the file system of run directories that can be full.
_DISK = "size=8m"


@dataclass(kw_only=True)
class Outcome:
    """What came of a round."""

    schedule: Schedule
    violations: list[str] = field(default_factory=list)
    #: `SUMS`; the first ones are those of `accounting`.
    sums: Counter[str] = field(default_factory=Counter)
    codes: list[int] = field(default_factory=list)
    #: Faults that this machine cannot do, and why.
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """All but the schedule, for JSON."""
        return {name: value for name, value in vars(self).items() if name != "schedule"}

    @classmethod
    def from_dict(cls, schedule: Schedule, found: dict[str, Any]) -> Outcome:
        """The opposite of `to_dict`."""
        return cls(schedule=schedule, **{**found, "sums": Counter(found["sums"])})

    def __str__(self) -> str:
        sums = " ".join(f"{name} {self.sums[name]}" for name in SUMS)
        skipped = "".join(f"; skipped {one}" for one in self.skipped)
        verdict = "; ".join(self.violations) or "fits"
        codes = ",".join(map(str, self.codes))
        return f"{sums}; codes {codes}; {self.seconds:.0f} s{skipped}: {verdict}"


def play(schedule: Schedule, keep: Path) -> Outcome:
    """Play a round. Its files go to `keep` where something does not fit."""
    begun = time.monotonic()
    outcome = Outcome(schedule=schedule)
    with arena(rabbitmq=schedule.has_rabbitmq) as found, _disk(found, schedule):
        try:
            _Round(found, schedule, outcome).play()
        except (AssertionError, OSError, subprocess.SubprocessError, redis.RedisError) as error:
            outcome.violations.append(f"{type(error).__name__}: {str(error)[-3000:]}")
        if outcome.violations:
            _keep(found, outcome, keep)
    outcome.seconds = time.monotonic() - begun
    return outcome


class _Round:
    """The course of a round."""

    def __init__(self, found: Arena, schedule: Schedule, outcome: Outcome) -> None:
        self._arena = found
        self._schedule = schedule
        self._outcome = outcome
        #: Instant, number that decides among equal ones, fault.
        self._due: list[tuple[float, int, Iterator[float]]] = []
        self._count = 0

    def play(self) -> None:
        """Start all, let the faults happen, wait for the end, judge."""
        self._arena.start_hosts(self._schedule.hosts)
        begun = time.monotonic()
        for at, shape in enumerate(self._schedule.runs):
            self._start(shape, f"run-{at}")
        early = [fault for fault in self._schedule.faults if fault.is_early]
        for fault in early:
            self._plan(fault, begun)
        self._go_on(until=lambda: self._is_loaded(begun))
        loaded = time.monotonic()
        for fault in self._schedule.faults:
            if not fault.is_early:
                self._plan(fault, loaded)
        self._go_on(until=lambda: not self._due)
        self._calm()
        for load in self._arena.loads:
            self._end(load)
        if not wait_until(self._arena.are_free, PATIENCE_S):
            self._outcome.violations.append("workers are not free after the end")
        if any(fault.kind.startswith("attack") for fault in self._schedule.faults):
            self._arena.attacker.replay_all()
            time.sleep(2.0)
        for load, shape in zip(self._arena.loads, self._schedule.runs, strict=True):
            self._judge(load, shape)
        self._outcome.violations += self._arena.said_wrong()

    def _is_loaded(self, begun: float) -> bool:
        """Something has reached the server, or nothing will: all runs have ended, or hang."""
        idle = not self._due and not any(load.is_running for load in self._arena.loads)
        return bool(self._arena.log.size) or idle or time.monotonic() > begun + PATIENCE_S

    def _start(self, shape: RunShape, name: str) -> None:
        tags = [f"{name}-{at}" for at in range(len(shape.loads))]
        subtasks: list[dict[str, Any]] = []
        for tag, plan in zip(tags, shape.loads, strict=True):
            workload = self._arena.requests(plan.runner, tag, plan.answer_ms)
            context = contexts.asked(self._arena, tag) if shape.has_context else {}
            subtasks.append({**workload, "idempotent": shape.is_idempotent, **context})
        if shape.is_parallel:
            subtasks = [{"title": name, "run_in_parallel": True, "workloads": subtasks}]
        arguments = ["--wait-for-workers", "60"]
        if shape.workers:
            arguments += ["--workers", str(shape.workers)]
        if shape.has_context:
            arguments += ["--plugin-path", str(contexts.plugin(self._arena))]
        self._arena.start_run(subtasks, *arguments, tags=tags, idempotent=shape.is_idempotent)

    def _plan(self, fault: Fault, origin: float) -> None:
        happens = FAULTS[fault.kind](self._arena, fault)
        heapq.heappush(self._due, (origin + fault.at_s, self._next(), happens))

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _go_on(self, until: Any) -> None:
        while not until():
            if self._due and self._due[0][0] <= time.monotonic():
                _, _, happens = heapq.heappop(self._due)
                self._step(happens)
            else:
                time.sleep(0.01)

    def _step(self, happens: Iterator[float]) -> None:
        try:
            lasts_s = next(happens)
        except StopIteration:
            return
        except Skipped as why:
            self._outcome.skipped.append(str(why))
            return
        except (redis.RedisError, subprocess.SubprocessError):
            # another fault has taken the server away: this one has no effect
            return
        heapq.heappush(self._due, (time.monotonic() + lasts_s, self._next(), happens))

    def _calm(self) -> None:
        self._arena.heal()
        redis_server = self._arena.fragile
        if not redis_server.is_answering():
            redis_server.begin_again()
        redis_server.free()
        if self._arena.rabbitmq is not None:
            self._arena.rabbitmq.calm()
        if not any(host.is_up for host in self._arena.hosts):
            self._arena.start_host()

    def _end(self, load: Load) -> None:
        """Wait for the end of a run, and resume it for as long as it can be."""
        for _ in range(_RESUMES):
            self._arena.finish(load)
            if self._arena.state(load) != RESUMABLE:
                break
            load.codes.pop()
            self._arena.resume(load)
        else:
            self._arena.finish(load)
            said = load.command.said()[-500:]
            self._outcome.violations.append(f"{load.run} can still be resumed: {said}")
        self._outcome.codes.append(load.codes[-1])

    def _judge(self, load: Load, shape: RunShape) -> None:
        self._outcome.sums["resumed"] += len(load.codes) > 1
        self._outcome.violations += contexts.violations(self._arena, load)
        if self._arena.state(load) != FINISHED:
            self._judge_unreported(load, shape)
            return
        sums, found = self._arena.judged(load)
        self._outcome.sums.update({name: sums[name] for name in SUMS if name in sums})
        self._outcome.violations += [f"{load.run}: {one}" for one in found]
        begun = sums.get("planned", 0)
        if len(self._arena.begun(load)) == len(load.tags):
            if begun != shape.times:
                self._outcome.violations.append(f"{load.run}: {begun} planned of {shape.times}")
        else:
            self._outcome.sums["not begun"] += shape.times - begun
            if load.codes[-1] == 0:
                self._outcome.violations.append(f"{load.run}: exit code 0, not all was begun")
        names = ("dropped", "lost", "not_started")
        missing = {name: sums[name] for name in names if sums.get(name)}
        if self._schedule.is_gentle and missing:
            self._outcome.violations.append(f"{load.run}: needlessly missing: {missing}")

    def _judge_unreported(self, load: Load, shape: RunShape) -> None:
        """A run may have no report where it was interrupted, or its disk full, before any load."""
        self._outcome.sums["not begun"] += shape.times
        ended = load.is_interrupted or self._arena.had_no_room(load)
        if not ended or load.codes[-1] == 0 or self._arena.log.seen(load.run):
            said = load.command.said()[-500:]
            self._outcome.violations.append(f"{load.run} has no report: {said}")


@contextlib.contextmanager
def _disk(found: Arena, schedule: Schedule) -> Iterator[None]:
    """A small file system for run directories where it is to be full and can be mounted."""
    folder = found.site.data / "runs"
    wanted = any(fault.kind == "disk-full" for fault in schedule.faults) and os.geteuid() == 0
    if wanted:
        folder.mkdir(mode=0o700)
        command = ["mount", "-t", "tmpfs", "-o", _DISK, "tmpfs", str(folder)]
        wanted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield
    finally:
        if wanted:
            # a process that still writes must not keep the folder
            subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)


def _keep(found: Arena, outcome: Outcome, keep: Path) -> None:
    """Keep homes, Redis's files, the server's log, and what was decided."""
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    (found.site.data / "runs" / FILLER).unlink(missing_ok=True)
    for name, folder in (("home", found.site.home), ("redis", found.log.folder)):
        ignored = shutil.ignore_patterns("*.sock", "copy-*", "replica-*", "tmp")
        with contextlib.suppress(shutil.Error):
            shutil.copytree(folder, keep / name, ignore=ignored, symlinks=True)
    (keep / "outcome.txt").write_text(f"{outcome.schedule}\n{outcome}\n", "utf-8")

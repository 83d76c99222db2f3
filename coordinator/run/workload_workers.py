"""The workers of one workload: who has prepared, who fell silent, who takes a place."""

from __future__ import annotations

import logging

from osbench.common.errors import FleetError
from osbench.common.protocol.messages import Specification
from osbench.coordinator.dispatch.dispatcher import Dispatch
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.run.state import RunState

LOG = logging.getLogger(__name__)


class Crew:
    """Those of the run's workers that serve one workload."""

    def __init__(self, state: RunState, specification: Specification, dispatch: Dispatch) -> None:
        self._state = state
        self._spec = specification
        self._number = specification.workload
        self._dispatch = dispatch
        #: Workers it began with.
        self._size = len(self.members)
        self._spans_before: dict[str, tuple[int, int]] = {}
        self._spans_after: dict[str, list[int]] = {}

    @property
    def members(self) -> list[Member]:
        """All that were not given up."""
        members = self._state.fleet.members.values()
        return [m for m in members if m.workload == self._number and not m.fenced]

    @property
    def active(self) -> list[Member]:
        """Those that can have users."""
        return [m for m in self.members if m.active and m.ready]

    @property
    def takers(self) -> list[Member]:
        """Those that can be given work; the users of one that is being given up still count."""
        return [m for m in self.active if not m.doomed]

    @property
    def served(self) -> frozenset[str]:
        """The worker processes that took part."""
        return frozenset(self._spans_before)

    # before the load

    def begin(self) -> None:
        """Have the workers prepare the workload."""
        members = self.members
        for member in members:
            member.begin(self._number)
            written, dropped, *_ = member.beat.spans
            self._spans_before[member.incarnation] = (written, dropped)
        self._state.controls.change(
            members,
            workload=self._number,
            t0_at=None,
            share=0,
            generation=0,
            stop_s=None,
        )

    @property
    def ready(self) -> bool:
        """All workers have prepared."""
        return all(member.ready for member in self.members)

    def delay(self) -> str:
        """What is still to be prepared, for a message."""
        slow = [member.beat.host for member in self.members if not member.ready]
        return f"{self._spec.scenario} was not prepared on {', '.join(slow)}"

    def welcome(self, *, strict: bool) -> None:
        """Members that have prepared become ready.

        One that cannot is not used, or, where that is `strict`, refused: raises FleetError.
        """
        for member in self.members:
            beat = member.beat
            if member.ready or member.unfit or beat.run != self._state.channel.run_id:
                continue
            if beat.prepared != self._number:
                continue
            if beat.problem:
                text = f"worker {beat.host} (pid {beat.pid}): {beat.problem}"
                if strict:
                    raise FleetError(text)
                LOG.warning("%s; it is not used", text)
                member.unfit = True
                continue
            member.ready = True

    # workers that die

    def notice_silence(self) -> None:
        """Give up who was silent for long or cannot be understood."""
        for member in self.members:
            if member.garbled or member.silence_s >= self._state.lost_after_s:
                self._state.reader.give_up(member)

    def replace_lost(self) -> None:
        """Take free workers in place of those that died or left."""
        lack = self._size - len([m for m in self.members if not m.leaving])
        if lack <= 0 or self._state.interruption.level:
            return
        for member in self._state.fleet.adopt(lack):
            LOG.warning("worker %s takes the place of one that is gone", member.incarnation)
            member.begin(self._number)
            self._spans_before[member.incarnation] = (0, 0)
            self._state.controls.change([member], workload=self._number, t0_at=None)

    def bury(self) -> None:
        """Take away what given-up workers had; tried again where Redis is away."""
        buried = self._state.reader.buried
        for member in [one for one in buried if one.workload == self._number]:
            self._dispatch.take_away(member.incarnation)
            self._state.fleet.forget(member.incarnation)
            self._state.controls.change([member], fenced=True)
            buried.remove(member)

    # spans

    def freeze_spans(self) -> None:
        """Another workload begins: spans written from now on are counted for it."""
        for name in self._spans_before:
            self._spans_after.setdefault(name, self._state.fleet.members[name].beat.spans)

    def spans(self) -> tuple[int, int]:
        """Spans written and dropped for this workload."""
        written = dropped = 0
        for name, (written_before, dropped_before) in self._spans_before.items():
            beat = self._state.fleet.members[name].beat
            after = self._spans_after.get(name, beat.spans)
            written += after[0] - written_before
            dropped += after[1] - dropped_before
        return written, dropped

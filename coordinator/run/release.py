"""How a run parts with its workers: spans written out, marks taken off, its keys removed."""

from __future__ import annotations

import contextlib
import logging
import time

from osbench.common.errors import OsbenchError
from osbench.coordinator.run.state import RunState

LOG = logging.getLogger(__name__)

#: Longest wait for workers to write out their spans, and to leave, seconds.
FAREWELL_S = 3.0
#: Between two looks at them, seconds.
LOOK_S = 0.05


def await_spans(state: RunState) -> None:
    """Let workers write out their spans, so that the report can count them."""
    members = [m for m in state.fleet.members.values() if not m.fenced]
    deadline = time.monotonic() + FAREWELL_S
    # heartbeats that were sent under load, and not read yet, know nothing of its end
    with contextlib.suppress(OsbenchError):
        state.fleet.poll()
    marks = {member: member.beat.beat for member in members}
    while time.monotonic() < deadline and not state.interruption.level >= 2:
        with contextlib.suppress(OsbenchError):
            state.fleet.poll()
        if all(m.beat.beat > marks[m] and not m.beat.spans[2] for m in members):
            return
        time.sleep(LOOK_S)


def release(state: RunState) -> None:
    """Free the workers and remove the run's keys."""
    members = list(state.fleet.members.values())
    try:
        state.controls.change(members, released=True)
        deadline = time.monotonic() + FAREWELL_S
        while time.monotonic() < deadline:
            state.fleet.poll()
            if all(m.fenced or m.beat.run != state.channel.run_id for m in members):
                break
            time.sleep(LOOK_S)
        state.fleet.release()
        state.channel.store.close([member.incarnation for member in members])
    except OsbenchError as error:
        LOG.warning("the run's keys could not be removed: %s", error)

"""Times of the events of a stream, recorded as atomic actions within the action of its request."""

from __future__ import annotations

import random

from osbench.common.plugin.atomic import WIDTH, Recorder

#: Names of the actions: from the sending of the request to its first event, and from each event to
#: the next.
EVENT_ACTIONS = FIRST_EVENT, BETWEEN_EVENTS = "first event", "between events"

#: Titles of the charts of rates, by name of the request.
EVENT_RATE = "Rate of events in a stream, per second"
BYTE_RATE = "Rate of bytes in a stream, kB/s"

#: Atomic actions of an iteration, also of its streams side by side, up to which each time between
#: events is recorded; and times that every stream may record.
MOST_ACTIONS = 10_000
_LEAST = 100


class EventTimes:
    """Records when the events of one stream came, in bounded memory.

    Once the iteration has `MOST_ACTIONS` actions, the recorded times between events of a stream are
    a random sample of all of them, each with equal chance (algorithm R: Vitter, Random Sampling
    with a Reservoir, 1985), and the longest of the others.
    """

    __slots__ = (
        "_actions",
        "_between",
        "_first",
        "_lines",
        "_longest_left",
        "_parent",
        "are_sampled",
        "begun_ns",
        "count",
        "first_ns",
        "last_ns",
    )

    def __init__(self, recorder: Recorder) -> None:
        """`recorder`: of the iteration; the action that is open now has the events."""
        self._actions = recorder.actions
        self._parent = recorder.open
        number = recorder.names.number
        self._first, self._between = number(FIRST_EVENT), number(BETWEEN_EVENTS)
        #: Some times between events are not recorded.
        self.are_sampled = False
        #: Positions in the actions of the sampled times between events.
        self._lines: list[int] = []
        #: Nanoseconds of the longest time that is not in the sample, and its position; -1: none.
        self._longest_left = (-1, -1)
        #: Sending of the request, first and last event, monotonic ns; 0 before them.
        self.begun_ns = self.first_ns = self.last_ns = 0
        #: Events so far.
        self.count = 0

    def add(self, at_ns: int) -> None:
        """Record an event that came at a time of the monotonic clock, ns."""
        self.count += 1
        before_ns, self.last_ns = self.last_ns, at_ns
        if self.count == 1:
            self.first_ns = at_ns
            # an action that ends at 0 has not ended
            self._actions += (self._first, self._parent, self.begun_ns, at_ns, 0)
            return
        if not self.are_sampled:
            # other streams of the iteration may run meanwhile
            self.are_sampled = (
                len(self._lines) >= _LEAST and len(self._actions) > MOST_ACTIONS * WIDTH
            )
        if not self.are_sampled:
            self._lines.append(len(self._actions))
            self._actions += (self._between, self._parent, before_ns, at_ns, 0)
            return
        place = random.randrange(self.count - 1)  # noqa: S311 - a sample, not secrets
        if place < len(self._lines):
            line = self._lines[place]
            left_ns = self._actions[line + 2 : line + 4]
            self._actions[line + 2 : line + 4] = (before_ns, at_ns)
            before_ns, at_ns = left_ns
        self._leave(before_ns, at_ns)

    def _leave(self, begun_ns: int, ended_ns: int) -> None:
        """Record a time that is not in the sample, if it is the longest of those."""
        longest_ns, line = self._longest_left
        if ended_ns - begun_ns <= longest_ns:
            return
        if line < 0:
            line = len(self._actions)
            self._actions += (self._between, self._parent, begun_ns, ended_ns, 0)
        else:
            self._actions[line + 2 : line + 4] = (begun_ns, ended_ns)
        self._longest_left = ended_ns - begun_ns, line

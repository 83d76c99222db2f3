"""Wall clocks that are set are noticed; clocks that are slewed, and busy hosts, are not."""

from __future__ import annotations

from osbench.common.machine.clock_steps import ClockSteps


class Clocks:
    """A wall clock and a monotonic one; nanoseconds."""

    def __init__(self) -> None:
        self.monotonic = 5_000_000_000
        self.ahead = 1_700_000_000_000_000_000
        #: Passes with each reading of the monotonic clock, as on a busy host.
        self.held_up = 0

    def wall_ns(self) -> int:
        return self.monotonic + self.ahead

    def monotonic_ns(self) -> int:
        self.monotonic += self.held_up
        return self.monotonic

    def steps(self) -> ClockSteps:
        return ClockSteps(self.wall_ns, self.monotonic_ns)


def after(clocks: Clocks, steps: ClockSteps, *, s: float, set_s: float = 0.0) -> None:
    clocks.monotonic += int(s * 1e9)
    clocks.ahead += int(set_s * 1e9)
    steps.look()


def test_steps_add_up_by_their_direction():
    clocks = Clocks()
    steps = clocks.steps()

    for set_s in (0.0, -3600.0, 0.0, 1800.0, -2.5):
        after(clocks, steps, s=0.5, set_s=set_s)

    assert (steps.back_s, steps.forward_s) == (3602.5, 1800.0)


def test_a_clock_that_is_slewed_is_not_set():
    clocks = Clocks()
    steps = clocks.steps()

    for _ in range(10_000):
        after(clocks, steps, s=0.5, set_s=-0.00025)
    after(clocks, steps, s=1000.0, set_s=-0.5)

    assert (steps.back_s, steps.forward_s) == (0.0, 0.0)


def test_a_host_that_is_held_up_between_two_readings_has_set_nothing():
    clocks = Clocks()
    steps = clocks.steps()

    clocks.held_up = 300_000_000
    after(clocks, steps, s=0.5)
    clocks.held_up = 0
    after(clocks, steps, s=0.5)

    assert (steps.back_s, steps.forward_s) == (0.0, 0.0)


def test_a_step_while_a_host_is_held_up_is_noticed_later():
    clocks = Clocks()
    steps = clocks.steps()

    clocks.held_up = 300_000_000
    after(clocks, steps, s=0.5, set_s=-60.0)
    clocks.held_up = 0
    after(clocks, steps, s=0.5)

    assert steps.back_s == 60.0

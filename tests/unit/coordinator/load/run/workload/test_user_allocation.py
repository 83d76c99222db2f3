"""Virtual users of a load: how many are asked for, and how many workers hold."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from helpers.loads import Timed, workload
from helpers.memberships import handle
from osbench.common.plugin.runner import Step
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun


def held(one: WorkloadRun) -> list[tuple[float, int, int]]:
    return [
        (record["at_s"], record["asked"], record["held"])
        for record in one.services.journal
        if record["do"] == "held"
    ]


def test_users_that_are_asked_for_and_held_are_noted_with_the_next_decision_if_they_change():
    one = workload(Timed(), SimpleNamespace(look=lambda *_: None))
    one.start(99.5)
    one.run_pass(poll=True)
    one.run_pass(poll=True)
    written = list(one.services.journal)

    one.services.clock.at = 101.0
    one.run_pass(poll=False)
    one.run_pass(poll=True)
    one.settle()

    # a turn writes nothing for it
    assert [record["do"] for record in written] == ["start"]
    # no worker has the two; none is asked for from the stop on, however late that is seen
    assert held(one) == [(0.5, 2, 0), (1.0, 0, 0)]
    assert one.services.history.missing_user_s(0, 50.0) == 1.0
    assert one.view.offered().waited_s == 0.5


class Asking(Timed):
    """A closed runner that asks for all its users on the first worker."""

    def step(self, elapsed_s: float, totals: object, capacity: Sequence[int]) -> Step:
        return Step(users=[2, *[0] * (len(capacity) - 1)])


def test_users_of_workers_that_do_not_follow_yet_are_given_to_nobody():
    one = workload(Asking(), SimpleNamespace(look=lambda *_: None))
    here, silent = handle("w1", user_limit=1, held=1, capacity=8), handle("w2")
    pool = one.services.pool
    pool.serving, pool.present = lambda _: [here], [here]
    pool.unheard = [silent]
    one.results.users.give(silent.mid, [(1, 2)])

    one.allocation.ask()
    before = here.user_limit
    pool.unheard = []
    one.allocation.ask()

    assert (before, here.user_limit) == (1, 2)

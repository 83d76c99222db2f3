"""Drills with planted outages: counts are exact, and intervals hold the planted recovery."""

import json

import numpy as np
import pytest

from helpers.result_rows import row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.drill_figures import DrillFigures, LeftFigures, LeftKind
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

NS = 1_000_000_000
BOTH = {"fault": "stop", "after": "start"}
ALONE = {"fault": "stop"}

RATE, FAULT_S, AFTER_S, END_S = 40, 20.0, 30.0, 60.0


def latencies(random, number, dependence=0.0):
    """Response times around 10 ms; neighbours resemble each other."""
    noise, level = random.normal(0, 0.3, number), 0.0
    found = np.empty(number)
    for at in range(number):
        level = dependence * level + noise[at]
        found[at] = 0.01 * np.exp(level)
    return found


def load(random, *, failing=0.0, dependence=0.0):
    """Instants in seconds, response times and whether each iteration fails anyway."""
    due = np.arange(0, END_S, 1 / RATE)
    return due, latencies(random, len(due), dependence), random.random(len(due)) < failing


def columns_of(due, took, bad, outcome=Outcome.FAILED):
    rows = [
        row_of(
            number + 1,
            int(outcome if bad[number] else Outcome.OK),
            round(due[number] * NS),
            round(due[number] * NS),
            round((due[number] + took[number]) * NS),
            *(0, 0, (), None),
        )
        for number in range(len(due))
    ]
    return decode_rows(encode_rows(rows, (), 0)) if rows else None


def played(due, took, bad, hooks=ALONE, warmup_s=0.0):
    """The figures, as a coordinator gets the rows: by the second, phases between them."""
    made = DrillStatistics(hooks, warmup_s)
    ended = due + took
    instants = {"fault": FAULT_S, "after": AFTER_S}
    for second in range(int(END_S) + 60):
        for phase in hooks:
            if instants[phase] == second:
                made.begin(phase, instants[phase])
                made.end_hook(phase, "")
        here = (ended >= second) & (ended < second + 1)
        if here.any():
            made.add(columns_of(due[here], took[here], bad[here]))
    return made.figures()


def holds(bounds, value):
    return bounds[0] <= value <= bounds[1]


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_outage_is_counted_exactly_and_its_end_is_in_the_interval(seed):
    random = np.random.default_rng(seed)
    due, took, bad = load(random, failing=0.002 * (seed % 3), dependence=0.6 * (seed % 2))
    until_s = FAULT_S + random.uniform(3, 15)
    struck = (due >= FAULT_S) & (due < until_s)
    # all requests, or those of one instance of two
    bad = bad | (struck & ((seed % 4 < 2) | (np.arange(len(due)) % 2 == 0)))

    found = played(due, took, bad, BOTH)

    since = due + took >= FAULT_S
    assert found.bad == int(bad[since].sum())
    assert sum(phase.count for phase in found.phases) == len(due)
    assert [phase.name for phase in found.phases] == ["before", "fault", "after"]
    before, fault, after = found.phases
    assert before.bad == int(bad[~since].sum())
    assert after.bad == int(bad[due >= AFTER_S].sum())
    assert fault.bad == found.bad - after.bad
    assert holds(found.recovery_ci, until_s - FAULT_S), (found, until_s - FAULT_S)
    assert found.recovery_ci[1] - found.recovery_ci[0] < 3
    assert holds(found.bad_beyond_ci, int((bad & struck).sum())) or seed % 3


@pytest.mark.parametrize("seed", range(20))
def test_a_load_in_which_nothing_happens_has_recovered_at_once(seed):
    random = np.random.default_rng(100 + seed)
    due, took, bad = load(random, failing=0.01 * (seed % 2), dependence=0.8 * (seed % 2))

    found = played(due, took, bad, BOTH)

    assert (found.recovery_s, found.doubt, found.problem) == (0.0, "", "")
    assert found.recovery_ci[0] == 0
    assert found.bad == int(bad[due + took >= FAULT_S].sum())
    if not seed % 2:
        assert found.bad == found.bad_beyond == 0
        assert found.bad_beyond_ci[0] < 0


@pytest.mark.parametrize("seed", range(5))
def test_a_load_that_is_only_slower_has_not_recovered_while_it_is(seed):
    random = np.random.default_rng(200 + seed)
    due, took, bad = load(random)
    until_s = FAULT_S + 8
    took = np.where((due >= FAULT_S) & (due < until_s), 4 * took, took)

    found = played(due, took, bad)

    assert found.bad == 0
    assert holds(found.recovery_ci, 8), found


def test_a_system_that_heals_itself_has_a_fault_until_it_has_recovered():
    random = np.random.default_rng(1)
    due, took, bad = load(random)
    bad = (due >= FAULT_S) & (due < FAULT_S + 5)

    found = played(due, took, bad)
    before, fault, after = found.phases

    assert (fault.from_s, fault.to_s, after.from_s) == (FAULT_S, FAULT_S + 5, FAULT_S + 5)
    assert (before.bad, fault.bad, after.bad) == (0, 5 * RATE, 0)
    assert sum(phase.count for phase in found.phases) == len(due)
    assert after.ok == len(due) - int((due < FAULT_S + 5).sum())


def test_iterations_that_a_fault_meets_in_flight_are_not_of_before():
    random = np.random.default_rng(2)
    due, took, bad = load(random)
    flying = (due > FAULT_S - 0.2) & (due < FAULT_S)
    took = np.where(flying, 0.5, took)

    found = played(due, took, bad | flying, BOTH)
    before, fault, _ = found.phases

    assert before.bad == 0
    assert fault.bad == found.bad == int(flying.sum())
    assert found.recovery_s is not None


def test_a_load_that_ends_within_the_outage_has_not_recovered():
    random = np.random.default_rng(3)
    due, took, _ = load(random)

    found = played(due, took, due >= FAULT_S, BOTH)

    assert (found.recovery_s, found.recovery_ci) == (None, None)
    assert found.doubt == "the load had not recovered when it ended"


def test_the_second_of_two_outages_is_the_one_to_recover_from():
    random = np.random.default_rng(4)
    due, took, _ = load(random)
    bad = ((due >= 20) & (due < 30)) | ((due >= 40) & (due < 41))

    found = played(due, took, bad, BOTH)

    assert holds(found.recovery_ci, 21)


def test_timeouts_and_drops_count_and_drops_have_no_end():
    made = DrillStatistics(ALONE)
    calm = np.arange(0, 10, 0.02)
    made.add(columns_of(calm, np.full(len(calm), 0.01), calm < 0))
    made.begin("fault", 10.0)
    late = np.arange(10.0, 11.0, 0.02)
    made.add(columns_of(late, np.full(len(late), 0.01), late > 0, Outcome.TIMED_OUT))
    rows = [row_of(9000, int(Outcome.DROPPED_LATE), 11 * NS, 0, 0, 0, 0, (), None)]
    made.add(decode_rows(encode_rows(rows, (), 0)))

    found = made.figures()

    assert (found.phases[1].timed_out, found.phases[1].dropped, found.bad) == (50, 1, 51)


def test_before_the_fault_all_is_before():
    random = np.random.default_rng(5)
    due, took, bad = load(random)
    made = DrillStatistics(BOTH, warmup_s=5.0)
    made.add(columns_of(due, took, bad))

    found = made.figures()

    (before,) = found.phases
    assert (before.count, before.from_s, found.fault_s) == (len(due), 5.0, None)
    assert found.problem == "the hook that begins the fault (“stop”) has not fired"


def test_too_little_before_says_so_and_counts():
    due = np.arange(19.5, 30, 0.05)

    found = played(due, np.full(len(due), 0.01), due >= 25)

    assert found.bad == int((due >= 25).sum())
    assert found.recovery_s is None
    assert "10 iterations ended well before the fault: 40 are needed" in found.doubt


def test_nothing_at_all():
    made = DrillStatistics(ALONE)
    made.begin("fault", 3.0)

    found = made.figures()

    assert found.doubt == "no iteration was scheduled after the fault"
    assert (found.bad, found.bad_beyond) == (0, None)
    assert sum(phase.count for phase in found.phases) == 0


def test_all_that_failed_before_is_nothing_to_recover_to():
    due = np.arange(0, 60, 0.02)
    bad = np.arange(len(due)) % 20 > 0

    found = played(due, np.full(len(due), 0.01), bad, BOTH)

    assert found.recovery_s is None
    assert found.doubt == "most iterations failed before the fault"


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([("begin", "after"), ("begin", "fault")], "(“start”) fired before the fault"),
        ([("begin", "fault"), ("end", "no such host")], "(“stop”) failed: no such host"),
        ([("begin", "fault"), ("end", "")], "(“start”) has not fired"),
        ([("begin", "fault"), ("gone", "")], "(“stop”) failed: the coordinator was killed"),
        ([("begin", "fault"), ("end", ""), ("begin", "after"), ("end", ""), ("gone", "")], ""),
    ],
)
def test_hooks_that_do_not_what_they_should(steps, problem):
    made = DrillStatistics(BOTH)
    phase = ""
    for what, value in steps:
        if what == "begin":
            phase = value
            made.begin(phase, 3.0)
        elif what == "end":
            made.end_hook(phase, value)
        else:
            made.break_off()

    found = made.figures().problem

    assert problem in found
    assert bool(found) == bool(problem)


def test_a_long_load_keeps_exact_counts_in_wider_bins():
    due = np.arange(0, 2000, 0.1)
    bad = (due >= 1000.05) & (due < 1100)
    made = DrillStatistics(ALONE)
    took = np.full(len(due), 0.01)
    first = due < 1000.0
    made.add(columns_of(due[first], took[first], bad[first]))
    made.begin("fault", 1000.0)
    made.add(columns_of(due[~first], took[~first], bad[~first]))

    found = made.figures()

    assert found.bad == int(bad.sum())
    assert sum(phase.count for phase in found.phases) == len(due)
    assert holds(found.recovery_ci, 100)
    assert found.recovery_ci[1] - found.recovery_ci[0] <= 12


def test_figures_are_those_of_their_json():
    random = np.random.default_rng(6)
    due, took, bad = load(random)
    found = played(due, took, bad, BOTH)

    text = json.dumps(json_codec.to_json(found))

    assert json_codec.from_json(DrillFigures, json.loads(text)) == found


def left_of(instants, *, kinds=1, took=0.01):
    """Rows of iterations that failed and left a resource of each kind, by due time (s)."""
    return [
        [round(due * NS), round((due + took) * NS), int(Outcome.FAILED), number + 1, kind, 1]
        for number, due in enumerate(instants)
        for kind in range(kinds)
    ]


def two_phases(hooks):
    """Statistics of a load from 0 to 60 s, 10 per second; the fault from 20 s to 30 s."""
    made, due = DrillStatistics(hooks), np.arange(0, 60, 0.1)
    bad = (due >= 20) & (due < 30)
    took = np.full(len(due), 0.01)
    for phase, begin, end in (("", 0, 20), ("fault", 20, 30), ("after", 30, 60)):
        if phase in hooks:
            made.begin(phase, float(begin))
            made.end_hook(phase, "")
        here = (due >= begin) & (due < end)
        made.add(columns_of(due[here], took[here], bad[here]))
    return made


@pytest.mark.parametrize("hooks", [BOTH, ALONE])
def test_resources_left_in_error_are_of_the_phase_of_their_iteration(hooks):
    made = two_phases(hooks)
    before = made.figures()
    kinds = (LeftKind(kind="servers", in_error=26), LeftKind(kind="volumes", in_error=25))

    # one began before the fault and ended in it, and a context has made one
    flying = [[round(19.9 * NS), round(20.5 * NS), int(Outcome.FAILED), 999, 0, 1]]
    made.leave(LeftFigures(kinds=kinds), flying + left_of(np.arange(24, 32, 0.333), kinds=2))
    found = made.figures()

    assert before.left is None
    assert {one.leaving_share for one in before.phases} == {None}
    assert [dict(one.left) for one in found.phases] == [
        {},
        {"servers": 20, "volumes": 19},
        {"servers": 6, "volumes": 6},
    ]
    assert [one.leaving_share for one in found.phases] == [0, 0.2, 6 / 300]
    for one in found.phases:
        assert holds(one.leaving_ci, one.leaving_share)
    assert found.left_in_error == 51
    # all else is as it was
    assert found.bad == before.bad
    assert json_codec.from_json(DrillFigures, json_codec.to_json(found)) == found


def test_an_iteration_that_leaves_several_resources_counts_once_in_the_share():
    made = two_phases(BOTH)
    kinds = (LeftKind(kind="servers", in_error=3), LeftKind(kind="ports", in_error=1))
    (row,) = left_of([25.0])

    made.leave(LeftFigures(kinds=kinds), [[*row[:4], 0, 3], [*row[:4], 1, 1]])

    _, fault, _ = made.figures().phases
    assert (dict(fault.left), fault.leaving_share) == ({"servers": 3, "ports": 1}, 0.01)


@pytest.mark.parametrize(
    "left",
    [
        LeftFigures(problem="Ctrl-C ended the search for resources in error"),
        LeftFigures(kinds=(LeftKind(kind="servers"),), unlisted={"volumes": "503"}),
        LeftFigures(kinds=(LeftKind(kind="servers"),), unplaced="the blocks are damaged"),
        LeftFigures(),
    ],
)
def test_there_is_no_share_of_what_is_not_all_known(left):
    made = two_phases(BOTH)

    made.leave(left, [])

    assert {one.leaving_share for one in made.figures().phases} == {None}
    assert made.figures().left_in_error == 0


def test_resources_of_a_fault_that_never_began_are_of_before():
    made, due = DrillStatistics(BOTH), np.arange(0, 10, 0.1)
    made.add(columns_of(due, np.full(len(due), 0.01), due > 9))

    made.leave(LeftFigures(kinds=(LeftKind(kind="servers", in_error=2),)), left_of([9.5, 9.6]))

    (before,) = made.figures().phases
    assert (dict(before.left), before.leaving_share) == ({"servers": 2}, 0.02)


def registered(accounts):
    """The statistics of the drill that is workload 0 of accounts."""
    statistics = WorkloadStatistics(drill=DrillStatistics(BOTH))
    results = WorkloadResults(
        idempotent=False, sla=SlaEvaluator((), Plugins()), statistics=statistics
    )
    accounts.register(0, results)
    return statistics


def test_accounts_follow_the_record_of_resources():
    accounts = Accounts()
    statistics = registered(accounts)
    servers = {"kind": "servers", "in_error": 1, "changing": 0, "states": {"ERROR": 1}}
    record = {"do": "left", "workload": 0, "kinds": [servers], "unlisted": {"ports": "no"}}
    record |= {"waited_s": 60.0, "problem": "", "unplaced": "no", "rows": left_of([1.0])}

    accounts.apply({**record, "workload": 7})
    accounts.apply(record)

    assert statistics.drill.left == LeftFigures(
        kinds=(LeftKind(**servers),), unlisted={"ports": "no"}, waited_s=60.0, unplaced="no"
    )
    for wrong in ({"rows": [[1, 2, 3]]}, {"rows": left_of([1.0], kinds=2)}, {"kinds": [{"x": 1}]}):
        with pytest.raises((ValueError, TypeError)):
            accounts.apply({**record, **wrong})


def test_accounts_follow_the_records_of_phases():
    accounts = Accounts()
    statistics = registered(accounts)
    due = np.arange(0, 3, 0.1)
    statistics.add(columns_of(due, np.full(len(due), 0.01), due < 0), worker="w")

    accounts.apply({"do": "phase", "workload": 0, "phase": "fault", "at_s": 3.0})
    accounts.apply({"do": "phase", "workload": 7, "phase": "fault", "at_s": 1.0})
    accounts.apply({"do": "open", "epoch": 2})
    # of the coordinator that is gone, and came late
    accounts.apply({"do": "phase", "workload": 0, "phase": "fault", "error": ""})
    statistics.add(columns_of(due + 3, np.full(len(due), 0.01), due < 0), worker="w")

    found = statistics.drill
    assert (found.fault_s, [one.count for one in found.phases]) == (3.0, [30, 30])
    assert found.problem.endswith("failed: the coordinator was killed during the hook")

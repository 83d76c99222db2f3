import dataclasses
import json
import re

import numpy as np
import pytest

from bench.comparison_verdicts import SCENARIOS, verdicts, wrong
from bench.comparison_verdicts import compared as compared_runs
from helpers.examples import examples
from helpers.queue_runs import Queue, compared_run, side
from osbench.common.errors import UsageError
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_json import comparison_json
from osbench.edges.history.comparison.comparison_result import Basis, ChangeVerdict
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.history.comparison.findable_changes import findable_sentence, signed_percent

QUEUE = Queue(duration_s=100)


def chance(seed=1):
    return np.random.default_rng(seed)


def compared(before, after, **options):
    history = options.pop("history", ())
    in_pairs = options.pop("in_pairs", False)
    evidence = Evidence(before=before, after=after, history=history, in_pairs=in_pairs)
    return compare_sides(evidence, **options)


def with_summary(run, **changed):
    return dataclasses.replace(run, summary={**run.summary, **changed})


def with_workload(run, **changed):
    (workload,) = run.summary["workloads"]
    return with_summary(run, workloads=[{**workload, **changed}])


def scenario(name):
    (found,) = (one for one in SCENARIOS if one.name == name)
    return found


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.name)
def test_verdicts_are_right_as_often_as_they_say(one):
    for runs in one.found:
        found = verdicts(one, runs, examples(40), seed=4)

        # `make statistics` makes 400 comparisons
        assert not wrong(one, runs, found), found


def test_one_odd_run_among_five_does_not_hide_a_change_and_is_named():
    result = compared_runs(scenario("10 % slower, and one run is 1.5 x"), 5, chance(2))

    assert result.verdict is ChangeVerdict.WORSE
    row = result.workloads[0].rows[0]
    assert row.ratio == pytest.approx(1.1, abs=0.04)
    assert 1 < row.interval[0] < row.ratio < row.interval[1]
    assert "their own spread and their ranks" in result.grounds
    (odd,) = [one for one in result.remarks if "unlike the others" in one]
    assert re.match(r"Run B\d is unlike the others of its side: p\d+ of Queue.get \+", odd)
    assert "Without it: Worse: " in odd


def test_one_odd_run_among_three_hides_a_change_and_the_comparison_says_so():
    result = compared_runs(scenario("10 % slower, and one run is 1.5 x"), 3, chance(6))

    assert result.verdict is ChangeVerdict.NO_EVIDENCE
    odd, more, *_ = result.remarks
    assert "is unlike the others of its side" in odd
    assert "Without it: Worse: " in odd
    assert "five runs a side" in more


@pytest.mark.parametrize("in_pairs", [False, True])
def test_a_percentile_of_0_in_a_run_is_left_out(in_pairs: bool):
    random = chance(2)
    at, values = Queue(duration_s=60).run(random)
    none = np.zeros_like(values)
    runs = [
        [
            compared_run(f"{name}{n}", (at, values), actions={"a": values // 2, "b": none})
            for n in range(3)
        ]
        for name in "AB"
    ]
    half = np.where(np.arange(len(values)) % 4, 0, values // 2)
    runs[1][1] = compared_run("B1", (at, values), actions={"a": half, "b": values // 3})
    evidence = Evidence(before=runs[0], after=runs[1], in_pairs=in_pairs)

    result = compare_sides(evidence)

    found = {(row.action, row.percent) for row in result.workloads[0].rows}
    assert {("", 50.0), ("", 95.0), ("a", 95.0)} <= found
    assert ("a", 50.0) not in found
    assert not any(action == "b" for action, _ in found)


def test_no_evidence_says_what_change_would_have_been_found():
    result = compared_runs(scenario("equal, runs differ by 2 %"), 5, chance(3))

    assert result.verdict is ChangeVerdict.NO_EVIDENCE
    rows = result.workloads[0].rows
    # runs that differ by 2 %: five of them by 0.9 % on average, two such averages by 1.3 %
    assert all(0.02 < row.findable < 0.15 for row in rows)
    least = min(row.findable for row in rows)
    assert re.search(
        rf" A change of {signed_percent(1 + least)[1:]} of p\d+ of Queue.get, and of [\d.]+ % of"
        r" p\d+ of Queue.get, would have been found in 80 % of such comparisons\.$",
        result.sentence,
    )


@pytest.mark.parametrize(
    ("findable", "said"),
    [
        ((0.05,), "5.0 % of p0"),
        ((14.0,), "x 15.0 of p0"),
        ((0.5, 14.0), "50 % of p0, and of x 15.0 of p1,"),
    ],
)
def test_a_change_that_would_be_found_is_whole_from_1000_percent_on(findable, said):
    found = findable_sentence([(one, f"p{at}") for at, one in enumerate(findable)])

    assert found == f" A change of {said} would have been found in 80 % of such comparisons."


def test_runs_that_would_find_nothing_say_so():
    assert findable_sentence([(9_366_391_994.0, "p50 of queue")]) == (
        " With so few runs only an enormous change can be found. Make more runs."
    )


def test_runs_of_one_side_before_all_of_the_other_are_said_to_be():
    random = chance()
    sides = [side(QUEUE, random, name, 3) for name in "AB"]
    later = [
        with_summary(
            run, started_at="2026-04-01T10:20:00.000Z", finished_at="2026-04-01T10:25:00.000Z"
        )
        for run in sides[1]
    ]

    mixed = compared(*sides)
    apart = compared(sides[0], later)

    assert not mixed.apart_in_time
    assert "take turns" not in mixed.grounds
    for result in (apart, compared(later, sides[0])):
        assert result.apart_in_time
        assert "All runs of one side were made before all runs of the other" in result.grounds
        assert "`duel` lets both take turns" in result.grounds
        assert "and its surroundings did not change, 5 %" in " ".join(result.remarks)
    assert not compared(sides[0], later, in_pairs=True).apart_in_time


def test_a_slower_server_is_worse_and_the_sentence_names_the_percentile():
    random = chance()
    result = compared(side(QUEUE, random, "A"), side(QUEUE, random, "B", slower=1.1))

    assert result.verdict is ChangeVerdict.WORSE
    assert result.basis is Basis.REPLICATES
    assert re.match(r"Worse: p\d\d of Queue.get takes 2\d.\d % longer \(95 %: \+", result.sentence)
    (workload,) = result.workloads
    row = workload.rows[0]
    assert (row.action, row.percent) == ("", 50)
    # 200 services a second become 182, of which 100 are taken: 100 / 82
    assert row.interval[0] < 1.222 < row.interval[1]
    assert row.p < 0.001
    faster = compared(side(QUEUE, random, "A", slower=1.1), side(QUEUE, random, "B"))
    assert faster.verdict is ChangeVerdict.BETTER
    assert "less" in faster.sentence


def test_one_run_a_side_gives_an_interval_and_no_verdict():
    random = chance()
    before, after = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1, slower=1.3)

    result = compared(before, after)

    assert result.basis is Basis.TIME_BLOCKS
    assert result.verdict is ChangeVerdict.NO_EVIDENCE
    assert "run-to-run spread is unknown" in result.sentence
    rows = result.workloads[0].rows
    assert {row.p for row in rows} == {None}
    # 1.3 times slower service is 1.86 times the latency at this load
    assert rows[0].interval[0] < 1.86 < rows[0].interval[1]
    assert rows[0].interval[0] > 1.3


def test_one_run_a_side_is_enough_where_five_earlier_runs_say_how_much_they_differ():
    random = chance()
    history = side(QUEUE, random, "H")
    before, equal, slower = (
        side(QUEUE, random, name, 1, slower=by) for name, by in (("A", 1), ("B", 1), ("C", 1.3))
    )

    assert compared(before, slower, history=history[:4]).basis is Basis.TIME_BLOCKS
    assert compared(before, equal, history=history).verdict is ChangeVerdict.NO_EVIDENCE
    result = compared(before, slower, history=history)
    assert result.basis is Basis.HISTORY
    assert result.verdict is ChangeVerdict.WORSE
    assert "5 earlier runs" in result.grounds


def test_pairs_see_through_what_changes_for_both():
    random = chance()
    moods = np.exp(random.normal(0, 0.3, 6))
    sides = [
        [
            compared_run(f"{name}{number}", (at, (values * mood * slower).astype(np.int64)))
            for number, mood in enumerate(moods)
            for at, values in [QUEUE.run(random)]
        ]
        for name, slower in (("A", 1), ("B", 1.15))
    ]

    assert compared(*sides).verdict is ChangeVerdict.NO_EVIDENCE
    in_pairs = compared(*sides, in_pairs=True)
    assert in_pairs.basis is Basis.PAIRS
    assert in_pairs.verdict is ChangeVerdict.WORSE


def test_a_margin_allows_to_call_servers_equivalent():
    random = chance()
    queue = Queue(rate=500, duration_s=100)
    sides = [side(queue, random, name, 8, spread=0.005) for name in "AB"]

    assert compared(*sides).verdict is ChangeVerdict.NO_EVIDENCE
    result = compared(*sides, margin=0.1)
    assert result.verdict is ChangeVerdict.EQUIVALENT
    assert {row.verdict for row in result.workloads[0].rows} == {ChangeVerdict.EQUIVALENT}
    assert "by 10 % or more" in result.sentence


def test_a_change_within_the_margin_is_none_and_one_beyond_stays_worse():
    random = chance()
    at, values = QUEUE.run(random)
    sides = [
        [
            compared_run(f"{name}{number}", (at, (values * by * one).astype(np.int64)))
            for number, one in enumerate((0.999, 1.0, 1.001, 1.0, 0.9995))
        ]
        for name, by in (("A", 1), ("B", 1.02), ("C", 1.08))
    ]

    assert compared(sides[0], sides[1]).verdict is ChangeVerdict.WORSE
    assert compared(sides[0], sides[1], margin=0.05).verdict is ChangeVerdict.EQUIVALENT
    assert compared(sides[0], sides[2], margin=0.05).verdict is ChangeVerdict.WORSE


def test_the_action_that_became_slower_is_named():
    random = chance()

    def runs(name, slower):
        found = []
        for number in range(5):
            at, values = QUEUE.run(random)
            database = (np.full(len(at), 2e6) * random.normal(1, 0.01) * slower).astype(np.int64)
            actions = {"http.get": values, "db.query": database}
            found.append(compared_run(f"{name}{number}", (at, values + database), actions=actions))
        return found

    result = compared(runs("A", 1), runs("B", 1.1))

    worse = {row.action for row in result.workloads[0].rows if row.verdict is ChangeVerdict.WORSE}
    assert worse == {"db.query"}
    assert "of db.query takes" in result.sentence


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"runner": {"type": "constant"}}, "runner of Queue.get: rps before, constant after"),
        ({"offered": {"rate_planned": 120.0}}, "not the same: 100/s planned before, 120/s after"),
        ({"offered": {"concurrency": 8}}, "virtual users of Queue.get: None before, 8 after"),
        ({"accounting": {"lost": 3}}, "run B0 lost 3 iterations"),
    ],
)
def test_runs_with_different_loads_are_refused(changed, said):
    random = chance()
    before, (after,) = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)
    (workload,) = after.summary["workloads"]
    merged = {
        key: {**workload[key], **value} if isinstance(value, dict) else value
        for key, value in changed.items()
    }
    other = with_workload(after, **merged)

    with pytest.raises(UsageError, match=said):
        compared(before, [other])

    result = compared(before, [other], anyway=True)
    assert said in " ".join(caveat.text for caveat in result.caveats if caveat.refuses)


def test_a_run_that_the_generator_limited_is_refused():
    random = chance()
    before, (after,) = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)

    with pytest.raises(UsageError, match="exit code 4: the load generator was the limit"):
        compared(before, [with_summary(after, exit_code=4)])
    # a broken SLA does not make the numbers wrong
    compared(before, [with_summary(after, exit_code=1)])


def test_failures_and_other_arguments_are_warned_of():
    random = chance()
    before, (after,) = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)
    sums = {"ok": 9000, "failed": 700, "timed_out": 0, "lost": 0}
    asked = [{"scenario": "Queue.get", "args": {"size": 11}}]
    other = dataclasses.replace(
        with_workload(after, accounting=sums),
        manifest={**after.manifest, "workloads": asked, "deployment": "prod"},
    )

    texts = " ".join(caveat.text for caveat in compared(before, [other]).caveats)

    assert "0 % of the iterations of Queue.get failed before, 7.2 % after" in texts
    assert "argument size of Queue.get: 10 before, 11 after" in texts
    assert "deployment: lab before, prod after" in texts


def test_equal_runs_have_no_caveat():
    random = chance()

    assert compared(side(QUEUE, random, "A", 2), side(QUEUE, random, "B", 2)).caveats == ()


def test_an_action_that_is_the_iteration_itself_is_not_tested_again():
    random = chance()

    result = compared(side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3))

    assert {row.action for row in result.workloads[0].rows} == {""}


def test_runs_without_a_workload_in_common_cannot_be_compared():
    random = chance()
    before, (after,) = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)

    with pytest.raises(UsageError, match="no workload in common"):
        compared(before, [with_workload(after, name="Other.get")])


def test_a_run_cannot_be_on_both_sides():
    one = side(QUEUE, chance(), "A", 1)

    with pytest.raises(UsageError, match="A0 is given twice"):
        compared(one, one)


def test_percentiles_that_too_few_iterations_support_are_left_out():
    queue = Queue(duration_s=4)
    random = chance()

    result = compared(side(queue, random, "A", 3), side(queue, random, "B", 3))

    assert {row.percent for row in result.workloads[0].rows} == {50, 95}
    assert any("p99 of Queue.get left out" in remark for remark in result.remarks)


def test_fingerprints_tell_tasks_and_fleets_apart_but_not_runs():
    random = chance()
    first, second = side(QUEUE, random, "A", 2)
    fleet = with_workload(second, workers=[{}])
    task = dataclasses.replace(
        second, manifest={**second.manifest, "workloads": [{"scenario": "Queue.get", "args": {}}]}
    )
    cloud = dataclasses.replace(second, manifest={**second.manifest, "deployment": "prod"})

    assert first.fingerprint == second.fingerprint
    assert len({one.fingerprint for one in (first, fleet, task, cloud)}) == 4


def test_the_json_object_is_json():
    random = chance()
    result = compared(side(QUEUE, random, "A"), side(QUEUE, random, "B", slower=1.1), margin=0.03)

    found = json.loads(json.dumps(comparison_json(result)))

    assert found["verdict"] == "worse"
    assert found["basis"] == "replicates"
    assert found["workloads"][0]["rows"][0]["verdict"] == "worse"


def with_zones(run, **p95_s):
    row = {"share": 0.5, "asked": None, "ok": 9, "failed": 0, "p50": 0.01, "p99": 0.5}
    rows = [{**row, "name": name, "p95": value} for name, value in p95_s.items()]
    return with_workload(run, breakdowns=[{"by": "zone", "of": "iterations", "rows": rows}])


def test_zones_of_all_runs_have_their_p95_before_and_after():
    before, after = side(QUEUE, chance(), "a", 3), side(QUEUE, chance(2), "b", 3)
    before = [with_zones(run, eu=0.02 + at / 100, us=0.1, ap=0.1) for at, run in enumerate(before)]
    after = [with_zones(run, eu=0.07, us=0.1) for run in after]

    facts = compared(before, after).workloads[0].facts

    assert [(one.name, one.before, one.after) for one in facts[2:]] == [
        ("p95 of zone eu", "30.0ms", "70.0ms, 40 ms more"),
        ("p95 of zone us", "100ms", "100ms"),
    ]


def test_runs_without_zones_on_one_side_have_no_facts_on_them():
    before, after = side(QUEUE, chance(), "a", 3), side(QUEUE, chance(2), "b", 3)

    facts = compared([with_zones(run, eu=0.02) for run in before], after).workloads[0].facts

    assert len(facts) == 2

import dataclasses
import itertools

import numpy as np
import pytest

from helpers.queue_runs import Queue, side
from helpers.synthetic_traces import Fault, many_queries, queue_wait, traces
from osbench.common.protocol.columns import encode_rows, pack_actions, row
from osbench.common.protocol.exchanges import OWN, pack_exchange
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_page import compare_page
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.collection.archive import Archive

QUEUE = Queue(duration_s=60)


@pytest.fixture
def with_traces(tmp_path):
    """Give a run a directory with traces."""

    def give(run, found):
        directory = RunDirectory.create(str(tmp_path), run.run_id)
        kept = list(found)
        survey = Survey()
        for trace in kept:
            survey.add(trace)
        digest, archive = Digest(survey, ["Queue.get"]), Archive(directory.path)
        for number, trace in enumerate(kept, 1):
            digest.add_iteration(trace, group=0, iteration=number, outcome=Outcome.OK, kept=False)
        described = {"traced": len(kept), "skipped": 0, "usual": [], "clocks": [], "ranking": []}
        described |= {"calls": digest.calls.to_dict(["Queue.get"])}
        archive.close(digest.table.close(), described | {"census": digest.coverage.to_dict()})
        directory.close()
        return dataclasses.replace(run, directory=directory)

    return give


@pytest.fixture
def with_requests(tmp_path):
    """Give a run a directory with iterations of one request."""
    numbers = itertools.count()

    def give(run, wait_ms, seed=0):
        number = next(numbers)
        directory = RunDirectory.create(str(tmp_path), f"{run.run_id}-{number}")
        random = np.random.default_rng(number + 1000 * abs(seed))
        rows = []
        for iteration, wait in enumerate(random.lognormal(0, 0.3, 300) * wait_ms * 1e6, 1):
            due = iteration * 10**8
            ended = due + int(wait) + 10**6
            packed = pack_exchange(0, OWN, 0, 0, 0, wait, 1e6, 9, 9, 200)
            rows.append(
                row(
                    iteration=iteration,
                    outcome=Outcome.OK,
                    due=due,
                    started=due,
                    ended=ended,
                    actions=pack_actions([0, -1, due, ended, 0]),
                    extra=(b"", None, packed),
                )
            )
        workload = {"name": "Queue.get", "warmup": {"seconds": 0}, "tracing": {"state": "no key"}}
        directory.write("summary.json", {"workloads": [workload]})
        body = {"workload": 0, "columns": encode_rows(rows, ["order"], 0)}
        directory.blocks = lambda: iter([body])
        return dataclasses.replace(run, directory=directory)

    return give


def test_the_call_that_got_slower_is_named(with_traces):
    random = np.random.default_rng(1)
    before, after = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3, slower=1.3)
    # not all runs need to have traces
    before[0] = with_traces(before[0], traces(300))
    after[2] = with_traces(after[2], traces(300, Fault(share=0.5, harm=queue_wait), seed=2))

    result = compare_sides(Evidence(before=before, after=after))

    assert "is waiting in the queue to stock/engine" in result.workloads[0].calls
    assert "Changed calls: " in compare_page(result)


def test_changed_counts_of_calls_are_told(with_traces):
    random = np.random.default_rng(1)
    before, after = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)
    before[0] = with_traces(before[0], traces(100))
    after[0] = with_traces(after[0], traces(100, Fault(share=1.0, harm=many_queries), seed=2))

    result = compare_sides(Evidence(before=before, after=after))

    assert "Calls per iteration: shop/api db SELECT items 1." in result.workloads[0].calls
    assert " -> 2" in result.workloads[0].calls


def test_without_traces_on_both_sides_nothing_is_said_of_calls(with_traces):
    random = np.random.default_rng(1)
    before, after = side(QUEUE, random, "A", 1), side(QUEUE, random, "B", 1)
    before[0] = with_traces(before[0], traces(50))

    result = compare_sides(Evidence(before=before, after=after))

    assert result.workloads[0].calls == ""
    assert "Changed calls: " not in compare_page(result)


def test_without_traces_the_request_that_got_slower_is_named(with_requests):
    random = np.random.default_rng(1)
    before, after = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3, slower=1.3)
    before = [with_requests(run, wait_ms=5) for run in before]
    after = [with_requests(run, wait_ms=8) for run in after]

    result = compare_sides(Evidence(before=before, after=after))

    assert result.workloads[0].calls.startswith("Iterations take ")
    assert result.workloads[0].calls.endswith(" % of that is first byte of order.")


def test_where_nothing_changed_no_request_is_named(with_requests):
    named = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        before, after = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3)
        before = [with_requests(run, wait_ms=5, seed=seed) for run in before]
        # runs of one machine are never quite alike
        after = [with_requests(run, wait_ms=5 + 0.1 * (seed % 3), seed=-seed) for run in after]
        named.append(compare_sides(Evidence(before=before, after=after)).workloads[0].calls)

    assert sum(bool(one) for one in named) <= 1

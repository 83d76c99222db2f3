import dataclasses

import numpy as np
import pytest

from helpers.queue_runs import Queue, side
from helpers.synthetic_traces import Fault, many_queries, queue_wait, traces
from osbench.common.outcomes import Outcome
from osbench.coordinator.comparison.comparing import compare_sides
from osbench.coordinator.comparison.comparison_page import compare_page
from osbench.coordinator.comparison.evidence import Evidence
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.traces.analysis.digest import Digest, Survey
from osbench.coordinator.traces.collection.archive import Archive

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


def test_the_call_that_got_slower_is_named(with_traces):
    random = np.random.default_rng(1)
    before, after = side(QUEUE, random, "A", 3), side(QUEUE, random, "B", 3, slower=1.3)
    # not all runs need to have traces
    before[0] = with_traces(before[0], traces(300))
    after[2] = with_traces(after[2], traces(300, Fault(share=0.5, harm=queue_wait), seed=2))

    result = compare_sides(Evidence(before=before, after=after))

    assert "is waiting in the queue to stock/engine" in result.workloads[0].calls
    assert "What the traces say" in compare_page(result)


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
    assert "What the traces say" not in compare_page(result)

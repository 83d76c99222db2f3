"""What a plan says of figures that are not to be relied on."""

import io
from dataclasses import replace

from rich.console import Console

from osbench.common.task import Task
from osbench.edges.history.sizing.iteration_cost import IterationCost
from osbench.edges.history.sizing.load_levels import LoadLevel
from osbench.edges.history.sizing.sizing_document import Sizing, to_document
from osbench.edges.history.sizing.sizing_text import render_sizing
from osbench.edges.history.sizing.worker_sizing import HostLimits, task_needs, workload_needs

LIMITS = HostLimits(
    cores=4, utilisation=0.6, virtual_users=256, coroutines=100_000, open_files=1024, ports=28_000
)
COST = IterationCost(
    cpu_s=0.001, service_s=0.1, service_p95_s=0.2, held_s=0.1, iterations=400, new_connections=1.0
)


def planned(cost, rate=100.0):
    levels = [LoadLevel(from_s=0, to_s=9, begin=rate, end=rate)] if rate else []
    found = workload_needs("buy", "Shop.buy", "rps", levels, cost, LIMITS, None, coroutines=False)
    sizing = Sizing(
        task=Task(title="Shop", subtasks=()),
        digest="abc",
        run_id="r",
        limits=LIMITS,
        workloads=[found],
        needs=task_needs([[found]], LIMITS),
    )
    return to_document(sizing)


def notes(cost, rate=100.0):
    return planned(cost, rate)["notes"]


def said_of_cost(cost):
    """The line of the cost in the text."""
    console = Console(file=io.StringIO(), width=200)
    render_sizing(planned(cost), console)
    lines = console.file.getvalue().splitlines()
    return next(line.strip() for line in lines if line.strip().startswith("cost"))


def test_good_figures_are_not_commented():
    assert notes(COST) == []
    assert notes(replace(COST, service_with_users_s=0.12, failed=3)) == []


def test_what_makes_figures_doubtful_is_told():
    assert (
        "12 of 400 iterations of the calibration did not end well"
        in (notes(replace(COST, failed=12))[0])
    )
    assert "only 9 iterations of the calibration ended" in notes(replace(COST, iterations=9))[0]
    assert "could not be measured" in notes(replace(COST, cpu_s=0.0))[0]
    assert "the most that it can be, 1.00 ms" in notes(replace(COST, cpu_at_most=True))[0]
    assert "took 3.00 times as long" in notes(replace(COST, service_with_users_s=0.3))[0]
    assert notes(COST, rate=0.0) == [
        "buy: its runner does not state its load: one worker process is assumed"
    ]


def test_a_cost_that_is_not_known_is_marked_where_it_is_told():
    bound = said_of_cost(replace(COST, cpu_at_most=True, iterations=9))
    unknown = said_of_cost(replace(COST, cpu_s=0.0))

    words = "at most 1.00 ms of CPU per iteration, over 9 iterations (too few to rely on);"
    assert words in bound
    assert "not known, over 400 iterations; a process" in unknown
    assert "cost       1.00 ms of CPU per iteration, over 400 iterations;" in said_of_cost(COST)


def test_figures_that_were_given_are_not_doubted():
    assert notes(replace(COST, calibrated=False, cpu_s=0.0, iterations=0)) == []


def test_ports_that_do_not_suffice_are_told():
    (note,) = notes(COST, rate=600.0)

    assert note.startswith("36,084 local ports of a host would be in use towards one address")

import pytest

from helpers.result_rows import block, row
from osbench.common.values.outcomes import Outcome
from osbench.edges.history.sizing.iteration_cost import (
    IDLE_CPU,
    PROCESS_BYTES,
    USER_BYTES,
    CalibrationPhases,
    ProcessSample,
    measured_cost,
    requests_at_once,
)

PHASES = CalibrationPhases(idle_s=2.0, alone_s=4.0, end_s=8.0, users=4)


def sample(at_s, cpu_s, memory=80_000_000, files=40):
    return ProcessSample(at_s=at_s, cpu_s=cpu_s, memory_bytes=memory, files=files)


#: 1 % of a core while nothing runs; from 4 s on 11 %.
SAMPLES = [
    sample(1.0, 1.00),
    sample(2.0, 1.01),
    sample(4.0, 2.00, memory=90_000_000, files=42),
    sample(6.0, 2.22),
    sample(8.0, 2.44, memory=93_000_000, files=48),
]


def iterations(from_ms, to_ms, count, lasts_ms, **more):
    step = (to_ms - from_ms) // count
    return [
        row(
            number,
            started=from_ms + number * step,
            ended=from_ms + number * step + lasts_ms,
            **more,
        )
        for number in range(count)
    ]


def cost(rows, samples=SAMPLES, size=0, connections=None):
    parts = [block(*rows)] if rows else []
    return measured_cost(parts, samples, PHASES, size, connections)


def test_cpu_time_of_the_last_phase_is_shared_by_the_iterations_that_ended_in_it():
    rows = iterations(2000, 4000, 10, 50) + iterations(4000, 8000, 400, 5)

    found = cost(rows)

    # between the samples at 6 s and 8 s: 0.22 s less 1 % of a core, over 200 iterations
    assert found.idle_cpu == pytest.approx(0.01)
    assert found.cpu_s == pytest.approx((0.22 - 0.02) / 200, rel=0.02)
    assert (found.iterations, found.failed) == (410, 0)


def test_service_times_are_those_of_low_load_without_what_iterations_sleep():
    rows = iterations(2000, 4000, 10, 50, idle=10) + iterations(4000, 8000, 400, 100)

    found = cost(rows)

    assert found.service_s == pytest.approx(0.04)
    assert found.service_p95_s == pytest.approx(0.04)
    assert found.service_with_users_s == pytest.approx(0.1)
    assert found.held_s == pytest.approx((10 * 0.05 + 400 * 0.1) / 410)


def test_memory_and_files_of_a_user_are_what_further_users_added():
    found = cost(iterations(4000, 8000, 400, 5), size=4000, connections=84)

    assert (found.memory_bytes, found.memory_user_bytes) == (90_000_000, 1_000_000)
    assert (found.files, found.files_user) == (40, 2.0)
    assert found.result_bytes == 10
    # the first of each user is no cost of an iteration
    assert found.new_connections == pytest.approx(80 / 400)


def test_failed_iterations_cost_and_dropped_arrivals_do_not():
    rows = iterations(4000, 8000, 400, 5)
    rows += iterations(4000, 8000, 100, 5, outcome=Outcome.FAILED)
    rows += iterations(4000, 8000, 1000, 0, outcome=Outcome.DROPPED_LATE)

    found = cost(rows)

    assert (found.iterations, found.failed) == (500, 100)
    assert found.cpu_s == pytest.approx(0.2 / 250, rel=0.03)


def test_without_a_good_iteration_there_is_no_cost():
    assert cost([]) is None
    assert cost(iterations(4000, 8000, 9, 5, outcome=Outcome.FAILED)) is None


def test_without_samples_the_figures_are_those_of_the_documentation():
    found = cost(iterations(4000, 8000, 400, 5), samples=[])

    assert (found.memory_bytes, found.memory_user_bytes) == (PROCESS_BYTES, USER_BYTES)
    assert found.cpu_s == 0


def test_few_slow_iterations_are_measured_over_all_phases():
    samples = [*SAMPLES, sample(10.0, 2.60)]

    found = measured_cost([block(row(0, started=2000, ended=4100))], samples, PHASES, 0, None)

    # it ended before the last phase had settled: all CPU time since 2 s, less 1 % of 8 s
    assert found.cpu_s == pytest.approx(1.59 - 0.08)


def test_cpu_time_that_is_as_little_as_a_process_varies_by_is_a_bound():
    quiet = [sample(at_s, 1.0 + at_s * 0.02) for at_s in (1.0, 2.0, 4.0, 6.0, 8.0)]

    few = cost(iterations(2000, 8000, 8, 500), samples=quiet)
    many = cost(iterations(2000, 8000, 600, 5), samples=quiet)
    known = cost(iterations(4000, 8000, 400, 5))

    # a hundredth of a core for the 6 s in which they ended
    assert (few.cpu_at_most, few.cpu_s) == (True, pytest.approx(0.06 / 8, rel=0.3))
    assert (many.cpu_at_most, many.cpu_s) == (True, pytest.approx(0.06 / 600, rel=0.1))
    assert not known.cpu_at_most


def test_few_samples_are_used_as_far_as_they_go():
    rows = [row(n, started=2000, ended=2100) for n in range(10)]

    found = cost(rows, samples=[sample(1.0, 1.0), sample(3.0, 1.5)])

    # 0.5 s of CPU less what a process is taken to have for itself
    assert found.cpu_s == pytest.approx((0.5 - 2 * IDLE_CPU) / 10)


@pytest.mark.parametrize(
    ("args", "files"),
    [
        ({"steps": [{"path": "/a"}, {"path": "/b"}]}, 1),
        ({"steps": [{"parallel": [{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]}]}, 3),
        ({"mix": [{"steps": [{"parallel": [{}] * 9, "at_once": 6}]}], "steps": [{}]}, 6),
        ({"steps": [{"parallel": [{}], "at_once": 6}]}, 1),
        ({}, 1),
        ({"url": "http://a.test", "parallel": "yes", "at_once": "no"}, 1),
    ],
)
def test_steps_at_once_have_a_file_each(args, files) -> None:
    assert requests_at_once(args) == files

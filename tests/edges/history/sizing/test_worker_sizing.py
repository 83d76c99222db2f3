from dataclasses import replace

import pytest

from osbench.edges.history.sizing.iteration_cost import IterationCost
from osbench.edges.history.sizing.load_levels import LoadLevel
from osbench.edges.history.sizing.worker_sizing import (
    SUPERVISOR_BYTES,
    HostLimits,
    UserPace,
    task_needs,
    workload_needs,
)

LIMITS = HostLimits(
    cores=4, utilisation=0.6, virtual_users=256, coroutines=100_000, open_files=1024, ports=28_000
)
#: 0.5 ms of CPU, 100 ms of service, nothing for a process without iterations.
COST = IterationCost(
    cpu_s=0.0005,
    idle_cpu=0.0,
    service_s=0.1,
    service_p95_s=0.2,
    held_s=0.1,
    memory_bytes=80_000_000,
    memory_user_bytes=20_000,
    files=40,
    files_user=2.0,
    new_connections=0.5,
    result_bytes=100,
)


def level(begin, end=None, from_s=0.0, to_s=10.0):
    return LoadLevel(from_s=from_s, to_s=to_s, begin=begin, end=begin if end is None else end)


def needs(*levels, cost=COST, limits=LIMITS, pace=None, coroutines=False):
    return workload_needs(
        "Shop.buy", "Shop.buy", "r", levels, cost, limits, pace, coroutines=coroutines
    )


def test_the_rate_times_the_cost_is_what_processes_share():
    found = needs(level(6000))

    # 6000/s of 0.5 ms take 3 cores, 0.6 of a core is for each process
    assert found.levels[0].cores == pytest.approx(3.0)
    assert (found.processes, found.limited_by) == (5, "CPU")
    assert found.levels[0].users == pytest.approx(600)
    assert found.levels[0].users_peak == 674
    assert found.shares(5) == [1200.0] * 5


def test_what_a_process_takes_for_itself_is_not_there_for_iterations():
    busy = replace(COST, idle_cpu=0.1)

    assert needs(level(6000), cost=busy).processes == 6
    # it can never take all
    assert needs(level(60), cost=replace(COST, idle_cpu=0.9)).processes == 1


def test_users_decide_where_iterations_wait_long():
    slow = replace(COST, service_s=2.0, held_s=2.0)

    found = needs(level(500), cost=slow)

    # 1000 users on average, 1095 nearly always
    assert found.levels[0].users_peak == 1095
    assert (found.processes, found.limited_by) == (5, "users")
    # one process holds all of them as coroutines
    assert needs(level(500), cost=slow, coroutines=True).processes == 1


def test_what_is_slept_within_an_iteration_occupies_its_user():
    sleeping = replace(COST, held_s=1.0)

    assert needs(level(100), cost=sleeping).levels[0].users == pytest.approx(100)


def test_the_level_that_needs_most_decides():
    found = needs(level(0, 6000), level(6000, to_s=20.0), level(0, from_s=20.0, to_s=30.0))

    assert [one.processes for one in found.levels] == [5, 5, 1]
    assert found.levels[2].users_peak == 0
    assert found.rate == 6000


def test_closed_loads_have_their_users_and_the_rate_that_follows():
    found = needs(level(300, to_s=None), pace=UserPace(think_s=0.4))
    paced = needs(level(300, to_s=None), pace=UserPace(max_rate=50))

    assert found.rate == pytest.approx(600)
    # of 300 users that think four fifths of the time
    assert found.levels[0].users == pytest.approx(60)
    assert found.users_peak == 300
    assert (found.processes, found.limited_by) == (2, "users")
    assert found.shares(2) == [150.0, 150.0]
    assert paced.rate == 50


def test_users_that_only_compute_need_no_more_processes_than_there_are_of_them():
    computing = replace(COST, service_s=0.0001, held_s=0.0001)

    found = needs(level(3, to_s=None), cost=computing, pace=UserPace())

    # no user makes more iterations than its CPU time allows
    assert found.rate == pytest.approx(3 / 0.0005)
    assert found.processes == 3


def test_a_load_of_nothing_needs_one_process():
    assert (needs(level(0)).processes, needs().processes) == (1, 1)
    assert needs().limited_by == "nothing"


def test_workloads_at_once_add_up_and_those_in_turn_do_not():
    big, small = needs(level(6000)), needs(level(600))

    assert task_needs([[big, small]], LIMITS).processes == 6
    assert task_needs([[big], [small]], LIMITS).processes == 5


def test_hosts_have_as_many_processes_as_cores_and_what_these_take():
    found = task_needs([[needs(level(6000))]], LIMITS)

    assert (found.hosts, found.host_processes) == (2, 4)
    # 135 of 674 users in each of 5 processes
    assert found.process_memory_bytes == 80_000_000 + 135 * 20_000
    assert found.host_memory_bytes == SUPERVISOR_BYTES + 4 * found.process_memory_bytes
    assert found.process_files == 40 + 270
    # four fifths of 3000 new connections a second wait for 60 s, and users have two each
    assert found.host_ports == pytest.approx(4 / 5 * (3000 * 60 + 1348), abs=1)
    assert found.redis_bytes_per_s == pytest.approx(600_000)
    # 25 blocks a second of 125 us, and 6000 rows
    assert found.coordinator_cpu == pytest.approx(25 * 125e-6 + 6000 * 0.4e-6)


def test_ports_of_workloads_at_once_add_up_on_the_host_that_has_most_of_them():
    few = replace(COST, new_connections=0.1)
    each = {rate: task_needs([[needs(level(rate))]], LIMITS).host_ports for rate in (600, 1200)}

    # one process each
    at_once = task_needs([[needs(level(600)), needs(level(1200))]], LIMITS)
    in_turn = task_needs([[needs(level(600))], [needs(level(1200))]], LIMITS)
    # three processes of a first workload and one of five of a second
    crowded = task_needs([[needs(level(6000), cost=few), needs(level(3000))]], LIMITS)
    unknown = replace(COST, new_connections=None)
    known = task_needs([[needs(level(600)), needs(level(1200), cost=unknown)]], LIMITS)

    assert at_once.host_ports == sum(each.values())
    assert in_turn.host_ports == each[1200]
    first, second = 3000 * 0.5 * 60 + 352 * 2, 6000 * 0.1 * 60 + 674 * 2
    assert crowded.host_ports == pytest.approx(first + second / 5, abs=1)
    assert known.host_ports == each[600]


def test_ports_are_not_told_where_connections_are_not_known():
    unknown = replace(COST, new_connections=None)

    assert task_needs([[needs(level(10), cost=unknown)]], LIMITS).host_ports is None


def test_connections_that_are_reused_leave_ports_to_their_users_alone():
    kept = replace(COST, new_connections=0.0)

    assert task_needs([[needs(level(6000), cost=kept)]], LIMITS).host_ports == 1079

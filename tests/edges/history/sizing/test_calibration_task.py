import pytest

from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Totals
from osbench.common.task import HookConfig, Named, Subtask, Task, Workload
from osbench.coordinator.taskfile import semantics
from osbench.edges.history.sizing.calibration_task import calibration_of, calibration_task


def workload(runner, config, **more):
    return Workload(
        place="subtasks[0]",
        position=0,
        scenario="Dummy.dummy",
        args={},
        runner=Named(name=runner, config=config),
        **more,
    )


def task_of(*workloads):
    subtask = Subtask(title="one", workloads=workloads, run_in_parallel=True)
    return Task(title="Shop", subtasks=(subtask,), tags=("nightly",))


def runner_of(one):
    return Plugins(()).get("runner", one.runner.name)(one.runner.config)


def cut(one, lasts_s=10.0):
    load = calibration_of(one, runner_of(one), lasts_s)
    (found,) = calibration_task(task_of(one), [load]).workloads
    return load, found


@pytest.mark.parametrize(
    ("runner", "config", "users", "rate"),
    [
        ("serial", {"times": 5}, 1, 400),
        ("constant", {"times": 50, "concurrency": 3}, 3, 400),
        ("constant_for_duration", {"duration": 60, "concurrency": 900}, 4, 400),
        ("rps", {"rps": 5000, "times": 50_000}, 4, 400),
        ("rps", {"rps": 25, "times": 50_000}, 4, 25),
        ("rps", {"rps": 0.1, "times": 50}, 4, 10),
        ("rps", {"rps": 50, "times": 500, "max_concurrency": 2}, 2, 50),
        ("stages", {"stages": [{"target": 70, "duration": 60}]}, 4, 70),
        ("search", {"low": 10, "high": 5000}, 4, 400),
        ("search", {"low": 10, "high": 50, "max_concurrency": 2}, 2, 50),
        ("user_stages", {"stages": [{"users": 2, "duration": 60}]}, 2, 400),
    ],
)
def test_the_load_is_nowhere_above_what_the_task_asks_for(runner, config, users, rate):
    one = workload(runner, config)

    load, found = cut(one)

    assert (load.phases.users, load.rate) == (users, rate)
    assert not semantics.check(task_of(found), Plugins(()))
    changed = runner_of(found)
    if load.is_open:
        assert changed.concurrency == users
    else:
        assert max(changed.users(second / 10) for second in range(120)) == users
        assert found.users["max_rate"] == rate


def test_nothing_runs_first_and_then_little():
    load, found = cut(workload("constant", {"times": 50, "concurrency": 30}))
    changed = runner_of(found)

    phases = load.phases
    assert [changed.users(at_s) for at_s in (0, phases.idle_s - 0.01)] == [0, 0]
    assert [changed.users(at_s) for at_s in (phases.idle_s, phases.alone_s - 0.01)] == [1, 1]
    assert [changed.users(at_s) for at_s in (phases.alone_s, phases.end_s - 0.01)] == [4, 4]
    assert phases.end_s == phases.idle_s + 10


def test_arrivals_begin_at_the_least_rate_and_rise_with_what_users_suffice_for():
    load, found = cut(workload("rps", {"rps": 100, "times": 5000, "timeout": 7}))
    step = runner_of(found).step(3.0, Totals(allotted=0, settled=0), [256])

    assert min(step.arrivals) >= load.phases.idle_s
    assert len([at for at in step.arrivals if at < load.phases.idle_s + 1]) in (10, 11)
    assert found.runner.config["timeout"] == 7
    assert load.risen_rate(0.1) == 40
    assert load.risen_rate(0.001) == 100
    assert load.risen_rate(30.0) == 10


def test_what_belongs_to_the_load_is_left_out_and_all_else_stays():
    hook = HookConfig(action=Named(name="sys_call"), trigger=Named(name="event"))
    one = workload(
        "constant",
        {"times": 50, "concurrency": 30},
        sla=(Named(name="failure_rate"),),
        hooks=(hook,),
        abort={"failure_rate": 1},
        warmup_s=5.0,
        think={"min": 1},
        users={"start_rate": 3, "max_rate": 20},
        http={"base": "http://shop"},
        contexts=(Named(name="users"),),
    )

    load, found = cut(one)
    task = calibration_task(task_of(one), [load])

    assert (found.sla, found.hooks, found.abort, found.warmup_s) == ((), (), {}, 0.0)
    assert (found.think, found.http, found.contexts) == (one.think, one.http, one.contexts)
    assert found.users == {"max_rate": 20}
    assert (task.title, task.tags) == ("Calibration of Shop", ())
    assert not task.subtasks[0].run_in_parallel

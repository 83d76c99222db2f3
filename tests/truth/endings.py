"""Cases of runs that end badly: what never began, failed beside the load, or lost its directory."""

from __future__ import annotations

import shutil
from typing import Any

from truth import checks
from truth.case import Case
from truth.planting import HOME, Ground, Planting

JUNIT = ("--export", f"junit={HOME}/junit.xml")
EXPORTS = f"{HOME}/exports"


def _calm(**more: Any) -> dict[str, Any]:
    return {
        "scenario": {"Dummy.dummy": {"sleep": 0.05}},
        "runner": {"constant": {"times": 20, "concurrency": 2}},
        **more,
    }


def _at_iteration(number: int) -> dict[str, Any]:
    return {"event": {"unit": "iteration", "at": [number]}}


def context_fails() -> Case:
    """Fail in the context of the first workload: the second is accounted for."""
    return Case(
        name="not-begun",
        planted="the first context fails, --stop-on-error",
        planting=Planting(
            workloads=[_calm(contexts={"no_set_up": {}}), _calm()],
            arguments=["--stop-on-error", *JUNIT],
        ),
        checks=[checks.not_begun(1, planned=20), checks.exits(2)],
    )


def _interrupt(ground: Ground) -> None:
    ground.await_load()
    ground.started.interrupt()


def interrupted() -> Case:
    """Press Ctrl-C in the first of two workloads: the second is accounted for."""
    runner = {"constant_for_duration": {"duration": 120, "concurrency": 2}}
    return Case(
        name="interrupted",
        planted="Ctrl-C in the first of two workloads",
        planting=Planting(
            workloads=[_calm(runner=runner), _calm()], arguments=JUNIT, during=_interrupt
        ),
        checks=[checks.not_begun(1, planned=20), checks.unsaid("lost"), checks.exits(130)],
    )


def _interrupt_twice(ground: Ground) -> None:
    ground.started.await_said("6 in flight")
    ground.started.interrupt()
    ground.started.await_said("Ctrl-C again stops at once")
    ground.started.interrupt()


def interrupted_twice() -> Case:
    """Press Ctrl-C twice while iterations run: they are lost, and no worker is at fault."""
    runner = {"constant_for_duration": {"duration": 120, "concurrency": 6}}
    return Case(
        name="interrupted-twice",
        planted="Ctrl-C twice while all 6 users of two processes wait 30 s",
        planting=Planting(
            config={"worker": {"processes": 2}},
            workloads=[{"scenario": {"Planted.sleep": {"sleep_s": 30}}, "runner": runner}],
            during=_interrupt_twice,
        ),
        checks=[
            # as many more may have been handed out, and nobody waits to learn whether they began
            checks.share("lost", 0.5, 1),
            checks.no_bound(),
            checks.unsaid("lost"),
            checks.exits(130),
        ],
    )


def warm_up_fails() -> Case:
    """Fail in `warm_up` of a scenario: its workload ends, the next one runs."""
    return Case(
        name="warm-up-fails",
        planted="warm_up of the first scenario raises",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Planted.no_warm_up": {}},
                    "runner": {"constant": {"times": 5, "concurrency": 1}},
                },
                _calm(),
            ]
        ),
        checks=[
            checks.number("accounting.ok", 0),
            checks.of(1, checks.number("accounting.ok", 20)),
            checks.says("warm_up of scenario Planted.no_warm_up failed"),
            checks.exits(2),
        ],
    )


def hook_fails() -> Case:
    """Fail in a hook: the load goes on, and the run is not all well."""
    hook = {"action": {"sys_call": "false"}, "trigger": _at_iteration(5)}
    return Case(
        name="hook-fails",
        planted="a hook that ends with code 1",
        planting=Planting(workloads=[_calm(hooks=[hook])]),
        checks=[
            checks.number("accounting.ok", 20),
            checks.note("hook"),
            checks.exits(5),
        ],
    )


def export_fails() -> Case:
    """Replace an export's folder by a file under load: results stay, and a note says so."""
    # a folder that is not there would be made again
    command = f"/bin/sh -c 'rmdir {EXPORTS} && touch {EXPORTS}'"
    hook = {"action": {"sys_call": command}, "trigger": _at_iteration(5)}
    return Case(
        name="export-fails",
        planted="a file takes the place of the target folder under load",
        planting=Planting(
            workloads=[_calm(hooks=[hook])],
            arguments=["--export", f"json={EXPORTS}/out.json"],
            folders=["exports"],
        ),
        checks=[
            checks.number("accounting.ok", 20),
            checks.note("export"),
            checks.exits(5),
        ],
    )


def report_refused() -> Case:
    """Name a report that cannot be written: it is refused before the load."""
    return Case(
        name="report-refused",
        planted="--report /proc/x.html",
        planting=Planting(workloads=[_calm()], arguments=["--report", "/proc/x.html"]),
        checks=[checks.says("/proc/x.html"), checks.no_workloads(), checks.exits(2)],
    )


def _remove_run(ground: Ground) -> None:
    ground.await_load()
    # what is written meanwhile may come back once
    shutil.rmtree(ground.run_folder(), ignore_errors=True)


def directory_removed() -> Case:
    """Remove the run directory under load: the run ends, says so and undoes contexts."""
    runner = {"constant_for_duration": {"duration": 120, "concurrency": 2}}
    return Case(
        name="directory-removed",
        planted="the run directory is removed under load",
        planting=Planting(
            workloads=[_calm(runner=runner, contexts={"file": {"path": f"{HOME}/made/one"}})],
            folders=["made"],
            during=_remove_run,
        ),
        checks=[
            checks.says("the run directory was removed"),
            checks.nothing_left(),
            checks.exits(3),
        ],
    )

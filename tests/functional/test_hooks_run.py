"""Hooks in a real run: they fire by time and by iteration, and never stop the load."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.runs import Site, checked, site

pytestmark = pytest.mark.functional

PLUGIN = """
import threading
from osbench.plugin import hook

class Hangs(hook.Hook):
    NAME = "hangs"

    def run(self, event):
        threading.Event().wait()

    def stop(self):
        threading.Event().wait()
"""


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def at(unit: str, *values: int) -> dict[str, object]:
    return {"event": {"unit": unit, "at": list(values)}}


def touch(path: Path) -> str:
    return f"{sys.executable} -S -c \"open('{path}', 'x')\""


def test_hooks_fire_and_one_that_hangs_does_not_keep_an_interrupted_run(here: Site) -> None:
    second, fifth = here.home / "second", here.home / "fifth"
    plugin = here.write("plugin.py", PLUGIN)
    pid = here.home / "pid"
    command = f"sh -c 'echo $$ > {pid}; exec sleep 600'"
    hooks = [
        {"action": {"sys_call": touch(second)}, "trigger": at("time", 1)},
        {"action": {"sys_call": touch(fifth)}, "trigger": at("iteration", 5), "description": "5th"},
        {"action": {"sys_call": "false"}, "trigger": {"periodic": {"unit": "time", "step": 1}}},
        {"action": {"sys_call": "true"}, "trigger": at("time", 1000)},
        {"action": {"hangs": {}}, "trigger": at("time", 2)},
        {"action": {"sys_call": command}, "trigger": at("iteration", 9)},
    ]
    runner = {"constant_for_duration": {"duration": 600, "concurrency": 2}}
    task = here.task(
        {"scenario": {"Dummy.dummy": {"sleep": 0.1}}, "runner": runner, "hooks": hooks}
    )

    run = here.begin(
        *("osbench-coord", "run", "--json", "--plugin-path", str(plugin), "--workers", "1", task)
    )
    run.wait_for(lambda: pid.exists() and pid.read_text().strip())
    run.wait_for(lambda: second.exists() and fifth.exists())
    run.wait_for(lambda: here.status().get("elapsed_s", 0) > 3.5)
    run.interrupt()
    done = run.finish()
    text = here.coord("results", "last", "--details")

    (workload,) = done.result["workloads"]
    once, counted, failing, never, hanging, ended = workload["hooks"]
    assert done.code == 130
    assert any("hook sys_call: " in note for note in done.result["notes"])
    assert checked(workload)["ok"] > 0
    assert once["summary"] == counted["summary"] == {"success": 1}
    assert once["results"][0]["triggered_by"] == {"event_type": "time", "value": 1}
    assert counted["results"][0]["triggered_by"] == {"event_type": "iteration", "value": 5}
    assert counted["description"] == "5th"
    assert counted["results"][0]["output"]["complete"][0]["data"][0] == "Return code: 0"
    failures = failing["summary"]["failed"]
    assert failures >= 2
    assert failing["results"][0]["error"]["msg"] == "the command returned 1"
    assert (never["results"], never["summary"]) == ([], {})
    assert f"sys_call by periodic: {failures} failed; the command returned 1" in text.out
    assert "sys_call by event: did not fire" in text.out
    marks = [mark for mark in here.marks(done.result["run_id"]) if mark["kind"] == "hook"]
    labels = sorted(mark["label"] for mark in marks)
    assert labels == ["5th", "hangs", *["sys_call"] * (failures + 2)]
    assert all(0 <= mark["from_s"] <= mark["to_s"] for mark in marks)
    # it begins when it is due, or later
    assert max(mark["from_s"] for mark in marks) >= 2.0
    assert hanging["results"][0]["error"]["etype"] == "NotEnded"
    assert ended["results"][0]["error"]["etype"] == "Failed"
    assert not Path(f"/proc/{int(pid.read_text())}").exists()
    here.await_nothing_left()

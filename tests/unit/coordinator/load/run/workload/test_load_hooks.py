"""Hooks of a load: they are waited for, and their results are in the journal and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.engines import until
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import HookConfig, Named
from osbench.coordinator.load.run.run_history import RunHistory
from osbench.coordinator.load.run.services import RunPort
from osbench.coordinator.load.run.workload import load_hooks
from osbench.coordinator.load.run.workload.load_hooks import LoadHooks
from osbench.coordinator.plugins.hooks.executor import HookReport
from osbench.coordinator.results.accounting.accounts import Accounts

HOOK = HookConfig(
    action=Named(name="sys_call", config="sh -c 'exit 3'"),
    trigger=Named(name="event", config={"unit": "iteration", "at": [1, 2]}),
)


class Desk:
    """A coordinator of a workload with one hook, on the journal of an earlier one."""

    def __init__(
        self, *journal: Any, phases: Mapping[str, str] | None = None, hook: HookConfig = HOOK
    ) -> None:
        self.journal = list(journal)
        self.history = RunHistory({0: "Boot"})
        for record in (*journal, {"do": "open", "epoch": 1}):
            self.history.apply(record)
        directory: Any = SimpleNamespace(decide=self.journal.extend)
        nothing: Any = None
        services: Any = SimpleNamespace(
            history=self.history,
            port=RunPort(directory, Accounts(), self.history, nothing, nothing),
            pool=SimpleNamespace(poll=lambda: None),
        )
        workload = SimpleNamespace(hooks=[hook], phases=phases or {})
        plan: Any = SimpleNamespace(number=0, name="Boot", workload=workload)
        self.hooks = LoadHooks(services, plan, Plugins(), "r1")

    def report(self) -> HookReport:
        (found,) = self.hooks.report()
        return found

    def values(self) -> list[tuple[str, int, str]]:
        return [
            (one.status, one.event.value, one.error.etype if one.error else "")
            for one in self.report().results
        ]


def test_a_hook_that_has_ended_is_in_the_journal_with_its_result() -> None:
    desk = Desk()
    desk.hooks.look(0.0, 1)

    until(lambda: desk.report().results[0].finished_at is not None)
    desk.hooks.look(0.1, 1)

    assert [record["do"] for record in desk.journal] == ["hook", "fired"]
    assert desk.report().counts == {"failed": 1}
    assert [one.finished_at is not None for one in desk.report().results] == [True]


def test_a_phase_is_in_the_journal_before_its_action_and_so_is_the_end_of_it(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    waiting = f"sh -c 'until [ -e {go} ]; do sleep 0.01; done; exit 3'"
    hook = replace(HOOK, action=Named(name="sys_call", config=waiting))
    desk = Desk(phases={"fault": "sys_call"}, hook=hook)
    desk.hooks.look(2.5, 1)

    begun = list(desk.journal)
    go.touch()
    until(lambda: desk.report().results[0].finished_at is not None)
    desk.hooks.look(2.6, 1)

    phase = {"do": "phase", "workload": 0, "phase": "fault"}
    assert [record["do"] for record in begun] == ["hook", "phase"]
    assert begun[1] == {**phase, "at_s": 2.5}
    assert [record["do"] for record in desk.journal[2:]] == ["fired", "phase"]
    assert desk.journal[3] == {**phase, "error": "the command returned 3"}


def test_a_resumed_run_reports_what_had_ended_and_what_had_not() -> None:
    first = Desk()
    first.hooks.look(0.0, 1)
    first.hooks.end(lambda: True)
    unended = {"do": "hook", "workload": 0, "hook": 0, "unit": "iteration", "values": [2]}
    result = first.report().results[0]

    again = Desk(*first.journal, {**unended, "seen": 2})
    again.hooks.look(5.0, 3)
    again.hooks.end(lambda: True)

    assert again.report().results[0] == result
    # it is not fired again: it may have done something
    assert again.values() == [("failed", 1, "Failed"), ("failed", 2, "CoordinatorGone")]
    assert again.report().counts == {"failed": 2}


def test_hook_actions_that_are_waited_for_are_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(load_hooks, "HOOKS_SAID_S", 0.0)
    looks = iter([True, True, False])
    desk = Desk()
    busy = SimpleNamespace(running=lambda: [1, 2], stop=lambda: None, take=lambda: [])
    monkeypatch.setattr(desk.hooks, "_hooks", [busy])
    monkeypatch.setattr(load_hooks, "HOOKS_STOP_S", 0.0)

    desk.hooks.end(lambda: next(looks))

    (said,) = caplog.messages
    assert said == (
        "Boot: the load is over; waiting up to 60 s for 2 hook actions that have not ended; "
        "Ctrl-C ends them"
    )

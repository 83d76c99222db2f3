"""A watcher that fails in any of its calls is a note; the run and the other watchers go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from osbench.common.errors import PluginError, Superseded, UsageError
from osbench.common.plugin import entry_points
from osbench.coordinator.load.run import watchers as watchers_module
from osbench.coordinator.load.run.watcher import Findings, Watcher
from osbench.coordinator.load.run.watchers import Watchers

CALLS = ("begin", "look", "load_over", "collect", "end")


class Recorder(Watcher):
    """Notes its calls; raises an error in one of them."""

    log: ClassVar[list[str]]
    error: ClassVar[Exception] = RuntimeError("planted")
    raises: ClassVar[str] = ""

    @classmethod
    def of(cls, plan: Any, *, resumed: bool) -> Recorder | None:
        return cls() if plan.watched else None

    def _call(self, name: str) -> None:
        self.log.append(f"{type(self).__name__} {name}")
        if name == self.raises:
            raise self.error

    def begin(self, run: Any) -> str:
        self._call("begin")
        return f"{type(self).__name__} watches"

    def look(self, loads: Any) -> str:
        self._call("look")
        return ""

    def load_over(self) -> None:
        self._call("load_over")

    def collect(self, outcomes: Any, selections: Any) -> Findings:
        self._call("collect")
        found = [*outcomes, type(self).__name__]
        return Findings(outcomes=found, notes=(f"note of {type(self).__name__}",), spans={1: ()})

    def end(self, *, resumable: bool) -> None:
        self._call(f"end {resumable}" if self.raises != "end" else "end")


class Plan:
    """The parts of a plan that the group of watchers looks at."""

    class conf:
        class metrics:
            prometheus = None

    otlp_address = query_url = ""
    watched = True


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Recorder]]:
    """The watchers `first`, `second` and `third`; `first` collects after `third`."""
    log: list[str] = []
    kinds = {
        name: type(name, (Recorder,), {"log": log, "AFTER": ("third",) if name == "first" else ()})
        for name in ("first", "second", "third")
    }
    monkeypatch.setattr(entry_points, "names", lambda _: list(kinds))
    monkeypatch.setattr(entry_points, "load_object", lambda _, name: kinds[name])
    monkeypatch.setattr(watchers_module, "load_spans", lambda _: {})
    return kinds


def played(watchers: Watchers) -> tuple[list[str], Mapping[str, str], Findings]:
    """Make all calls of a run; return sentences, troubles and findings."""
    said = watchers.begin(None)  # type: ignore[arg-type] # the recorders look at none
    troubles = watchers.look([])
    watchers.load_over()
    found = watchers.collect([], {})
    watchers.end(resumable=False)
    watchers.end(resumable=True)
    return said, troubles, found


def test_each_gets_the_outcomes_of_those_before(installed: dict[str, type[Recorder]]) -> None:
    said, troubles, found = played(Watchers(Plan(), resumed=False))  # type: ignore[arg-type]

    assert found.outcomes == ["second", "third", "first"]
    assert found.notes == ("note of second", "note of third", "note of first")
    assert said == ["second watches", "third watches", "first watches"]
    assert troubles == {}
    assert installed["first"].log.count("first end False") == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_failure_is_a_note_and_the_others_go_on(
    installed: dict[str, type[Recorder]], call: str
) -> None:
    installed["third"].raises = call

    _, troubles, found = played(Watchers(Plan(), resumed=False))  # type: ignore[arg-type]

    log = installed["first"].log
    sentence = "third: no findings after its failure: RuntimeError: planted"
    assert found.outcomes[0] == "second"
    assert found.outcomes[-1] == "first"
    assert (sentence in found.notes) == (call != "end")
    assert (troubles == {"third": sentence}) == (call == "look")
    # released once, and not called again
    assert sum(one.startswith("third end") for one in log) == 1
    assert [one for one in log if one.startswith("second")] == [
        f"second {name}" for name in ("begin", "look", "load_over", "collect", "end False")
    ]


@pytest.mark.parametrize("call", ["look", "collect"])
def test_another_coordinator_ends_the_run(installed: dict[str, type[Recorder]], call: str) -> None:
    installed["second"].raises, installed["second"].error = call, Superseded("elsewhere")

    with pytest.raises(Superseded):
        played(Watchers(Plan(), resumed=False))  # type: ignore[arg-type]


def test_settings_that_cannot_be_used_end_the_run_and_release_the_others(
    installed: dict[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(plan: Any, *, resumed: bool) -> None:
        raise UsageError("the address is taken")

    monkeypatch.setattr(installed["third"], "of", refuse)

    with pytest.raises(UsageError, match="taken"):
        Watchers(Plan(), resumed=False)  # type: ignore[arg-type]

    assert installed["first"].log == ["second end False"]


def test_a_run_that_asks_for_none_has_none(installed: dict[str, type[Recorder]]) -> None:
    plan = Plan()
    plan.watched = False

    said, troubles, found = played(Watchers(plan, resumed=True))  # type: ignore[arg-type]

    assert (said, troubles, found) == ([], {}, Findings(outcomes=[]))
    assert installed["first"].log == []


def test_an_option_whose_watcher_is_not_installed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entry_points, "names", lambda _: [])
    plan = Plan()
    plan.otlp_address = "127.0.0.1:4318"

    with pytest.raises(
        UsageError, match=r"--otlp or \[traces\] otlp_listen needs the watcher traces, which is not"
    ):
        Watchers(plan, resumed=False)  # type: ignore[arg-type]


def test_a_watcher_that_cannot_be_imported_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(group: str, name: str) -> type:
        raise PluginError(f"{group} {name} cannot be imported")

    monkeypatch.setattr(entry_points, "names", lambda _: ["broken"])
    monkeypatch.setattr(entry_points, "load_object", fail)

    with pytest.raises(PluginError, match="watcher broken"):
        Watchers(Plan(), resumed=False)  # type: ignore[arg-type]

"""Values that methods of a user's plug-in return are checked, and reported by file and method."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.plugins import INTERFACES, Plugins
from osbench.common.plugin.runner import Step
from osbench.common.plugin.scenario import NO_DATA, UserData

HEAD = """
from osbench.plugin import context, exporter, hook, runner, scenario, sla, trigger
"""
BASES = {kind: f"{kind}.{cls.__name__}" for kind, cls in INTERFACES.items()}
ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "step": (0.0, None, ()),
    "users": (0.0,),
    "check": (None,),
    "check_spans": (None,),
    "breach": (None, None),
    "judged_actions": ({},),
    "check_config": ({},),
    "notes": ({},),
    "due": (0, 1),
    "send": (None, "http://h"),
    "export": (None, Path()),
    "export_failure": ({}, Path()),
    "run": (None,),
}


def made(tmp_path: Path, kind: str, body: str) -> Any:
    """The class of a plug-in of `kind` named `mine`, with methods of that text."""
    text = "\n".join(f"    {line}" for line in body.splitlines())
    (tmp_path / "mine.py").write_text(
        f"{HEAD}\n\nclass Mine({BASES[kind]}):\n    NAME = 'mine'\n{text}\n"
    )
    return Plugins((str(tmp_path / "mine.py"),)).get(kind, "mine")


def instance(kind: str, cls: Any) -> Any:
    return cls({}, None, {}) if kind == "context" else cls({})


@pytest.mark.parametrize(
    ("kind", "method", "value", "wanted"),
    [
        ("sla", "check", "True", "must return self.verdict"),
        ("sla", "check", "sla.Verdict(criterion='x', success=1, detail='')", "self.verdict"),
        ("sla", "breach", "False", "or None"),
        ("sla", "selections", "'shop'", "a list of SpanSelection"),
        ("sla", "check_spans", "None", "must return self.verdict"),
        ("runner", "step", "runner.Step(users=2)", "a tuple of integers"),
        ("runner", "step", "runner.Step(arrivals=[2.0, 1.0])", "ascending seconds"),
        ("runner", "step", "runner.Step(arrivals=[float('nan')])", "ascending seconds"),
        ("runner", "step", "runner.Step(arrivals=3)", "ascending seconds"),
        ("runner", "step", "runner.Step(stop_s='1')", "stop_s, seconds"),
        ("runner", "step", "None", "a Step"),
        ("runner", "users", "1.5", "an integer"),
        ("runner", "asked", "[(1, 2, 3)]", "pairs of numbers"),
        ("trigger", "due", "1", "a list of integers"),
        ("trigger", "due", "None", "a list of integers"),
        ("hook", "run", "(x for x in ())", "it cannot be `async`"),
        ("context", "setup", "(x for x in ())", "it cannot be `async`"),
        ("exporter", "send", "3", "a text"),
        ("exporter", "export_failure", "None", "True or False"),
    ],
)
def test_a_wrong_value_is_reported_with_file_and_method(
    tmp_path: Path, kind: str, method: str, value: str, wanted: str
) -> None:
    cls = made(tmp_path, kind, f"def {method}(self, *_):\n    return {value}")

    with pytest.raises(PluginError) as refusal:
        getattr(instance(kind, cls), method)(*ARGUMENTS.get(method, ()))

    assert str(refusal.value).startswith(f"mine.py: Mine.{method} returned ")
    assert wanted in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("sla", "check_config"),
        ("sla", "judged_actions"),
        ("runner", "check"),
        ("runner", "notes"),
        ("context", "check_config"),
        ("hook", "check_config"),
        ("trigger", "check_config"),
    ],
)
def test_methods_of_the_class_are_checked_too(tmp_path: Path, kind: str, method: str) -> None:
    cls = made(tmp_path, kind, f"@classmethod\ndef {method}(cls, config):\n    return 'wrong'")

    with pytest.raises(PluginError, match=f"Mine.{method} returned 'wrong'"):
        getattr(cls, method)({})


@pytest.mark.parametrize("name", ["timeout_s", "concurrency", "planned", "lasts_s", "ramp_up_s"])
def test_properties_of_runners_are_checked_too(tmp_path: Path, name: str) -> None:
    cls = made(tmp_path, "runner", f"@property\ndef {name}(self):\n    return '3'")

    with pytest.raises(PluginError, match=f"Mine.{name} returned '3'"):
        getattr(cls({}), name)


def test_an_exception_of_a_runner_is_reported_with_its_line(tmp_path: Path) -> None:
    cls = made(tmp_path, "runner", "def step(self, elapsed_s, totals, capacity):\n    return 1 / 0")

    with pytest.raises(PluginError) as refusal:
        cls({}).step(0.0, None, ())

    assert str(refusal.value) == (
        "mine.py: Mine.step raises ZeroDivisionError: division by zero, line 8"
    )


def test_right_values_pass_and_the_class_stays_what_it_was(tmp_path: Path) -> None:
    body = (
        "def step(self, elapsed_s, totals, capacity):\n"
        "    return runner.Step(users=(2,), stop_s=1.5, done=elapsed_s > 3)\n"
        "def users(self, elapsed_s):\n    return super().users(elapsed_s) + 1\n"
    )
    cls = made(tmp_path, "runner", body)

    assert cls({}).step(0.0, None, (4,)) == Step(users=(2,), stop_s=1.5)
    assert cls({}).users(0.0) == 2
    assert (cls.__name__, cls.__module__) == ("Mine", cls.__mro__[1].__module__)
    assert cls.planned_s is INTERFACES["runner"].__dict__["planned_s"]


def test_a_missing_column_of_users_names_those_that_there_are() -> None:
    with pytest.raises(KeyError, match="the workload has no data file of users"):
        NO_DATA["name"]
    with pytest.raises(KeyError, match="has no column 'name', only mail, password"):
        UserData(mail="a", password="b")["name"]


@pytest.mark.parametrize("users", ["None", "(1, 1, 1)", "()"])
def test_a_closed_runner_requests_users_of_each_worker(tmp_path: Path, users: str) -> None:
    cls = made(
        tmp_path, "runner", f"def step(self, *_, **__):\n    return runner.Step(users={users})"
    )

    with pytest.raises(PluginError, match="users must have as many numbers as `capacity`, 2"):
        cls({}).step(0.0, None, (4, 4))
    with pytest.raises(PluginError, match="as `capacity`, 4"):
        cls({}).step(elapsed_s=0.0, totals=None, capacity=(4, 4, 4, 4))


def test_a_constructor_that_fails_is_reported_with_its_line(tmp_path: Path) -> None:
    cls = made(tmp_path, "sla", "def __init__(self, config):\n    self.x = config['x']")

    with pytest.raises(PluginError, match=r"mine.py: Mine.__init__ raises KeyError: 'x', line 8"):
        cls({})


def test_a_schema_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"mine.py: Mine.CONFIG_SCHEMA is None; it must be"):
        made(tmp_path, "hook", "CONFIG_SCHEMA = None")

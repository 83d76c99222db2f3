"""Arguments of a scenario are checked before the load."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from osbench.common.plugin import signature
from osbench.common.plugin.atomic import action_timer
from osbench.common.plugin.scenario import Scenario


def problems(name: str, method: Callable[..., Any], args: dict[str, Any]) -> list[str]:
    return [
        *signature.name_problems(name, method, args),
        *signature.type_problems(name, method, args).values(),
    ]


class Example(Scenario):
    def plain(self, url: str, times: int = 1, wait: float | None = None) -> None: ...

    def open(self, *, url: str, **more: Any) -> None: ...

    def nothing(self) -> None: ...

    @action_timer("timed")
    def timed(self, size: int, names: list[str] | None = None) -> None: ...


@pytest.mark.parametrize(
    ("method", "args"),
    [
        (Example.plain, {"url": "x"}),
        (Example.plain, {"url": "x", "times": 2, "wait": 1}),
        (Example.plain, {"url": "x", "wait": None}),
        (Example.open, {"url": "x", "other": 1}),
        (Example.nothing, {}),
        (Example.timed, {"size": 1, "names": ["a"]}),
    ],
)
def test_arguments_that_fit(method: Callable[..., Any], args: dict[str, Any]):
    assert problems("Example.it", method, args) == []


@pytest.mark.parametrize(
    ("method", "args", "said"),
    [
        (Example.plain, {}, ["argument 'url' of X.y is missing"]),
        (
            Example.plain,
            {"ulr": 1, "times": "2"},
            [
                "argument 'url' of X.y is missing",
                "X.y has no argument 'ulr'; did you mean url?",
                "argument 'times' of X.y must be int, not '2'",
            ],
        ),
        (Example.open, {"more": 1}, ["argument 'url' of X.y is missing"]),
        (Example.nothing, {"zzz": 1}, ["X.y has no argument 'zzz'"]),
        (Example.timed, {"size": True}, ["argument 'size' of X.y must be int, not True"]),
        (Example.timed, {"size": 1.5}, ["argument 'size' of X.y must be int, not 1.5"]),
        (
            Example.plain,
            {"url": "", "wait": "1"},
            ["argument 'wait' of X.y must be float | None, not '1'"],
        ),
    ],
)
def test_arguments_that_do_not(method: Callable[..., Any], args: dict[str, Any], said: list[str]):
    assert problems("X.y", method, args) == said


def test_annotations_that_cannot_be_read_check_nothing():
    def run(self, size: "NotThere", other: int) -> None:  # noqa: F821 - the point of the test
        """Annotated for type checkers alone."""

    assert problems("X.y", run, {"size": 1, "other": "x"}) == []


#: Without quotes older Pythons do not define such a method.
LATE = """
def run(self, size: {name}, other: int = 1) -> {name}:
    pass
"""


def test_names_that_only_type_checkers_know_leave_the_names_of_arguments():
    name = "NotThere" if sys.version_info >= (3, 14) else "'NotThere'"
    module: dict[str, Any] = {}
    exec(LATE.format(name=name), module)

    said = problems("X.y", module["run"], {"sizes": 1})

    assert said == [
        "argument 'size' of X.y is missing",
        "X.y has no argument 'sizes'; did you mean size?",
    ]

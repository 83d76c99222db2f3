"""Records Rally's atomic actions as they begin and end.

Rally collects actions in a list of the scenario, which its services share. Here that list holds the
iteration's recorder, and Rally's timer is patched to call it. So the actions of a timed-out
iteration are kept, and the span of an action is open while its requests are made.
"""

from __future__ import annotations

import functools
import importlib
import threading
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, Recorder, pause_span

#: Attribute of a Rally scenario that holds the recorder before its constructor runs.
RECORDER = "_osbench_recorder"
#: Attribute of Rally's timer that marks it as patched.
MARK = "_osbench_told"

_LOCK = threading.Lock()


class Actions(list[Any]):
    """A list that replaces a Rally scenario's list of actions and has the recorder."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder


def install() -> None:
    """Patch Rally's timers and pauses in this process to call the recorders of iterations.

    A second call does nothing.
    """
    atomic: Any = importlib.import_module("rally.task.atomic")
    with _LOCK:
        if not hasattr(atomic.ActionTimer, MARK):
            setattr(atomic.ActionTimer, MARK, True)
            _patch_timer(atomic.ActionTimer)
            _patch_mixin(atomic.ActionTimerMixin)
            scenario: Any = importlib.import_module("rally.task.scenario")
            _patch_pause(scenario.Scenario)


def _patch_timer(timer: Any) -> None:
    enter, leave = timer.__enter__, timer.__exit__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        entered = enter(self)
        actions = self.instance._atomic_actions
        if type(actions) is Actions:
            self._osbench_timer = ActionTimer(actions, self.name)
            self._osbench_timer.__enter__()
        return entered

    @functools.wraps(leave)
    def __exit__(self: Any, *raised: Any) -> Any:
        ours = vars(self).pop("_osbench_timer", None)
        if ours is not None:
            ours.__exit__(*raised)
        return leave(self, *raised)

    timer.__enter__, timer.__exit__ = __enter__, __exit__


def _patch_pause(scenario: Any) -> None:
    sleep = scenario.sleep_between

    @functools.wraps(sleep)
    def sleep_between(self: Any, *bounds: Any, **named: Any) -> Any:
        recorder = vars(self).get(RECORDER)
        if recorder is None:
            return sleep(self, *bounds, **named)
        with pause_span(recorder):
            return sleep(self, *bounds, **named)

    scenario.sleep_between = sleep_between


def _patch_mixin(mixin: Any) -> None:
    make = mixin.__init__

    @functools.wraps(make)
    def __init__(self: Any) -> None:
        make(self)
        recorder = vars(self).get(RECORDER)
        if recorder is not None:
            self._atomic_actions = Actions(recorder)

    mixin.__init__ = __init__

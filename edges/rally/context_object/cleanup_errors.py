"""Collects errors of Rally's cleanup, which only logs the resources that it could not remove."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

#: Loggers of such errors: threads that delete in parallel, the generic cleanup, the contexts.
_SOURCES = (
    "rally.common.broker",
    "rally_openstack.task.cleanup",
    "rally_openstack.task.contexts",
)
#: Limits: number of messages, characters of each.
_MOST, _LONGEST = 20, 300


class CleanupErrors(logging.Handler):
    """Context manager that collects warnings of Rally's cleanup in `messages`, at most 20.

    At the end a last message gives the number of further warnings, if any. `kinds` has the kinds
    of resources that they are about, as Rally names them, such as "zaqar.queues"; "" for warnings
    of other code than the generic cleanup.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self.kinds: set[str] = set()
        self._kind = ""
        self._restore: Callable[[], None] = lambda: None
        self._levels: dict[str, int] = {}
        self._more = 0

    def __enter__(self) -> Self:
        for name in _SOURCES:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            if not logger.isEnabledFor(logging.WARNING):
                logger.setLevel(logging.WARNING)
            logger.addHandler(self)
        self._follow()
        return self

    def _follow(self) -> None:
        """Note the kind of resources that Rally's generic cleanup is removing."""
        try:
            cls: Any = importlib.import_module(
                "rally_openstack.task.cleanup.manager"
            ).SeekAndDestroy
        except ImportError:
            return
        exterminate = cls.exterminate

        def follow(this: Any) -> None:
            self._kind = f"{this.manager_cls._service}.{this.manager_cls._resource}"
            try:
                exterminate(this)
            finally:
                self._kind = ""

        cls.exterminate = follow
        self._restore = lambda: setattr(cls, "exterminate", exterminate)

    def __exit__(
        self,
        etype: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()
        for name, level in self._levels.items():
            logger = logging.getLogger(name)
            logger.removeHandler(self)
            logger.setLevel(level)
        if self._more:
            self.messages.append(f"and {self._more} more")

    def emit(self, record: logging.LogRecord) -> None:
        """Add a logged warning to `messages`, cut to 300 characters, or count it if there are 20.

        Adds its kind to `kinds`. A warning about a resource that is gone is ignored.
        """
        # the message is logged inside the exception handler
        if _is_gone(sys.exc_info()[1]):
            return
        self.kinds.add(self._kind)
        if len(self.messages) >= _MOST:
            self._more += 1
            return
        self.messages.append(" ".join(record.getMessage().split())[:_LONGEST])


def _is_gone(error: BaseException | None) -> bool:
    if error is None:
        return False
    status = [getattr(error, name, None) for name in ("http_status", "status_code", "code")]
    return 404 in status or type(error).__name__ == "NotFound"

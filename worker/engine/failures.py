"""The different failures of a workload in this process, each formatted, masked and shipped once."""

from __future__ import annotations

import errno
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from osbench.common.errors import KindError, kind_of
from osbench.common.ports import threads as threading
from osbench.common.secrets.masking import mask_text

#: Limits of what is kept of one failure, characters.
MESSAGE_LIMIT = 1000
TRACEBACK_LIMIT = 8000
#: Characters at either end of a text in which secrets are looked for, before it is cut.
MASKED_CHARS = 64_000
#: Characters of a member of a group of exceptions that are kept at least, and the causes of one
#: that are named at most.
MEMBER_LEAST = 60
CAUSES_MOST = 5
#: Distinct failures of one workload and process; the rest share one entry.
DISTINCT_LIMIT = 1000
#: Resources that the process or its host may lack, by the error number of the system.
RESOURCES = {
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.EADDRNOTAVAIL: "ports",
    errno.ENOBUFS: "memory of the network",
}
#: Exceptions that lie behind one which are looked at.
CAUSES = 10
#: Modules whose frames are left out of tracebacks: they enclose every scenario.
ENCLOSING = {
    f"osbench.worker.engine.{name}"
    for name in (
        "body",
        "closed_coroutines",
        "coroutine_engine",
        "engine",
        "loop.loop_thread",
        "open_coroutines",
        "thread_engine",
    )
}

#: A frame and the number of the line at which it is.
Place = tuple[FrameType, int]


def places_of(frame: FrameType | None) -> list[Place]:
    """Return a thread's stack, innermost first, from `frame` outwards to the engine's first frame.

    The engine's frame and its callers are left out. Empty if `frame` is None.
    """
    found: list[Place] = []
    while frame is not None and frame.f_globals.get("__name__") not in ENCLOSING:
        found.append((frame, frame.f_lineno or 0))
        frame = frame.f_back
    return found


def place_words(places: Sequence[Place], module: str) -> str:
    """Return the line of code at which a stack is, as "file:line (function)".

    The innermost frame in `module`, the scenario's, counts. If another frame is the innermost of
    all, it follows as ", in file:line (function)". Without a frame in `module` only the innermost
    of all is named. `places` is innermost first, not empty.
    """
    own = [place for place in places if place[0].f_globals.get("__name__") == module]
    found = _place_text((own or places)[0])
    return found if not own or own[0] == places[0] else f"{found}, in {_place_text(places[0])}"


def _place_text(place: Place) -> str:
    frame, line = place
    return f"{Path(frame.f_code.co_filename).name}:{line} ({frame.f_code.co_qualname})"


def message_of(error: BaseException) -> str:
    """Return `str(error)`; if that raises, a text that says so. Never raises."""
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001 - SystemExit would end the user's thread
        return f"(its message cannot be formed: {type(broken).__name__})"


def reported_error(error: BaseException) -> tuple[BaseException, str]:
    """Return the exception to report instead of `error`, and its message. Never raises.

    A group of one exception without a cause, as `asyncio.TaskGroup` raises it, is replaced by its
    member. The message of another group lists its members and causes; the message of an exception
    lists its causes if any cause is a group. So it suffices if the traceback is cut.
    """
    while _is_shell(error):
        (error,) = error.exceptions  # type: ignore[attr-defined] # it is a group
    if isinstance(error, BaseExceptionGroup):
        return error, _listed_members(error)
    message = message_of(error)
    causes = list(_causes(error))
    if any(isinstance(cause, BaseExceptionGroup) for cause in causes):
        message += "".join(f" (from {_error_text(cause)})" for cause in causes)
    return error, message


def _is_shell(error: BaseException) -> bool:
    alone = isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1
    return alone and error.__cause__ is None


def _listed_members(group: BaseExceptionGroup[BaseException]) -> str:
    """Return the message to report for a group: its own, its members with counts, and its causes.

    Members are sorted, so that the message does not vary. If they are long, each is cut to an equal
    share of the limit, at least `MEMBER_LEAST` characters.
    """
    kinds = Counter(_members(group))
    said = [f"{kind} (x {times})" if times > 1 else kind for kind, times in sorted(kinds.items())]
    if sum(map(len, said)) > MESSAGE_LIMIT // 2:
        # each has its share: what is cut at the end of the message would be missing
        most = max(MEMBER_LEAST, MESSAGE_LIMIT // (len(said) + 1))
        said = [one if len(one) <= most else f"{one[: most - 3]}..." for one in said]
    cause = "".join(f" (from {_error_text(one)})" for one in _causes(group))
    return f"{group.message}: {'; '.join(said)}{cause}"


def resource_of(error: BaseException | None) -> str:
    """Return the resource that the system lacked, such as "open files"; "" if none of `RESOURCES`.

    Checks number and message of each OSError among `error` and the exceptions behind it (its cause,
    else its context), at most `CAUSES` in all.
    """
    for _ in range(CAUSES):
        if error is None:
            break
        if isinstance(error, OSError):
            said = message_of(error)
            for code, resource in RESOURCES.items():
                # errors of clients keep the text of the system, and not always its number
                if error.errno == code or os.strerror(code) in said:
                    return resource
        error = error.__cause__ or error.__context__
    return ""


def _members(group: BaseExceptionGroup[BaseException]) -> Iterator[str]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup) and one.__cause__ is None:
            yield from _members(one)
        else:
            yield _error_text(one) + "".join(
                f" (from {_error_text(cause)})" for cause in _causes(one)
            )


def _error_text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__}: {error.message}: {'; '.join(sorted(_members(error)))}"
    return f"{type(error).__name__}: {message_of(error)}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    cause = error.__cause__
    while cause is not None and id(cause) not in seen and len(seen) <= CAUSES_MOST:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def printable(text: str) -> str:
    """Return `text` with each lone surrogate as an escape, so that UTF-8 can encode it.

    Names of files that are not UTF-8 contain lone surrogates.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def awaiting_places(awaited: Any) -> list[Place]:
    """Return the stack of a suspended coroutine, innermost first, without the engine's frames.

    `awaited` is the coroutine. Empty if it is None or has ended.
    """
    found: list[Place] = []
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None and frame.f_globals.get("__name__") not in ENCLOSING:
            found.append((frame, frame.f_lineno or 0))
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return found[::-1]


class Failures:
    """Numbers of the different failures of one workload in this process, with their texts.

    Exceptions of equal type, message and stack share a number; messages that differ only in numbers
    and ids are equal. Beyond `DISTINCT_LIMIT` failures the rest share the entry "(other)". Texts
    are masked and cut. Thread-safe.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._fresh: list[list[Any]] = []
        self._lock = threading.Lock()
        #: Failures beyond the limit, and messages or tracebacks that were shortened.
        self.cut = 0
        #: Hides secrets in a text, called where the failure is numbered.
        self.masked: Callable[[str], str] = mask_text

    def number(self, error: BaseException, message: str) -> int:
        """Return the number, from 1, that all failures like this exception share.

        A new failure is queued for `fresh`. `message` is its message, as of `reported_error`.
        Removes the traceback of `error`. Never raises.
        """
        places = []
        step = error.__traceback__
        while step is not None:
            places.append((step.tb_frame.f_code, step.tb_lineno))
            step = step.tb_next
        # exceptions that differ only in numbers and ids share a number
        cut = message[:MESSAGE_LIMIT]
        like = error.kind if isinstance(error, KindError) else kind_of(cut)
        key = (type(error), like[:MESSAGE_LIMIT], tuple(places))
        known = self._numbers.get(key)
        if known is None:
            # formatting is by far the most expensive step: skipped if the text is not kept
            text = "" if self._full else _traceback_text(error)
            known = self._add(key, type(error).__name__, message, text, resource_of(error))
        # an exception object that is raised again would accumulate tracebacks
        BaseException.with_traceback(error, None)
        return known

    def timed_out(self, limit_s: float, stack: Sequence[Place]) -> int:
        """Return the number, from 1, that all timeouts at this stack share; queue a new one.

        `stack` is innermost first. `limit_s` is for the message of a new one. Never raises.
        """
        key = ("timeout", tuple((frame.f_code, line) for frame, line in stack))
        known = self._numbers.get(key)
        if known is not None:
            return known
        text = "" if self._full else _stack_text(stack)
        return self._add(key, "IterationTimeout", f"no end after {limit_s:g} s", text)

    @property
    def _full(self) -> bool:
        return len(self._numbers) >= DISTINCT_LIMIT

    def _add(self, key: Any, etype: str, message: str, text: str, resource: str = "") -> int:
        with self._lock:
            if key in self._numbers:
                return self._numbers[key]
            if self._full:
                self.cut += 1
                key, etype, message, text = "other", "(other)", "more than 1,000 kinds", ""
                if key in self._numbers:
                    return self._numbers[key]
            # masked before they are cut: nothing recognizes the rest of a secret
            message = self.masked(_shortened_text(message, 2 * MASKED_CHARS))
            text = self.masked(_shortened_text(text, 2 * MASKED_CHARS))
            if len(message) > MESSAGE_LIMIT or len(text) > TRACEBACK_LIMIT:
                self.cut += 1
                message, text = message[:MESSAGE_LIMIT], _shortened_text(text, TRACEBACK_LIMIT)
            number = len(self._numbers) + 1
            self._numbers[key] = number
            texts = tuple(map(printable, (etype, message, text)))
            self._keep(number, texts)
            self._fresh.append([number, *texts, *([resource] if resource else ())])
            return number

    def _keep(self, number: int, texts: tuple[str, ...]) -> None:
        """Called with the lock held; here nothing is kept."""

    def texts(self, number: int) -> tuple[str, ...]:
        """Return type, message and traceback of failure `number`; here always ()."""
        return ()

    def fresh(self) -> list[list[Any]]:
        """Remove and return the failures added since the last call, by ascending number.

        Each is [number, type, message, traceback], followed by the resource that the system lacked,
        if any.
        """
        with self._lock:
            found, self._fresh = self._fresh, []
            return found


class KeptFailures(Failures):
    """Failures whose texts stay readable by `texts`: for runners whose own code reads results."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[int, tuple[str, ...]] = {}

    def texts(self, number: int) -> tuple[str, ...]:
        """Return type, message and traceback of failure `number`; () if unknown."""
        return self._texts.get(number, ())

    def _keep(self, number: int, texts: tuple[str, ...]) -> None:
        self._texts[number] = texts


def _traceback_text(error: BaseException) -> str:
    shown: TracebackType | None = error.__traceback__
    while shown is not None and shown.tb_frame.f_globals.get("__name__") in ENCLOSING:
        shown = shown.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, shown))
    except Exception as broken:  # noqa: BLE001 - methods of a scenario's exception may raise
        return f"(its traceback cannot be formed: {type(broken).__name__})"


def _stack_text(stack: Sequence[Place]) -> str:
    try:
        return "".join(traceback.StackSummary.extract(reversed(stack)).format())
    except Exception as broken:  # noqa: BLE001 - the thread is running while its stack is read
        return f"(its stack cannot be formed: {type(broken).__name__})"


def _shortened_text(text: str, limit: int) -> str:
    """Return `text` with its middle replaced by "..." so that it has `limit` characters.

    Unchanged if it is not longer. The outermost and innermost frames of a traceback remain.
    """
    if len(text) <= limit:
        return text
    gap = "\n  ...\n"
    half = (limit - len(gap)) // 2
    return text[: limit - len(gap) - half] + gap + text[-half:]

"""Requests to change or end the load of a run, and replies: files of its directory.

`control` and `abort` write a request, the coordinator takes it by renaming it, and replies in a
file next to it. A request that was not taken can be withdrawn; whichever renames or deletes it
first wins. No process is looked for or signalled: a coordinator in another container, or on another
host that shares the directory, gets the request too.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import read_regular
from osbench.common.ports import chance as secrets
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: Folder of the run directory.
FOLDER = "controls"
#: Kinds of requests; the name of each begins with its kind.
LOAD, ABORT = "load", "abort"
#: How long a coordinator may take to see a request, and to reply to one that it has, seconds.
SEEN_S = 30.0
ANSWERED_S = 60.0
#: Between two looks at the reply, and of a coordinator at requests to end the run, seconds.
LOOK_S = 0.05
WATCH_S = 0.2
#: A coordinator that has just taken a request to end its run replies at once, seconds.
_TAKEN_S = 1.0
#: Longest wait for the end of the thread that looks, seconds.
_JOIN_S = 5.0
#: Largest request or reply, bytes.
MOST_BYTES = 64 << 10
_ASKED, _TAKEN, _ANSWERED, _DRAFT = ".asked", ".taken", ".answered", ".draft"


def ask(directory: RunDirectory, request: Mapping[str, Any]) -> str:
    """Send a change of the load to the coordinator of a run, and return its reply.

    `request`: the workload and the change, with the keys that `Steering` reads. Raises UsageError
    if no coordinator holds the run, or it refuses, ends, does not take the request within `SEEN_S`
    seconds, or does not reply within `ANSWERED_S`. Raises OsbenchError if the request cannot be
    written.
    """
    name = directory.path.name
    response = _send_request(directory, LOAD, request, SEEN_S, ANSWERED_S)
    if response is None:
        raise UsageError(
            f"run {name} has not taken the request within {SEEN_S:g} s: it has no load to change "
            f"now, or its coordinator is stopped; see `osbench-coord status {name}`"
        )
    return response


def abort(directory: RunDirectory, *, now: bool = False, timeout_s: float = SEEN_S) -> str:
    """Request that the coordinator of a run ends it, as Ctrl-C does; with `now` as two Ctrl-C do.

    Returns its reply. Raises UsageError if no coordinator holds the run, or it refuses, ends or
    does not reply. Raises OsbenchError if the request cannot be written, and with exit code 3 if it
    is not taken within `timeout_s` seconds, after which it is withdrawn.
    """
    response = _send_request(directory, ABORT, {"now": now}, timeout_s, timeout_s + _TAKEN_S)
    if response is None:
        error = OsbenchError(
            f"the coordinator of run {directory.path.name} has not taken the request within "
            f"{timeout_s:g} s: it may be stopped, or run on a host that sees new files late; try "
            "again with a longer --timeout, or press Ctrl-C in its terminal"
        )
        error.exit_code = 3
        raise error
    return response


def _send_request(
    directory: RunDirectory,
    kind: str,
    request: Mapping[str, Any],
    seen_s: float,
    answered_s: float,
) -> str | None:
    """Write a request, wait for the reply of the coordinator and return its text.

    Returns None if the request was not taken within `seen_s` seconds; it is withdrawn then. `kind`:
    `LOAD` or `ABORT`. Deletes the files of request and reply. Raises UsageError if no coordinator
    holds the run, the reply is an error, or none came before the coordinator ended or within
    `answered_s` seconds. Raises OsbenchError if the request cannot be written.
    """
    if not directory.has_coordinator():
        raise UsageError(
            f"run {directory.path.name} is not running on this machine; use its coordinator's host "
            "while it runs"
        )
    folder = directory.path / FOLDER
    # by time, so that requests are taken in the order in which they were made
    place = folder / f"{kind}-{time.time_ns():020}-{secrets.token_hex(4)}"
    asked, answered = place.with_suffix(_ASKED), place.with_suffix(_ANSWERED)
    taken = place.with_suffix(_TAKEN)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _write(asked, request)
    except OSError as error:
        raise OsbenchError(
            f"cannot write {asked}: {error.strerror}; free space, or make its folder writable"
        ) from None
    try:
        return _answer(directory, asked, answered, seen_s, answered_s)
    finally:
        # the taken one first: without it no reply is written any more
        for path in (taken, asked, answered):
            path.unlink(missing_ok=True)


def _answer(
    directory: RunDirectory, asked: Path, answered: Path, seen_s: float, answered_s: float
) -> str | None:
    name = directory.path.name
    begun = time.monotonic()
    taken = False
    while True:
        gone = not directory.has_coordinator()
        found = _read_document(answered)
        if found is not None:
            if "error" in found:
                raise UsageError(str(found["error"]))
            return str(found.get("said", ""))
        if gone:
            raise UsageError(
                f"run {name} ended before it responded; see `osbench-coord status {name}`"
            )
        waited_s = time.monotonic() - begun
        if not taken and waited_s > seen_s:
            try:
                asked.unlink()
            except FileNotFoundError:
                taken = True
            else:
                return None
        if waited_s > answered_s:
            raise UsageError(
                f"run {name} does not respond; see later in its report whether its load changed"
            )
        time.sleep(LOOK_S)


class ControlRequests:
    """Takes requests of one kind from a run directory and writes replies to them.

    Used by the coordinator of the run. Kinds are `LOAD` and `ABORT`.
    """

    def __init__(self, directory: RunDirectory, kind: str = LOAD) -> None:
        self._folder = directory.path / FOLDER
        self._kind = kind

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (id, content) of each waiting request of the kind, oldest first; {} if unreadable.

        A request is taken when it is yielded: it can no longer be withdrawn then. Yields nothing if
        the folder is missing or cannot be read.
        """
        try:
            places = sorted(self._folder.iterdir())
        except OSError:
            return
        for place in places:
            if place.suffix != _ASKED or place.stem.partition("-")[0] != self._kind:
                continue
            taken = place.with_suffix(_TAKEN)
            try:
                place.rename(taken)
            except OSError:
                # withdrawn meanwhile
                continue
            yield place.stem, _read_document(taken) or {}

    def answer(self, request: str, **fields: str) -> None:
        """Write the reply to request `request` (its id), and delete the request.

        `fields` is either `said`, a message, or `error`, the reason of a refusal. Nothing is
        written if the requester does not wait any more. Errors of the file system are ignored.
        """
        place = self._folder / request
        with contextlib.suppress(OSError):
            # missing if the requester has given up, and would not remove a reply
            place.with_suffix(_TAKEN).unlink()
            _write(place.with_suffix(_ANSWERED), fields)


class AbortWatch:
    """A thread of the coordinator that takes requests to end the run, in all phases of the run.

    The thread runs inside the `with` block and looks every `WATCH_S` seconds.
    """

    def __init__(self, directory: RunDirectory, end: Callable[[bool], None]) -> None:
        """`end` ends the run, at once if its argument is True; it is called in the thread.

        The directory may be made later. A request that exists on entry was for an earlier
        coordinator: it gets an error as its reply.
        """
        self._name = directory.path.name
        self._requests = ControlRequests(directory, ABORT)
        self._end = end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="abort", daemon=True)

    def __enter__(self) -> Self:
        for request, _ in self._requests.take():
            self._requests.answer(request, error=f"run {self._name} was resumed in between")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(_JOIN_S)

    def _watch(self) -> None:
        while not self._over.wait(WATCH_S):
            for request, asked in self._requests.take():
                now = bool(asked.get("now"))
                self._end(now)
                how = "are abandoned" if now else "end, then it reports"
                said = f"run {self._name} is ending: running iterations {how}"
                self._requests.answer(request, said=said)


def _write(place: Path, fields: Mapping[str, Any]) -> None:
    draft = place.with_suffix(_DRAFT)
    draft.write_text(json.dumps(fields))
    draft.rename(place)


def _read_document(place: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file is missing or is not such an object."""
    try:
        document = read_json(read_regular(place, MOST_BYTES))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None

"""Requests to change the load of a run: files of its directory, one each, and their answers.

`control` writes a request, the coordinator takes it by renaming it, and answers in a file beside
it. A request that was not taken can be withdrawn; one of both renames or deletes it first.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.regular_files import read_regular
from osbench.coordinator.storage.run_directory import RunDirectory

#: Folder of the run directory.
FOLDER = "controls"
#: How long a coordinator may take to see a request, and to answer one that it has, seconds.
SEEN_S = 30.0
ANSWERED_S = 60.0
#: Between two looks at the answer, seconds.
LOOK_S = 0.05
#: Largest request or answer, bytes.
MOST_BYTES = 64 << 10
_ASKED, _TAKEN, _ANSWERED, _DRAFT = ".asked", ".taken", ".answered", ".draft"


def ask(directory: RunDirectory, request: Mapping[str, Any]) -> str:
    """Ask the coordinator of a run for a change; returns its answer.

    Raises UsageError where it refuses, or where no load is there to be changed, OsbenchError
    where the request cannot be written.
    """
    name = directory.path.name
    if not directory.coordinator():
        raise UsageError(f"run {name} is not running on this machine")
    folder = directory.path / FOLDER
    # by time, so that requests are taken in the order in which they were made
    place = folder / f"{time.time_ns():020}-{secrets.token_hex(4)}"
    asked, answered = place.with_suffix(_ASKED), place.with_suffix(_ANSWERED)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _write(asked, request)
    except OSError as error:
        raise OsbenchError(f"cannot write {asked}: {error.strerror}") from None
    try:
        return _answer(directory, asked, answered)
    finally:
        for left in (asked, answered):
            left.unlink(missing_ok=True)


def _answer(directory: RunDirectory, asked: Path, answered: Path) -> str:
    name = directory.path.name
    begun = time.monotonic()
    taken = False
    while True:
        gone = not directory.coordinator()
        found = _read(answered)
        if found is not None:
            if "error" in found:
                raise UsageError(str(found["error"]))
            return str(found.get("said", ""))
        if gone:
            raise UsageError(f"run {name} ended before it answered")
        waited_s = time.monotonic() - begun
        if not taken and waited_s > SEEN_S:
            try:
                asked.unlink()
            except FileNotFoundError:
                taken = True
            else:
                raise UsageError(f"run {name} has no load now that could be changed")
        if waited_s > ANSWERED_S:
            raise UsageError(f"run {name} does not answer; its report will tell what became of it")
        time.sleep(LOOK_S)


class ControlRequests:
    """The coordinator's side: requests as they come."""

    def __init__(self, directory: RunDirectory) -> None:
        self._folder = directory.path / FOLDER

    def take(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Requests that were not taken yet, by id, oldest first."""
        try:
            places = sorted(self._folder.iterdir())
        except OSError:
            return
        for place in places:
            if place.suffix != _ASKED:
                continue
            taken = place.with_suffix(_TAKEN)
            try:
                place.rename(taken)
            except OSError:
                # withdrawn meanwhile
                continue
            yield place.stem, _read(taken) or {}

    def answer(self, request: str, **fields: str) -> None:
        """Answer a request: `said`, or `error`. One that waits for no answer gets none."""
        place = self._folder / request
        with contextlib.suppress(OSError):
            _write(place.with_suffix(_ANSWERED), fields)
        with contextlib.suppress(OSError):
            place.with_suffix(_TAKEN).unlink()


def _write(place: Path, fields: Mapping[str, Any]) -> None:
    draft = place.with_suffix(_DRAFT)
    draft.write_text(json.dumps(fields))
    draft.rename(place)


def _read(place: Path) -> dict[str, Any] | None:
    """What a file says; None where it is not there or is none of ours."""
    try:
        found = json.loads(read_regular(place, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

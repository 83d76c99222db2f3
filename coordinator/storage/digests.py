"""Binds the files of a finished run together: their sizes and SHA-256, in `digests.json`.

The file is written just before `summary.json`, whose digest it holds too. Every reader compares the
files that it reads. Runs of older releases have no such file and are judged by their journal alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from osbench.common.errors import DamagedRun, StorageError
from osbench.common.regular_files import open_regular, read_regular, size_of
from osbench.coordinator.storage.frames import reason_of
from osbench.coordinator.storage.replay import block_bundles

DIGESTS = "digests.json"
#: Version of its format; `run.json` of a run that will have one says it.
FORMAT = 1
#: Largest one that is read, bytes.
_MOST_BYTES = 1 << 20
_SUMMARY, _PLAN, _MANIFEST = "summary.json", "plan", "run.json"
#: Files that do not change once a run has its summary. The others are removed then, or change.
COVERED = (
    _MANIFEST,
    "request",
    "journal",
    "blocks",
    "status.json",
    "timeline",
    "counters",
    "failure.json",
    "traces/kept",
    "traces/features",
    "traces/collection.json",
    _SUMMARY,
)

Entry = dict[str, Any]


class KeptFiles:
    """The files of one run directory, compared with their digests before they are read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: Damaged files are read too, as far as they can be.
        self.accepted = False
        #: By file that was compared and is unchanged: inode, size and time of change.
        self._compared: dict[str, tuple[int, int, int]] = {}

    def check(self, name: str) -> None:
        """Raise DamagedRun if a file is not as its run has left it; no more than once a file."""
        listed = None if self.accepted else listing(self._path)
        if listed is None or name not in COVERED:
            return
        found = _found(self._path, listed, name, self._compared)
        if found:
            raise damaged(self._path, [found])

    def check_sizes(self) -> None:
        """Raise DamagedRun if a file is missing or has another size; reads none of them."""
        listed = None if self.accepted else listing(self._path)
        wrong = [] if listed is None else list(_wrong_sizes(self._path, listed))
        if wrong:
            raise damaged(self._path, wrong)

    def problems(self) -> list[str]:
        """All that is wrong with the files of the run, a phrase each; reads all of them."""
        listed, wrong = _listing(self._path)
        if listed is None:
            return [wrong] if wrong else []
        found = (_found(self._path, listed, name, self._compared) for name in COVERED)
        return [one for one in found if one]


def damaged(path: Path, problems: list[str]) -> DamagedRun:
    """Return the error that names the problems of a run directory."""
    return DamagedRun(f"run {path.name} is damaged: {'; '.join(problems)}")


def listing(path: Path) -> dict[str, Any] | None:
    """The digests of a finished run; None if the run has none. Raises DamagedRun."""
    found, wrong = _listing(path)
    if wrong:
        raise damaged(path, [wrong])
    return found


def _listing(path: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the digests, if the run must have some, and else the fault, or "".

    A run whose plan is there can be resumed and has not finished, whatever else is there.
    """
    has_summary = (path / _SUMMARY).exists()
    try:
        text = read_regular(path / DIGESTS, _MOST_BYTES)
    except FileNotFoundError:
        return None, f"{DIGESTS} is missing" if has_summary and _promised(path) else ""
    except OSError as error:
        return None, f"{DIGESTS} cannot be read: {reason_of(error)}"
    if not has_summary:
        return None, "" if (path / _PLAN).exists() else f"{_SUMMARY} is missing"
    found = _parsed(text)
    return found, "" if found is not None else f"{DIGESTS} is cut or changed"


def new_listing(path: Path, counts: Mapping[str, Entry], summary: bytes) -> dict[str, Any]:
    """Return the document for a run that ends now with this `summary.json`. Raises StorageError.

    `counts`: further numbers to note of a file, such as the rows of `blocks`.
    """
    files = {}
    for name in COVERED[:-1]:
        try:
            entry = entry_of(path / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"cannot read {path / name}: {reason_of(error)}") from None
        files[name] = [{**entry, **counts.get(name, {})}]
    files[_SUMMARY] = [_entry(summary)]
    return _with_digest({"format": FORMAT, "run_id": path.name, "files": files})


def amended(path: Path, name: str, content: bytes) -> dict[str, Any] | None:
    """Return the document with a file's new content, before it is written, and the old one.

    None if nothing has to change. Raises DamagedRun.
    """
    finished = (path / _SUMMARY).exists() and (path / DIGESTS).exists()
    listed = listing(path) if finished and name in COVERED else None
    if listed is None:
        return None
    contents = [_entry(content), *listed["files"].get(name, [])[:1]]
    return _with_digest({**listed, "files": {**listed["files"], name: contents}})


def _with_digest(document: dict[str, Any]) -> dict[str, Any]:
    unsigned = {key: value for key, value in document.items() if key != "sha256"}
    return {**unsigned, "sha256": _sum(unsigned)}


def _sum(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
        good = found.get("format") == FORMAT and found == _with_digest(found)
        return found if good and isinstance(found["files"], dict) else None
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return None


def _promised(path: Path) -> bool:
    """Whether `run.json` says that there are digests at the end."""
    try:
        manifest = json.loads(read_regular(path / _MANIFEST, _MOST_BYTES << 6))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and "digests" in manifest


def _entry(content: bytes) -> Entry:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def entry_of(path: Path) -> Entry:
    """The size and the SHA-256 of a file. Raises OSError."""
    with open_regular(path) as file:
        digest = hashlib.file_digest(cast(Any, file), "sha256")
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


def _found(
    path: Path, listed: Mapping[str, Any], name: str, compared: dict[str, tuple[int, int, int]]
) -> str:
    """Return a phrase on a file that has changed; "" if it has not."""
    expected = listed["files"].get(name)
    wrong = _wrong_size(path, listed, name)
    if wrong or expected is None:
        return wrong
    try:
        stat = (path / name).stat()
        identity = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if compared.get(name) == identity:
            return ""
        entry = entry_of(path / name)
    except OSError as error:
        return f"{name} cannot be read: {reason_of(error)}"
    if all(entry["sha256"] != one["sha256"] for one in expected):
        return f"{name} was changed{_left(path / name, expected[0])}{_stranger(path, listed)}"
    compared[name] = identity
    return ""


def _wrong_sizes(path: Path, listed: Mapping[str, Any]) -> Iterator[str]:
    for name in COVERED:
        wrong = _wrong_size(path, listed, name)
        if wrong:
            yield wrong


def _wrong_size(path: Path, listed: Mapping[str, Any], name: str) -> str:
    expected = listed["files"].get(name)
    try:
        size = size_of(path / name)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "is missing" if missing else f"cannot be read: {reason_of(error)}"
        return f"{name} {reason}" if expected is not None else ""
    if expected is None:
        return f"{name} was not there when the run ended"
    if all(size != one["bytes"] for one in expected):
        left = _left(path / name, expected[0])
        return (
            f"{name} has {size:,} of {expected[0]['bytes']:,} bytes{left}{_stranger(path, listed)}"
        )
    return ""


def _left(path: Path, expected: Entry) -> str:
    """Return in words how many rows of result blocks can still be read; "" for other files."""
    if "rows" not in expected:
        return ""
    bodies = (body for _, some in block_bundles(path, tolerant=True) for body in some)
    rows = sum(rows_of(body) for body in bodies)
    return f" and {rows:,} of {expected['rows']:,} rows"


def rows_of(body: Mapping[str, Any]) -> int:
    """Return the number of iterations that a result block reports."""
    columns = body["columns"]
    rows = columns.get("rows", 0) if isinstance(columns, dict) else 0
    return rows if isinstance(rows, int) else 0


def _stranger(path: Path, listed: Mapping[str, Any]) -> str:
    run_id = listed.get("run_id")
    return "" if run_id == path.name else f" ({DIGESTS} is that of run {run_id})"

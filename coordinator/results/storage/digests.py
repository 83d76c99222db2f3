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
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import open_regular, read_regular, size_of
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.replay import block_bundles

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
    """Compares files of one run directory with the digests in its `digests.json`.

    `RunDirectory` calls it before it reads a file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        #: Damaged files are read too, as far as they can be.
        self.accepted = False
        #: By file that was compared and is unchanged: inode, size and time of change.
        self._compared: dict[str, tuple[int, int, int]] = {}

    def check(self, name: str) -> None:
        """Raise DamagedRun if file `name` differs from its digest, or the digests are damaged.

        Digests that should be there and are not count as damaged. Nothing is checked if damage was
        accepted, or if the run needs none. A file that they do not cover is not compared. A file is
        read only once as long as it stays the same.
        """
        listed = None if self.accepted else listing(self._path)
        if listed is None or name not in COVERED:
            return
        found = _difference(self._path, listed, name, self._compared)
        if found:
            raise damaged_run(self._path, [found])

    def check_sizes(self) -> None:
        """Raise DamagedRun if a covered file is missing, new or of another size.

        The message names all of these files. Contents are not compared. Raises it also if digests
        are damaged or missing. Nothing is checked if damage was accepted or the run needs none.
        """
        listed = None if self.accepted else listing(self._path)
        wrong = [] if listed is None else list(_wrong_sizes(self._path, listed))
        if wrong:
            raise damaged_run(self._path, wrong)

    def problems(self) -> list[str]:
        """Compare all covered files with their digests: returns a phrase for each problem.

        Reads the files whole. [] if they are unchanged, or the run has no digests and needs none.
        """
        listed, wrong = _listing(self._path)
        if listed is None:
            return [wrong] if wrong else []
        found = (_difference(self._path, listed, name, self._compared) for name in COVERED)
        return [one for one in found if one]


def damaged_run(path: Path, problems: list[str]) -> DamagedRun:
    """Return a DamagedRun error whose message names the run and all `problems`."""
    return DamagedRun(f"run {path.name} is damaged: {'; '.join(problems)}")


def listing(path: Path) -> dict[str, Any] | None:
    """Return the content of `digests.json`; None if the run has no such file and needs none.

    Raises DamagedRun if the file is unreadable or altered, or if it or `summary.json` is missing.
    """
    found, wrong = _listing(path)
    if wrong:
        raise damaged_run(path, [wrong])
    return found


def _listing(path: Path) -> tuple[dict[str, Any] | None, str]:
    """Return (content of `digests.json`, ""), or (None, fault); "" if no digests are needed.

    They are if there is a summary, and `run.json` announces them. Digests without a summary are a
    fault, unless the run can be resumed (file `plan`).
    """
    has_summary = (path / _SUMMARY).exists()
    try:
        text = read_regular(path / DIGESTS, _MOST_BYTES)
    except FileNotFoundError:
        return None, f"{DIGESTS} is missing" if has_summary and _promises_digests(path) else ""
    except OSError as error:
        return None, f"{DIGESTS} cannot be read: {reason_of(error)}"
    if not has_summary:
        return None, "" if (path / _PLAN).exists() else f"{_SUMMARY} is missing"
    found = _checked_listing(text)
    return found, "" if found is not None else f"{DIGESTS} is cut or changed"


def new_listing(path: Path, counts: Mapping[str, Entry], summary: bytes) -> dict[str, Any]:
    """Return the content of `digests.json` for a run that ends now; writes nothing.

    Reads and hashes all covered files that exist; `summary` is the content of `summary.json`, which
    is written later. `counts`: further numbers to note by file, such as the rows of `blocks`.
    Raises StorageError if a file cannot be read.
    """
    files = {}
    for name in COVERED[:-1]:
        try:
            entry = entry_of(path / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(
                f"cannot read {path / name}: {reason_of(error)}; restore it, or make it readable"
            ) from None
        files[name] = [{**entry, **counts.get(name, {})}]
    files[_SUMMARY] = [_entry(summary)]
    return _with_digest({"format": FORMAT, "run_id": path.name, "files": files})


def amended_listing(path: Path, name: str, content: bytes) -> dict[str, Any] | None:
    """Return the `digests.json` to write before the file `name` is replaced by `content`.

    It accepts the new and the old content, as a crash may come between the two writes. None if the
    run is not finished, or digests do not cover the file or are missing. Raises DamagedRun.
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


def _checked_listing(text: bytes) -> dict[str, Any] | None:
    try:
        document = read_json(text)
        good = document.get("format") == FORMAT and document == _with_digest(document)
        return document if good and isinstance(document["files"], dict) else None
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return None


def _promises_digests(path: Path) -> bool:
    """Return whether `run.json` announces digests at the end of the run; False if unreadable."""
    try:
        manifest = read_json(read_regular(path / _MANIFEST, _MOST_BYTES << 6))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and "digests" in manifest


def _entry(content: bytes) -> Entry:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def entry_of(path: Path) -> Entry:
    """Return the size (`bytes`) and hexadecimal SHA-256 (`sha256`) of a file. Raises OSError."""
    with open_regular(path) as file:
        digest = hashlib.file_digest(cast(Any, file), "sha256")
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


def _difference(
    path: Path, listed: Mapping[str, Any], name: str, compared: dict[str, tuple[int, int, int]]
) -> str:
    """Return a phrase on how file `name` differs from its digests in `listed`; "" if it does not.

    A file that fits is noted in `compared`, and not read again as long as inode, size and time of
    change are the same. A file that is new, and listed nowhere, differs, too.
    """
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
    if all(entry["sha256"] != digest["sha256"] for digest in expected):
        return f"{name} was changed{_rows_left(path / name, expected[0])}{_stranger(path, listed)}"
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
        left = _rows_left(path / name, expected[0])
        return (
            f"{name} has {size:,} of {expected[0]['bytes']:,} bytes{left}{_stranger(path, listed)}"
        )
    return ""


def _rows_left(path: Path, expected: Entry) -> str:
    """Return the words " and N of M rows" on a file of blocks, with the rows that can be read.

    "" for other files, and for `expected` without rows. Reads the whole file.
    """
    if "rows" not in expected:
        return ""
    bodies = (body for _, some in block_bundles(path, tolerant=True) for body in some)
    rows = sum(rows_of(body) for body in bodies)
    return f" and {rows:,} of {expected['rows']:,} rows"


def rows_of(body: Mapping[str, Any]) -> int:
    """Return the number of iterations in a result block; 0 if it has none or is malformed."""
    columns = body["columns"]
    rows = columns.get("rows", 0) if isinstance(columns, dict) else 0
    return rows if isinstance(rows, int) else 0


def _stranger(path: Path, listed: Mapping[str, Any]) -> str:
    run_id = listed.get("run_id")
    return "" if run_id == path.name else f" ({DIGESTS} is from run {run_id})"

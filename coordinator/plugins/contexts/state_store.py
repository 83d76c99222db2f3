"""Stores the results of a run's contexts, encrypted in the run directory, until they are undone.

The key is in the data directory, so that a run directory can be passed on without secrets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import msgpack

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, OsbenchError
from osbench.common.files.encrypted_file import EncryptedFile
from osbench.common.protocol.unpacking import unpack

#: Names of the files in the run directory and of the key in the data directory.
FILE = "contexts"
PREPARED = "prepared"
KEY = "contexts.key"


@dataclass(slots=True, kw_only=True)
class Entry:
    """A context of a workload whose setup has begun, and its results so far (`made`)."""

    workload: int
    name: str
    config: Any
    made: dict[str, Any] = field(default_factory=dict)
    #: Names of the contexts of its workload that were set up before it.
    after: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PreparedWorkload:
    """Arguments and context that a workload's workers get, saved for `resume` and late workers."""

    args: dict[str, Any]
    context: dict[str, Any]
    #: When its contexts were set up and undone (`History.saved`).
    history: list[dict[str, Any]] = field(default_factory=list)
    #: Its contexts are being undone, or are: it can have no more load.
    over: bool = False


class ContextStateStore:
    """The contexts of one run that are not undone, oldest first, and the data of its workers.

    Reads and writes two encrypted files in the run directory. Methods that do so raise
    ContextError.
    """

    def __init__(
        self, folder: Path, data_dir: Path, run: str, deployment: Deployment | None
    ) -> None:
        self.run = run
        self.deployment = deployment
        self.entries: list[Entry] = []
        #: By workload.
        self.prepared: dict[int, PreparedWorkload] = {}
        self._entries_file = EncryptedFile(folder / FILE, data_dir / KEY)
        self._prepared_file = EncryptedFile(folder / PREPARED, data_dir / KEY)

    @classmethod
    def load(cls, folder: Path, data_dir: Path) -> ContextStateStore:
        """Return the store of the run in `folder`, with the data on disk; empty if there is none.

        `data_dir` has the key. Raises ContextError if a file cannot be read or decrypted, or is
        damaged.
        """
        found = cls(folder, data_dir, folder.name, None)
        with _translating_errors():
            content = found._entries_file.read()
            prepared = found._prepared_file.read()
        try:
            if content is not None:
                record = unpack(content)
                given = record["deployment"]
                found.deployment = Deployment.from_dict(given) if given else None
                found.entries = [Entry(**entry) for entry in record["entries"]]
            if prepared is not None:
                record = unpack(prepared)
                found.prepared = {number: PreparedWorkload(**one) for number, one in record.items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ContextError(
                f"the data of the contexts of {folder} is damaged; restore the folder from a copy, "
                "or remove their resources by hand"
            ) from None
        return found

    def of(self, workload: int) -> list[Entry]:
        """Return the entries of one workload, oldest first."""
        return [entry for entry in self.entries if entry.workload == workload]

    def add(self, entry: Entry) -> None:
        """Append an entry and write all to disk; to be called before the context makes anything.

        Raises ContextError if that fails; the entry is appended all the same.
        """
        self.entries.append(entry)
        self.save()

    def remove(self, entry: Entry) -> None:
        """Remove the entry of an undone context, and write the others to disk.

        Raises ContextError if that fails; the entry is removed in memory all the same.
        """
        self.entries.remove(entry)
        self.save()

    def save(self) -> None:
        """Write all entries with the deployment to disk, or remove the file if there are none.

        Raises ContextError if that fails, or a result has a type that msgpack does not support.
        """
        if not self.entries:
            with _translating_errors():
                self._entries_file.remove()
            return
        record = {
            "deployment": self.deployment.to_dict() if self.deployment else {},
            # not asdict, which copies what may not be copied
            "entries": [
                {one.name: getattr(entry, one.name) for one in fields(entry)}
                for entry in self.entries
            ],
        }
        _write(self._entries_file, record)

    def keep_prepared(self, workload: int, prepared: PreparedWorkload) -> None:
        """Set the data for a workload's workers, and write the data of all workloads to disk.

        Raises ContextError if that fails.
        """
        self.prepared[workload] = prepared
        self.save_prepared()

    def save_prepared(self) -> None:
        """Write the data for the workers of all workloads, with their contexts' history, to disk.

        Raises ContextError if that fails.
        """
        record = {number: asdict(one) for number, one in self.prepared.items()}
        _write(self._prepared_file, record)

    def made(self, workload: int, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the results of a workload's contexts, merged: key of a result -> value.

        If contexts have the same key, the one set up later wins. `names`: only of these contexts;
        None: of all.
        """
        wanted = None if names is None else set(names)
        merged: dict[str, Any] = {}
        for entry in self.of(workload):
            if wanted is None or entry.name in wanted:
                merged |= entry.made
        return merged


def drop_unstorable(entry: Entry) -> str:
    """Remove values of other types than msgpack's from the result of a context.

    Returns a message on the first of them, "" if there is none.
    """
    wrong = [key for key, value in entry.made.items() if not _is_storable({key: value})]
    said = [
        f"made[{key!r}] cannot be stored: it is or holds a {type(entry.made[key]).__name__}; put "
        "only None, booleans, numbers, text, bytes, lists and mappings into `made`"
        for key in wrong[:1]
    ]
    for key in wrong:
        del entry.made[key]
    return "".join(said)


def _is_storable(value: Any) -> bool:
    try:
        msgpack.packb(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _write(file: EncryptedFile, record: dict[Any, Any]) -> None:
    try:
        content = msgpack.packb(record)
    except (TypeError, ValueError, OverflowError) as error:
        raise ContextError(
            f"a context's data cannot be stored: {error}; put only JSON values into `made`"
        ) from None
    with _translating_errors():
        file.write(content)


@contextlib.contextmanager
def _translating_errors() -> Iterator[None]:
    try:
        yield
    except OsbenchError as error:
        raise ContextError(str(error)) from None

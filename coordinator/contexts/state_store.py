"""Stores what the contexts of a run have made, encrypted in the run directory, until undone.

The key is in the data directory and not in the run directory, so that a run directory can be
passed on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgpack
from cryptography.fernet import Fernet, InvalidToken

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.private_files import TooOpen, read_private, write_private
from osbench.common.protocol.unpacking import unpack

#: Names of the file in the run directory and of the key in the data directory.
FILE = "contexts"
KEY = "contexts.key"


@dataclass(slots=True, kw_only=True)
class Entry:
    """One context of one workload whose setup has started."""

    workload: int
    name: str
    config: Any
    made: dict[str, Any] = field(default_factory=dict)
    #: Names of the contexts of its workload that were set up before it.
    after: list[str] = field(default_factory=list)


class ContextStateStore:
    """The entries of one run, oldest first. Every method raises ContextError."""

    def __init__(
        self, folder: Path, data_dir: Path, run: str, deployment: Deployment | None
    ) -> None:
        self.run = run
        self.deployment = deployment
        self.entries: list[Entry] = []
        self._path = folder / FILE
        self._key_path = data_dir / KEY

    @classmethod
    def load(cls, folder: Path, data_dir: Path) -> ContextStateStore:
        """The entries that a run has left; empty if there are none."""
        found = cls(folder, data_dir, folder.name, None)
        if not found._path.exists():
            return found
        try:
            record = unpack(found._cipher().decrypt(read_private(found._path)))
            given = record["deployment"]
            found.deployment = Deployment.from_dict(given) if given else None
            found.entries = [Entry(**entry) for entry in record["entries"]]
        except InvalidToken:
            raise ContextError(
                f"{found._path} cannot be decrypted with {found._key_path}"
            ) from None
        except (OSError, TooOpen) as error:
            raise ContextError(f"{found._path}: {error}") from None
        except (KeyError, TypeError, ValueError):
            raise ContextError(f"{found._path} is damaged") from None
        return found

    def add(self, entry: Entry) -> None:
        """Add an entry, before anything is made for it."""
        self.entries.append(entry)
        self.save()

    def remove(self, entry: Entry) -> None:
        """Remove an entry that was undone."""
        self.entries.remove(entry)
        self.save()

    def save(self) -> None:
        """Write all entries; removes the file if there are none."""
        if not self.entries:
            self._path.unlink(missing_ok=True)
            return
        record = {
            "deployment": self.deployment.to_dict() if self.deployment else {},
            "entries": [asdict(entry) for entry in self.entries],
        }
        try:
            write_private(self._path, self._cipher().encrypt(msgpack.packb(record)))
        except (TypeError, ValueError, OverflowError) as error:
            raise ContextError(f"what a context has made cannot be stored: {error}") from None
        except OSError as error:
            raise ContextError(f"{self._path} cannot be written: {error.strerror}") from None

    def made(self, workload: int, names: Iterable[str] | None = None) -> dict[str, Any]:
        """What the contexts of a workload have made, by key; later ones override earlier ones."""
        wanted = None if names is None else set(names)
        merged: dict[str, Any] = {}
        for entry in self.entries:
            if entry.workload == workload and (wanted is None or entry.name in wanted):
                merged |= entry.made
        return merged

    def _cipher(self) -> Fernet:
        try:
            if not self._key_path.exists():
                write_private(self._key_path, Fernet.generate_key())
            return Fernet(read_private(self._key_path))
        except (OSError, TooOpen, ValueError) as error:
            raise ContextError(f"{self._key_path}: {error}") from None

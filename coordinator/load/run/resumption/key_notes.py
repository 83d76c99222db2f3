"""Notes in the journal by which key the messages of a run are signed: a resumed run needs it.

Batches and results that are in transit when a coordinator dies are signed with that key. Without
the key they are refused, and their iterations stay open for ever.
"""

from __future__ import annotations

from pathlib import Path

from osbench.common.errors import ConfigError
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.load.dispatch.port import DispatchPort
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: Kind of the record: it changes no accounts.
_KEYS = "keys"


class KeyNotes:
    """Journals the id of the key that signs a run's messages, at first and after each rotation."""

    def __init__(self, keyring: Keyring, port: DispatchPort) -> None:
        self._keyring = keyring
        self._port = port
        self._noted = b""

    def look(self) -> None:
        """Journal the id of the signing key, at the first call and whenever it has changed since.

        Raises StorageError.
        """
        found = self._keyring.signing().id
        if found != self._noted:
            self._port.decide([{"do": _KEYS, "key": found.hex()}])
            self._noted = found


def check_key(directory: RunDirectory, keyring: Keyring, path: Path) -> None:
    """Raise ConfigError if `keyring` lacks the key that the journal of a run noted last.

    `path`: the key file, for the message. Journals of older releases note no key and pass. Raises
    DamagedRun if the journal is damaged.
    """
    noted = ""
    for record in directory.decisions():
        if record["do"] == _KEYS:
            noted = str(record["key"])
    known = [key.id.hex() for key in keyring.keys]
    # runs of older releases do not say
    if noted and noted not in known:
        name = directory.path.name
        raise ConfigError(
            f"run {name} cannot be resumed: its messages are signed with key {noted}, and key file "
            f"{path} has {', '.join(known)}; put the key file of the run back, here and at its "
            f"workers, or undo its contexts with `osbench-coord cleanup {name}`"
        )

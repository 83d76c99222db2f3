"""The control record of each worker: kept, changed, and written when it differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from osbench.common.protocol.messages import Control
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.transport.channel import Channel


class Controls:
    """What the coordinator wants of each worker."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._records: dict[str, Control] = {}
        #: Changed and not known to be written.
        self._unwritten: set[str] = set()

    def change(self, workers: Iterable[WorkerHandle], **fields: Any) -> None:
        """Set the same fields for some workers and write what changed, acknowledgements too."""
        self.write(dict.fromkeys(workers, fields))

    def write(self, changes: Mapping[WorkerHandle, Mapping[str, Any]]) -> None:
        """Set fields by worker and write the records that differ from the last ones.

        Raises StoreAway; what could not be written goes with the next call.
        """
        for worker, fields in changes.items():
            name = worker.incarnation
            before = self._records.get(name) or Control(
                run=self._channel.run_id,
                epoch=self._channel.epoch,
                incarnation=name,
                version=0,
            )
            after = replace(before, acknowledged=worker.blocks, **fields)
            if after != before:
                worker.version += 1
                self._records[name] = replace(after, version=worker.version)
                self._unwritten.add(name)
        self._channel.control({name: self._records[name] for name in self._unwritten})
        self._unwritten.clear()

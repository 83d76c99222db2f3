"""Which errors end a run for good, and which leave it to another coordinator."""

from __future__ import annotations

from osbench.common.errors import (
    DamagedRun,
    DirectoryRemoved,
    FleetError,
    OlderCopy,
    OsbenchError,
    StorageError,
    StoreLost,
    StoreUnreachable,
    Superseded,
)
from osbench.coordinator.load.local.server import ServerDied


def leaves_workers(error: BaseException, *, resumed: bool, drains: bool) -> bool:
    """Return whether `error` leaves workers and contexts as they are, for another coordinator.

    True for lost servers, failed disks, a damaged run and, if `resumed`, any FleetError, unless the
    user has ended the run (`drains`). True if another coordinator has the run, False if its
    directory was removed.
    """
    if isinstance(error, Superseded):
        return True
    # a resumed run would find nothing
    if isinstance(error, DirectoryRemoved):
        return False
    lasting = isinstance(
        error, StoreUnreachable | StoreLost | StorageError | ServerDied | DamagedRun
    )
    # on a second try there may be workers
    alone = resumed and isinstance(error, FleetError)
    return (lasting or alone) and not drains


def leaves_resumable(error: BaseException, *, begun: bool, workers_left: bool) -> bool:
    """Return whether the run may be resumed from its directory after `error`.

    True if workers were left, for unforeseen exceptions, and for any error once a load had `begun`.
    False if the directory is an older copy, or was removed.
    """
    # the run itself goes on elsewhere, or from its own files
    if isinstance(error, OlderCopy):
        return False
    accident = not isinstance(error, OsbenchError | KeyboardInterrupt)
    # a load that had begun is to have its report, whatever ended this try
    return workers_left or accident or (begun and not isinstance(error, DirectoryRemoved))

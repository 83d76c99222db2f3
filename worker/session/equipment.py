"""Resources that the sessions of a worker process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from osbench.common.machine.process_memory import resident_bytes
from osbench.common.protocol.envelope import Signer, Vault
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import UserLimits
from osbench.worker.engine.will_page import WillPage
from osbench.worker.session.log_book import LogBook
from osbench.worker.session.preparation import Preparation
from osbench.worker.session.refusals import Refusals


@dataclass(frozen=True, kw_only=True)
class Equipment:
    """Parts and limits of a worker process that all its sessions use; made once, at its start."""

    incarnation: str
    user_limits: UserLimits
    signer: Signer
    vault: Vault
    preparation: Preparation
    refusals: Refusals
    #: Wakes virtual users of open loads.
    sleep: PreciseSleep
    #: Folder for result blocks that find no room in memory, and how many bytes do.
    spool_dir: Path
    spool_limit_bytes: int
    #: What the process prints and logs.
    log: LogBook = field(default_factory=LogBook)
    #: None if no supervisor reads it.
    page: WillPage | None = None
    #: Memory of the process at its begin.
    begun_bytes: int = field(default_factory=resident_bytes)

"""Rules of what is on disk, and when, that can be left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from osbench.common.protocol.messages import Block
from osbench.coordinator.load.run.services import RunPort
from osbench.coordinator.load.transport.receiver import Receiver
from osbench.coordinator.results.accounting.accounts import Accounts, Arrival
from osbench.coordinator.results.storage import frames, replay, run_directory
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world import present, threads
from world.mutants.mutant import Change, mutant
from world.simulated_disk import SimulatedDisk

#: Coordinators die, some with their host.
DEATHS = ("kill-coordinator", "disk")


@mutant("sync", "what was written is on disk before it is acted on", faults=DEATHS)
def _sync() -> Sequence[Change]:
    return [(SimulatedDisk, "sync", lambda self, descriptor: None)]


@mutant("journal-first", "a grant is on disk before its batch is sent", faults=DEATHS)
def _journal_first() -> Sequence[Change]:
    real = RunPort.decide

    def decide(one: RunPort, records: Iterable[dict[str, Any]]) -> None:
        decided = list(records)
        cuts = [record for record in decided if record["do"] == "cut"]
        if not cuts:
            real(one, decided)
            return
        for record in decided:
            one._accounts.apply(record)

        def later() -> None:
            present.scheduler().wait(0.5)
            one._directory.decide(cuts)

        threads.Thread(target=later, name="late journal").start()

    return [(RunPort, "decide", decide)]


@mutant("ack-disk", "a block is acknowledged when it is on disk", faults=DEATHS)
def _ack_disk() -> Sequence[Change]:
    def take(one: Receiver, blocks: list[Block]) -> list[Arrival]:
        if not blocks:
            return []
        blocks.sort(key=lambda block: block.number)
        named = [one._named(block) for block in blocks]
        found = one._accounts.take(named)

        def later() -> None:
            present.scheduler().wait(1.0)
            one._directory.keep(block.body() for block in named)

        threads.Thread(target=later, name="late blocks").start()
        return found

    return [(Receiver, "_take", take)]


@mutant(
    "deleted-late",
    "what was received stays in Redis until it is on disk",
    faults=DEATHS,
    behind=("resend-block",),
)
def _deleted_late() -> Sequence[Change]:
    real = Receiver.receive

    def receive(one: Receiver, wait_s: float) -> list[Arrival]:
        read = one._channel.read

        def read_and_delete(seconds: float) -> Any:
            found = read(seconds)
            one._channel.delete([entry for entry, _ in found])
            return found

        one._channel.read = read_and_delete  # type: ignore[method-assign]
        try:
            return real(one, wait_s)
        finally:
            del one._channel.read

    return [(Receiver, "receive", receive)]


@mutant(
    "fold-order",
    "a resumed coordinator reads grants and blocks in the order of their writing",
    faults=("kill-coordinator", "drain", "interrupt"),
)
def _fold_order() -> Sequence[Change]:
    real = run_directory.replay

    def sorted_replay(*args: Any, **named: Any) -> Iterator[Any]:
        found = list(real(*args, **named))
        return iter(sorted(found, key=lambda one: one.record is None))

    return [(run_directory, "replay", sorted_replay)]


@mutant(
    "torn-tail",
    "what a crash left unfinished at the end of a file is cut",
    faults=DEATHS,
)
def _torn_tail() -> Sequence[Change]:
    def uncut(path: Path, *, least: int = 0) -> int:
        return 0

    return [(run_directory, "cut_torn_tail", uncut)]


@mutant(
    "torn-write",
    "what a full disk left of a record is cut before the next one",
    faults=("disk",),
    unseen="the file is cut at once where a write failed; it is for a disk that refuses that",
)
def _torn_write() -> Sequence[Change]:
    real = frames.FrameFile.append

    def append(one: frames.FrameFile, records: Iterable[bytes]) -> None:
        one._torn = False
        real(one, records)

    return [(frames.FrameFile, "append", append)]


@mutant(
    "lock",
    "a run has one coordinator",
    faults=("second-coordinator",),
)
def _lock() -> Sequence[Change]:
    real = run_directory.fcntl.flock

    class Unlocked:
        LOCK_EX = LOCK_NB = LOCK_SH = LOCK_UN = 0

        @staticmethod
        def flock(*_: object) -> None:
            """Everybody may have it."""

    assert real is not None
    return [(run_directory, "fcntl", Unlocked)]


@mutant(
    "epoch-written",
    "each coordinator has a higher epoch than the one before",
    faults=("kill-coordinator",),
)
def _epoch_written() -> Sequence[Change]:
    def opened(one: Accounts, record: dict[str, Any]) -> None:
        one.epoch = 1

    return [(Accounts, "_open", opened)]


@mutant(
    "reserve",
    "a full disk has room for the records that end the run",
    faults=("disk",),
    unseen="a run that cannot write its end stays resumable",
)
def _reserve() -> Sequence[Change]:
    return [(RunDirectory, "_free_reserve", lambda self: False)]


@mutant(
    "bound",
    "journal and blocks of a resumed run are as long as they were known to be",
    faults=("kill-coordinator",),
    unseen="only a disk that loses what was synced makes them shorter",
)
def _bound() -> Sequence[Change]:
    return [(run_directory, "bound_by", lambda journal, blocks, noted: replay.Binding())]

"""What the parts of the model say to each other. All of it is signed: nobody can invent one."""

from __future__ import annotations

from typing import Any, NamedTuple

#: A key of Redis, and whatever stands under it.
Key = tuple[Any, ...]
Message = Any

#: What somebody without the key can write.
JUNK = "junk"


class Beat(NamedTuple):
    """A worker says that it lives, and where it stands."""

    incarnation: str
    beat: int
    challenge: int
    run: str = ""
    epoch: int = 0
    sid: int = 0
    mid: int = 0
    got: int = 0
    idle: bool = True


class Offer(NamedTuple):
    """A coordinator asks a worker into its run, or into a new session of its membership."""

    run: str
    epoch: int
    incarnation: str
    challenge: int
    sid: int
    mid: int
    version: int
    answers: int
    digest: int


class Control(NamedTuple):
    """A coordinator answers a beat, acknowledges blocks and asks for numbers back."""

    run: str
    epoch: int
    incarnation: str
    sid: int
    mid: int
    version: int
    answers: int
    ack: int
    #: Blocks behind the first missing one that are on disk.
    have: tuple[int, ...]
    #: Batches whose unstarted numbers are wanted back.
    recall: tuple[int, ...]
    #: The will of this membership is on disk.
    willed: bool
    over: bool


class Batch(NamedTuple):
    """Numbers that a membership may start: the grant itself."""

    run: str
    incarnation: str
    sid: int
    seq: int
    numbers: tuple[int, ...]


class Block(NamedTuple):
    """What a membership reports: how iterations ended, and what it will not start."""

    run: str
    incarnation: str
    mid: int
    number: int
    rows: tuple[tuple[int, str], ...]
    returned: tuple[int, ...]
    #: Batches that are refused as a whole, should they come.
    voids: tuple[int, ...]
    #: The last block: the membership starts nothing any more.
    final: bool


class Will(NamedTuple):
    """A supervisor says how far its dead child had come in the batches of a membership."""

    run: str
    incarnation: str
    mid: int
    #: The batch that was being consumed, 0 for none.
    seq: int
    #: Position in it of the last number that was taken out.
    position: int


class SpecificationModel(NamedTuple):
    """What the iterations of a run execute, here only its digest."""

    run: str
    digest: int

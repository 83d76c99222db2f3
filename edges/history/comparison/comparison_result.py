"""Data classes of the result of a comparison, from which text, JSON and pages are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChangeVerdict(StrEnum):
    """Verdict on a change of one percentile, of one workload, or of all workloads."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    NO_EVIDENCE = "no evidence"
    #: Some percentiles are better, others are worse.
    MIXED = "mixed"


class Basis(StrEnum):
    """The runs from which a verdict takes how much runs differ without a change."""

    REPLICATES = "replicates"
    PAIRS = "pairs"
    #: Blocks of runs around a change that was made between them.
    BLOCKS = "blocks"
    HISTORY = "history"
    TIME_BLOCKS = "time blocks"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Caveat:
    """A difference between the runs of both sides that a reader must know before the verdict."""

    text: str
    #: Percentiles of such runs must not be compared.
    refuses: bool


@dataclass(frozen=True, kw_only=True)
class ChangeRow:
    """The change of one percentile of a workload or action; ratios are after / before."""

    workload: str
    #: Path of the atomic action; "" for the iteration as a whole.
    action: str
    percent: float
    #: Seconds; with several runs a side, the geometric mean of the runs' percentiles, or their
    #: median if it is ranks that the verdict is from. With blocks, the geometric mean of all, or
    #: the blocks next to the change.
    before_s: float
    after_s: float
    ratio: float
    #: Bounds of the 95 % interval of the ratio, of this row alone; None: not known.
    interval: tuple[float, float] | None
    #: p-value, corrected for the number of rows; None if there is no test.
    p: float | None
    #: Change, as a share, that such runs would have shown in 80 % of cases; None without a test.
    findable: float | None
    verdict: ChangeVerdict

    @property
    def label(self) -> str:
        """Percentile and action, or workload, such as "p95 of boot"."""
        return f"p{self.percent:g} of {self.action or self.workload}"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A number of a workload before and after, as text, such as iterations or failures.

    It is shown in the table of percentiles, without a test of significance.
    """

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class WorkloadChanges:
    """The changes of one workload between both sides: verdict, percentiles, calls that changed."""

    name: str
    verdict: ChangeVerdict
    #: Percentiles of the iteration, then of its atomic actions.
    rows: tuple[ChangeRow, ...]
    facts: tuple[Fact, ...] = ()
    #: Explanation by traces of calls that changed; "" without traces.
    calls: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparisonResult:
    """The result of comparing two sides of runs, before and after: verdicts, caveats, remarks."""

    #: Ids of runs.
    before: tuple[str, ...]
    after: tuple[str, ...]
    #: Name of each side; "" if there are only ids.
    names: tuple[str, str] = ("", "")
    verdict: ChangeVerdict
    sentence: str
    basis: Basis
    #: The basis as a message.
    grounds: str
    #: Change that is taken as none, as a share: 0.03; None if none was given.
    margin: float | None
    caveats: tuple[Caveat, ...]
    #: All runs of one side ended before all runs of the other began.
    apart_in_time: bool
    workloads: tuple[WorkloadChanges, ...]
    #: Runs of each block; 0 without blocks, or if blocks have different numbers of runs.
    block_size: int = 0
    #: Messages on rows left out, on runs unlike the others, and on limits of the verdicts.
    remarks: tuple[str, ...] = ()

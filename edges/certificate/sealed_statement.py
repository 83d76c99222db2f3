"""The content of a certificate: the evidence in a run's files, and the words of the sealer.

`RunEvidence` follows from the files of the run alone, so that `verify` derives it again. `Seal` is
known to the sealer only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.time_figures import TimeFigures
from osbench.coordinator.report.model.workload_parts import SearchReport, ThroughputFigures
from osbench.coordinator.results.accounting.totals import Accounting, Bound, Offered, Warmup

#: Version of the statement; it grows when an older reader would be misled.
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class SealedFile:
    """Size and SHA-256 of a file of the run directory."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class SealedCriterion:
    """The verdict on a criterion, and whether it was judged again from journal and blocks."""

    criterion: str
    success: bool
    detail: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    #: False: on spans, as the run reported it.
    judged_again: bool = True


@dataclass(frozen=True, kw_only=True)
class SealedWorkload:
    """A workload as counted again: ledger, load, verdicts and times."""

    name: str
    #: Title of the subtask.
    subtask: str = ""
    scenario: str
    #: Addresses that the arguments name, as scheme, host and port.
    targets: tuple[str, ...] = ()
    accounting: Accounting = field(default_factory=Accounting)
    warmup: Warmup = field(default_factory=Warmup)
    offered: Offered = field(default_factory=Offered)
    #: Causes that bound the load; none is the load generator's.
    bounds: tuple[Bound, ...] = ()
    criteria: tuple[SealedCriterion, ...] = ()
    #: Limits of the task, by criterion and path of keys.
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: Result of a search for the capacity; None for other loads.
    search: SearchReport | None = None
    #: The kind of time to judge by: "response" for an open load, "service" for a closed one.
    kind: str = "service"
    #: Times of successful iterations, by kind.
    times: Mapping[str, TimeFigures] = field(default_factory=dict)
    throughput: ThroughputFigures = field(default_factory=ThroughputFigures)

    @property
    def label(self) -> str:
        """Name with the title of the subtask, by which workloads of one scenario differ."""
        named = self.subtask and self.subtask != self.name
        return f"{self.name} ({self.subtask})" if named else self.name

    @property
    def is_met(self) -> bool:
        """Return whether all criteria are met."""
        return all(one.success for one in self.criteria)

    @property
    def main_times(self) -> TimeFigures:
        """Times of successful iterations, of the kind to judge by."""
        return self.times.get(self.kind, TimeFigures())


@dataclass(frozen=True, kw_only=True)
class GeneratorHost:
    """A host of the load generator, as its worker processes reported it."""

    host: str
    processes: int
    cores: int | None = None
    #: CPU quota of the container, cores; and CPU of all processes, cores.
    quota: float | None = None
    cpu_mean: float = 0.0
    osbench: tuple[str, ...] = ()
    python: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """The result of a run as it follows from the files of its directory."""

    run_id: str
    task: str
    description: str = ""
    tags: tuple[str, ...] = ()
    #: ISO 8601, UTC.
    started_at: str | None = None
    finished_at: str | None = None
    exit_code: int
    exit_meaning: str = ""
    #: Version of osbench that made the run.
    osbench: str = ""
    #: Name of the deployment record, and address of its trace store without credentials.
    deployment: str | None = None
    trace_store: str = ""
    notes: tuple[str, ...] = ()
    #: The task as it ran, secrets masked; and the SHA-256 of that.
    requested: tuple[Mapping[str, Any], ...] = ()
    fingerprint: str = ""
    workloads: tuple[SealedWorkload, ...] = ()
    #: p99 start lag above which the generator counts as the limit, seconds.
    lag_limit_s: float
    hosts: tuple[GeneratorHost, ...] = ()
    #: Changes of the load by hand, while it went on.
    changes: int = 0
    #: Result blocks, and rows in them.
    blocks: int
    rows: int
    files: Mapping[str, SealedFile]


@dataclass(frozen=True, kw_only=True)
class Seal:
    """The sealer's own words, which the files of the run do not show."""

    #: ISO 8601, UTC, by the clock of the sealer.
    sealed_at: str
    #: Hexadecimal public key of Ed25519.
    public_key: str
    #: Of the sealing host: osbench, Python, operating system and processor.
    osbench: str
    python: str = ""
    system: str = ""
    machine: str = ""
    #: Version of OSProfiler's library there; "" without it.
    osprofiler: str = ""
    #: Name and SHA-256 of the task file, whose content gives the task as it ran; "" if not named.
    task_file: str = ""
    task_sha256: str = ""
    #: SHA-256 of the source of each scenario, as it was at the sealing; "" if it was not there.
    scenarios: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SealedStatement:
    """All that a certificate says."""

    format: int = FORMAT
    evidence: RunEvidence
    seal: Seal

    def to_json(self) -> dict[str, Any]:
        """Return the statement as JSON values."""
        document: dict[str, Any] = json_codec.to_json(self)
        return document

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Return the statement of JSON values.

        Raises ValueError, which names the place, if a part is missing, unknown or of another type.
        """
        try:
            found = json_codec.from_json(cls, document)
            unknown = _first_unknown("", document, found.to_json())
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"it has another shape: {error}") from None
        if unknown:
            raise ValueError(
                f"it has an unknown part, {unknown}: a later osbench may have written it"
            )
        return found


def _first_unknown(path: str, document: Any, known: Any) -> str:
    """Return the path of the first value in `document` that `known` has not; "" if it has all."""
    if isinstance(document, dict) and isinstance(known, dict):
        for key, value in document.items():
            place = f"{path}.{key}" if path else str(key)
            found = _first_unknown(place, value, known[key]) if key in known else place
            if found:
                return found
        return ""
    if isinstance(document, list) and isinstance(known, list) and len(document) == len(known):
        pairs = enumerate(zip(document, known, strict=True))
        places = (_first_unknown(f"{path}[{place}]", *pair) for place, pair in pairs)
        return next((one for one in places if one), "")
    same = document == known and isinstance(document, bool) == isinstance(known, bool)
    return "" if same else path

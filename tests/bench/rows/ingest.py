"""What results cost the coordinator: verify, decode, disk, ledger, histograms, exemplars."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import Stage
from osbench.coordinator.load.transport.channel import READ_LIMIT

NEEDS = ()

LARGE, SMALL = 10_000, 20
#: Rows and small blocks that a second of a block is good for, roughly.
ROWS_PER_S = 400_000
BLOCKS_PER_S = 800


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Two actions a row, 1 % failed, 1 % traced; the peer records the same five values a row."""
    values_file = stage.subfolder("values") / "values"
    arms = {
        "osbench, large": lambda: _large(stage, str(values_file)),
        "hdrhistogram": lambda: {"peer": _rate(stage.peer("hdr_record.py", values_file))},
        "osbench, small": lambda: _small(stage),
    }
    values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="ingest",
            title=f"coordinator, results per second of CPU, blocks of {LARGE:,} rows",
            unit="1/s",
            osbench=values["large"],
            peer_name="hdrhistogram, five values a row",
            peer=values["peer"],
            target=Target(bound=4.0),
        ),
        Comparison(
            row="ingest",
            title=f"coordinator, CPU of a block of {SMALL} rows",
            unit="us",
            osbench=values["small"],
            target=Target(bound=150.0, at_most=True),
            note=f"{READ_LIMIT} are read at a time, two workers in turn",
        ),
    ]


def _large(stage: Stage, values_file: str) -> dict[str, float]:
    blocks = max(10, stage.count(ROWS_PER_S) // LARGE)
    found = stage.harness("ingest", "--rows", LARGE, "--blocks", blocks, "--values", values_file)
    return {"large": _rate(found)}


def _small(stage: Stage) -> dict[str, float]:
    found = stage.harness("ingest", "--rows", SMALL, "--blocks", stage.count(BLOCKS_PER_S))
    return {"small": found["cpu_s"] / found["blocks"] * 1e6}


def _rate(found: dict[str, float]) -> float:
    return found["rows"] / found["cpu_s"]

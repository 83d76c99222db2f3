"""How many spans the process that receives OTLP takes per second of CPU."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import Stage

NEEDS = ()

#: Spans that a second of a block is good for, roughly.
SPANS_PER_S = 20_000
STRANGERS_PER_S = 200_000


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Requests of 512 spans with 10 attributes, in protobuf, over one connection."""
    values = interleave(
        {"run": lambda: _rate(stage, "run"), "strangers": lambda: _rate(stage, "strangers")},
        stage.rounds,
        say,
    )
    return [
        Comparison(
            row="otlp",
            title="OTLP receiver, spans of the run per second of CPU of its process",
            unit="1/s",
            osbench=values["run"],
            target=Target(bound=20_000.0),
        ),
        Comparison(
            row="otlp",
            title="OTLP receiver, spans of other traces, which are only counted",
            unit="1/s",
            osbench=values["strangers"],
        ),
    ]


def _rate(stage: Stage, kind: str) -> dict[str, float]:
    strangers = kind == "strangers"
    spans = stage.count(STRANGERS_PER_S if strangers else SPANS_PER_S)
    found = stage.harness("otlp", "--spans", spans, *(("--strangers",) if strangers else ()))
    return {kind: found["spans"] / found["cpu_s"]}

"""A finished run that has every file a run directory can keep, and ways to damage one of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from helpers.made_runs import RUN, made_run
from helpers.planted_counters import counters_of, share
from helpers.synthetic_traces import traces
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.digests import COVERED, DIGESTS
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.counters.counter_file import write_counters

#: Files of a finished run that tell something of it.
FILES = (*COVERED, DIGESTS)


def kept_run(data: Path, run: str = RUN, seed: int = 1, count: int = 25_000) -> RunDirectory:
    """A finished run; runs of different seeds differ in every file."""
    directory = made_run(data, count, run=run, seed=seed, more=lambda one: _add(one, seed))
    return RunDirectory(directory.path)


def _add(directory: RunDirectory, seed: int) -> None:
    manifest = directory.read("run.json") or {}
    workload = {"name": "Queue.get", "scenario": "Queue.get", "args": {}, "sla": {}}
    workload["runner"] = {"rps": {"rps": 1000.0}}
    directory.write("run.json", {**manifest, "workloads": [workload], "tags": [str(seed)]})
    directory.decide(
        [
            {"do": "open", "run": directory.path.name, "epoch": 1},
            {"do": "start", "workload": 0, "t0_at": 1_775_038_500.0 + seed},
        ]
    )
    status = {"name": "Queue.get", "phase": "running", "elapsed_s": seed, "at": time.time()}
    directory.write("status.json", {**status, "on_disk": directory.sizes})
    directory.write("failure.json", {"message": f"Redis was away {seed}", "exit_code": 3})
    directory.replace("request", b"signed" * seed, sync=False)
    busy = np.linspace(0, 0.9, 60 + seed)
    write_counters(directory, {0: counters_of(share("CPU", "db1", busy))})
    _add_traces(directory, 5 + seed)


def _add_traces(directory: RunDirectory, count: int) -> None:
    found, survey = list(traces(count)), Survey()
    for trace in found:
        survey.add(trace)
    digest, archive = Digest(survey, ["Shop.buy"]), Archive(directory.path)
    for number, trace in enumerate(found, 1):
        digest.add_iteration(trace, group=0, iteration=number, outcome=Outcome.OK, kept=True)
        archive.keep(trace)
    collection = {
        "traced": count,
        "skipped": 0,
        "census": digest.coverage.to_dict(),
        "usual": [],
        "clocks": [asdict(one) for one in digest.clocks.skews],
        "ranking": [asdict(row) for row in digest.ranking.rows()],
    }
    archive.close(digest.table.close(), collection)


def _flipped(data: bytearray, at: int, chance: random.Random) -> None:
    data[at] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, at: int, chance: random.Random) -> None:
    del data[at:]


def _zeroed(data: bytearray, at: int, chance: random.Random) -> None:
    data[at : at + 64] = bytes(len(data[at : at + 64]))


def _doubled(data: bytearray, at: int, chance: random.Random) -> None:
    data[at:at] = data[at : at + 100]


def _overwritten(data: bytearray, at: int, chance: random.Random) -> None:
    data[at : at + 8] = chance.randbytes(len(data[at : at + 8]))


#: Ways to damage the bytes of a file at a place.
DAMAGES: dict[str, Callable[[bytearray, int, random.Random], None]] = {
    "flipped": _flipped,
    "cut": _cut,
    "zeroed": _zeroed,
    "doubled": _doubled,
    "overwritten": _overwritten,
}


def damage(path: Path, how: str, chance: random.Random, other: Path) -> None:
    """Damage a file: one of DAMAGES, "gone", or "swapped" with that of `other`."""
    if how == "gone":
        path.unlink()
    elif how == "swapped":
        path.write_bytes(other.read_bytes())
    else:
        data = bytearray(path.read_bytes())
        DAMAGES[how](data, chance.randrange(len(data)), chance)
        path.write_bytes(data)

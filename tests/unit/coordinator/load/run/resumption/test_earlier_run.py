"""The state of a run that a coordinator resumes."""

from __future__ import annotations

from pathlib import Path

from osbench.coordinator.load.run.resumption.earlier_run import EarlierRun
from osbench.coordinator.load.run.resumption.outcome_notes import NotesFile, OutcomeNotes, RunNotes
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.storage.run_directory import RunDirectory


def test_the_cpu_of_workers_goes_on_from_the_notes(tmp_path: Path) -> None:
    directory = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    notes = OutcomeNotes(cpu={"w1": [[0.5, 0.25], [7.5, 0.75]], "w2": [[0.5, 1.0]]})
    NotesFile(directory).write(RunNotes(workloads={3: notes}))

    earlier = EarlierRun(directory, Accounts())
    directory.close()

    cpu = earlier.cpu(3)
    assert (cpu.mean("w1"), cpu.greatest("w1"), cpu.mean("w2")) == (0.5, 0.75, 1.0)
    assert earlier.cpu(4).points() == {}
    assert earlier.problems == ()

"""What `run` exports: at the end, where it could not start, and while it is under load."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click

from osbench.common.errors import OsbenchError
from osbench.common.masking import mask_url
from osbench.common.plugin.exporter import LiveExporter
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.exporting import Export, failure_of
from osbench.coordinator.report.stored_run import LiveRun, StoredRun
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.timeline_file import read_timeline


class RunExports:
    """The exports of one run. A failing one is a warning: the run and its exit code stay."""

    def __init__(
        self,
        exports: Sequence[Export],
        directory: RunDirectory,
        say: Callable[[str], None],
        metrics: str | None = None,
    ) -> None:
        """`metrics` is where Prometheus is to read the run, `[ADDRESS:]PORT`."""
        self._exports = tuple(exports)
        self._metrics = metrics
        self._directory = directory
        self._say = say

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """While the run goes on: push and serve snapshots; if it raises, export that it did."""
        pushers = [
            _Pusher(one.exporter, one.target, self._directory)
            for one in self._exports
            if isinstance(one.exporter, LiveExporter)
        ]
        try:
            for pusher in pushers:
                pusher.start()
            with self._endpoint():
                yield
        except OsbenchError as error:
            self._write_failure(error)
            raise
        finally:
            for pusher in pushers:
                pusher.stop()

    def _endpoint(self) -> contextlib.AbstractContextManager[object]:
        if not self._metrics:
            return contextlib.nullcontext()
        # few runs have one, and these take a while to import
        from osbench.common.metrics_endpoint import metrics_endpoint  # noqa: PLC0415 - see above
        from osbench.coordinator.exporters.openmetrics import families  # noqa: PLC0415 - see above

        def collect() -> Iterable[Any]:
            timeline = read_timeline(self._directory)
            return families(LiveRun(timeline)) if timeline is not None else ()

        return metrics_endpoint(self._metrics, collect)

    def write(self, summary: Mapping[str, Any]) -> None:
        """Export a run that has ended."""
        stored = StoredRun(self._directory, summary)
        for export in self._exports:
            self._attempt(export, partial(export.write, stored))

    def _write_failure(self, error: OsbenchError) -> None:
        manifest: Mapping[str, Any] = {}
        with contextlib.suppress(OsbenchError):
            manifest = self._directory.read("run.json") or {}
        failure = failure_of(error, error.exit_code, manifest)

        def write(export: Export) -> str:
            # what the run has left has a page of its own, where it has begun
            page = export.write_unfinished(self._directory) if manifest else ""
            return page or export.write_failure(failure)

        for export in self._exports:
            self._attempt(export, partial(write, export))

    def _attempt(self, export: Export, step: Callable[[], str]) -> None:
        try:
            done = step()
        except OsbenchError as error:
            _warn(export.name, f"{error}; the run is kept: `osbench-coord report` tries again")
        else:
            if done:
                self._say(done)


class _Pusher:
    """Pushes the checkpoints of a run in a thread of its own: the run does not wait for it."""

    def __init__(self, exporter: LiveExporter, target: str, directory: RunDirectory) -> None:
        self._exporter = exporter
        self._target = target
        self._directory = directory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="pusher", daemon=True)

    def start(self) -> None:
        """Begin to push."""
        self._thread.start()

    def stop(self) -> None:
        """Push no more. What is under way is left to end by itself."""
        self._over.set()

    def _loop(self) -> None:
        pushed_at = 0.0
        reported = False
        while not self._over.wait(self._exporter.INTERVAL_S):
            try:
                timeline = read_timeline(self._directory)
                if timeline is not None and timeline["at"] > pushed_at:
                    pushed_at = timeline["at"]
                    self._exporter.push(LiveRun(timeline), self._target)
            except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
                if not reported:
                    _warn(self._exporter.NAME, f"{type(error).__name__}: {error}")
                reported = True


def _warn(name: str, text: str) -> None:
    shown = plain(mask_url(text), 1000)
    click.echo(f"Warning: export {name} failed: {shown}", err=True)

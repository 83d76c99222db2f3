"""Exports of `run`: at the end, if it could not start, and while it is under load.

Last of all the run goes to an archive, if one is given, with notes on the exports that failed.

Imports for exports take a while: they are only done if there are exports.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from osbench.common.errors import OsbenchError, PluginError
from osbench.common.plugin.exporter import LiveExporter
from osbench.common.secrets.masking import error_text, mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import CommandSettings, echo
from osbench.coordinator.front.cli.options.export_options import RunExportOptions
from osbench.coordinator.front.cli.run_views.damaged_runs import warn_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline
from osbench.coordinator.results.storage.run_store import RunStore, open_store

if TYPE_CHECKING:
    from osbench.coordinator.report.exporting import Export
    from osbench.coordinator.report.model.model import Report

#: Exit code of Python after an uncaught exception.
ACCIDENT = 1


def exports_of(
    options: RunExportOptions,
    settings: CommandSettings,
    plugin_path: Sequence[str],
    directory: RunDirectory,
    say: Callable[[str], None],
) -> RunExports:
    """Return the exports of a run, with options and targets checked; nothing is written yet.

    `say` prints messages to the user. Reads the list of the archive, if there is one. If a plug-in
    path cannot be used, osbench's own exporters export that failure. Raises OsbenchError.
    """
    conf, wanted = settings.conf, options.wanted
    archive = _archive(settings, options.archive)
    try:
        chosen = wanted.chosen(conf, plugin_path)
    except PluginError as error:
        # the user's own exporters cannot be loaded
        with contextlib.suppress(OsbenchError):
            RunExports(wanted.own(), directory, say).write_failure(error)
        raise
    metrics = options.metrics or conf.coordinator.metrics_address
    return RunExports(chosen, directory, say, metrics, archive)


def _archive(settings: CommandSettings, url: str | None) -> RunStore | None:
    """None without a URL. Raises UsageError, ArchiveError, PluginError."""
    if url is None:
        return None
    found = open_store(url, str(settings.data_dir), warn_of)
    found.ids()
    return found


class RunExports:
    """Makes the exports of one run; notes and exit code of the run report failed exports."""

    def __init__(
        self,
        exports: Sequence[Export],
        directory: RunDirectory,
        say: Callable[[str], None],
        metrics: str | None = None,
        archive: RunStore | None = None,
    ) -> None:
        """`metrics`: address `[ADDRESS:]PORT` for Prometheus to read the run at, or None.

        `say` prints messages to the user.
        """
        self._exports = tuple(exports)
        self.archive = archive
        self._metrics = metrics
        self._directory = directory
        self._say = say

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Send checkpoints of a run to live exporters and serve its metrics, within this block.

        An exception of the block, except an interrupt, is exported as the run's failure; a run that
        has begun is then archived, and the exception raised again.
        """
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
            self.write_failure(error)
            raise
        except Exception as error:
            accident = OsbenchError(f"internal error: {error_text(error)}")
            accident.exit_code = ACCIDENT
            self.write_failure(accident)
            raise
        finally:
            for pusher in pushers:
                pusher.stop()

    def _endpoint(self) -> contextlib.AbstractContextManager[object]:
        if not self._metrics:
            return contextlib.nullcontext()
        from osbench.common.machine.metrics_endpoint import metrics_endpoint  # noqa: PLC0415 - see above
        from osbench.coordinator.plugins.exporters.openmetrics import families  # noqa: PLC0415 - see above
        from osbench.coordinator.report.stored_run import LiveRun  # noqa: PLC0415 - see above

        def collect() -> Iterable[Any]:
            timeline = read_timeline(self._directory)
            return families(LiveRun(timeline)) if timeline is not None else ()

        return metrics_endpoint(self._metrics, collect)

    def write(self, report: Report) -> Report:
        """Export and archive a run that has ended; return its report with notes on failures.

        A failure also changes the exit code, here and in the run directory. Failures are printed,
        not raised.
        """
        if self._exports:
            from osbench.coordinator.report.stored_run import StoredRun  # noqa: PLC0415 - above

            stored = StoredRun(self._directory, report.to_json())
            done = [self._export(one, partial(one.write, stored)) for one in self._exports]
            report = self._with_failures(report, [said for said in done if said])
        said = self._push()
        return self._with_failures(report, [said]) if said else report

    def _with_failures(self, report: Report, failed: Sequence[str]) -> Report:
        if not failed:
            return report
        from osbench.coordinator.report.exit_code import (  # noqa: PLC0415 - see above
            AROUND,
            meaning,
            worst,
        )

        code = worst((report.code, AROUND))
        said = report.exit_meaning if code == report.exit_code else meaning(code)
        notes = (*report.notes, *failed)
        changed = replace(report, notes=notes, exit_code=code, exit_meaning=said)
        try:
            self._directory.write("summary.json", changed.to_json())
        except OsbenchError as error:
            _warn("export summary.json", str(error))
        return changed

    def write_failure(self, error: OsbenchError) -> None:
        """Export why a run could not begin or broke off; archive the run if it has begun.

        Failures are printed, not raised.
        """
        if self._exports:
            self._write_failure(error)
        if (self._directory.path / "run.json").exists():
            self._push()

    def _write_failure(self, error: OsbenchError) -> None:
        from osbench.coordinator.report.exporting import failure_of  # noqa: PLC0415 - see above

        manifest: Mapping[str, Any] = {}
        with contextlib.suppress(OsbenchError):
            manifest = self._directory.read("run.json") or {}
        failure = failure_of(error, error.exit_code, manifest)

        def write(export: Export) -> str:
            # a run that has begun has a page of unfinished results
            page = export.write_unfinished(self._directory) if manifest else ""
            return page or export.write_failure(failure)

        for export in self._exports:
            self._export(export, partial(write, export))

    def _export(self, export: Export, step: Callable[[], str]) -> str:
        if "://" in export.target:
            self._say(f"sending results to {mask_url(export.target)}; Ctrl-C gives that up")
        return self._attempt(f"export {export.name}", "osbench-coord report", step)

    def _push(self) -> str:
        archive, name = self.archive, self._directory.path.name
        if archive is None:
            return ""

        def push() -> str:
            pushed = archive.push(self._directory)
            return f"run {name} is {'now' if pushed else 'already'} in the archive {archive.place}"

        self._say(f"archiving the run in {archive.place}; Ctrl-C gives that up")
        return self._attempt("archive", f"osbench-coord runs push {name} {archive.place}", push)

    def _attempt(self, what: str, again: str, step: Callable[[], str]) -> str:
        """Try `step`, and print its result or failure; return the reason of the failure, or "".

        `again`: the command that the message names to repeat it. Ctrl-C gives the step up.
        """
        try:
            done = step()
        except (OsbenchError, KeyboardInterrupt) as error:
            why = error if isinstance(error, OsbenchError) else "given up by Ctrl-C"
            said = f"{why}; the run is kept: `{again}` tries again"
            _warn(what, said)
            return f"{what} failed: {said}"
        if done:
            self._say(done)
        return ""


class _Pusher:
    """Sends the checkpoints of a run to a live exporter, in a thread: the run does not wait.

    The first failure is printed, others are ignored.
    """

    def __init__(self, exporter: LiveExporter, target: str, directory: RunDirectory) -> None:
        self._exporter = exporter
        self._target = target
        self._directory = directory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="pusher", daemon=True)

    def start(self) -> None:
        """Start the thread, which sends new checkpoints at the exporter's interval."""
        self._thread.start()

    def stop(self) -> None:
        """Let the thread send no more checkpoints; does not wait until the current one is sent."""
        self._over.set()

    def _loop(self) -> None:
        from osbench.coordinator.report.stored_run import LiveRun  # noqa: PLC0415 - see above

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
                    _warn(f"export {self._exporter.NAME}", error_text(error))
                reported = True


def _warn(what: str, text: str) -> None:
    shown = plain(mask_text(text), 1000)
    echo(f"Warning: {what} failed: {shown}", err=True)

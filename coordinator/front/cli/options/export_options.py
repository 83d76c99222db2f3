"""Options that name exporters: a file for each format, and any exporter with its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oslo_config import cfg

from osbench.common.errors import UsageError
from osbench.common.plugin import entry_points
from osbench.coordinator.front.cli.base import warn_of_plugins
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule
from osbench.coordinator.front.cli.options.option_table import OptionSet, option, repeated_option
from osbench.coordinator.front.cli.options.shared_options import archive_url

if TYPE_CHECKING:
    from osbench.common.plugin.plugins import Plugins
    from osbench.coordinator.report.exporting import Export

#: Exporters with a separate option in `report`.
FORMATS = ("html", "junit", "csv", "csv-times", "json", "rally", "parquet", "hdr", "openmetrics")

#: Rules of `report`.
FORMAT_RULES = (
    Alternatives(
        of=(*(f"--{name}" for name in FORMATS), "--export"),
        missing="nothing is requested",
        remedy="as in `osbench-coord report --html report.html`",
    ),
)

#: Rules of a command that runs a task.
RUN_EXPORT_RULES = (
    Rule(
        option="--export-option", why="is an option of an exporter", needs=("--export", "--report")
    ),
)

_PAGE = "a page with charts, errors and traces; opens without a server"
_TOGETHER = "results with an exporter, to a file, a folder or the URL of a server"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The exports that a command line requests, with their targets and options, unchecked."""

    #: Path by exporter.
    files: Mapping[str, str]
    #: Texts NAME or NAME=TARGET.
    exports: tuple[str, ...] = ()
    #: Folder of exports without a target.
    folder: str = "."
    #: Texts KEY=VALUE or EXPORTER.KEY=VALUE.
    options: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        """Return whether any export was requested."""
        return bool(self.files or self.exports)

    def chosen(self, conf: cfg.ConfigOpts, plugin_path: Sequence[str]) -> list[Export]:
        """Return the requested exports, with their options and targets checked; [] for none.

        Imports the plug-in files of `conf` and `plugin_path`. Raises PluginError if a plug-in path
        cannot be used, OsbenchError for an unknown exporter or an invalid option or target.
        """
        if not self.given:
            return []
        from osbench.common.plugin.plugins import Plugins  # noqa: PLC0415 - takes a while

        return self._of(warn_of_plugins(Plugins((*conf.coordinator.plugin_path, *plugin_path))))

    def own(self) -> list[Export]:
        """Return exports of osbench's own exporters. Raises OsbenchError if others are wanted."""
        from osbench.common.plugin.plugins import Plugins  # noqa: PLC0415 - as above

        return self._of(Plugins(()))

    def _of(self, plugins: Plugins) -> list[Export]:
        asked = [(name, path, True) for name, path in self.files.items()]
        for text in self.exports:
            name, equals, target = text.partition("=")
            if equals and not target:
                raise UsageError(f"--export {text}: name a file, a folder or a URL after =")
            asked.append((name, target or self.folder, False))
        by_exporter = self._divided([name for name, *_ in asked])
        if not asked:
            return []
        # it takes a while to import, and most runs export nothing
        from osbench.coordinator.report.exporting import (  # noqa: PLC0415 - see above
            Export,
            exporter_of,
        )

        found = []
        for name, target, exact in asked:
            if name in FORMATS and name not in plugins.names("exporter"):
                # an edge that is not installed: raises PluginError
                entry_points.load_object("exporter", name)
            exporter = exporter_of(plugins, name, by_exporter.get(name, ()))
            found.append(Export(exporter, target, exact=exact))
            found[-1].check()
        return found

    def _divided(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the options of each exporter in `names`, without the prefix "NAME.", by its name.

        The prefix may be missing if there is only one exporter. Raises UsageError if it is missing
        or unknown, and there are several.
        """
        found: dict[str, list[str]] = {}
        for text in self.options:
            name, dot, _ = text.partition("=")[0].partition(".")
            if dot and name in names:
                found.setdefault(name, []).append(text[len(name) + 1 :])
            elif len(set(names)) == 1:
                found.setdefault(names[0], []).append(text)
            else:
                raise UsageError(
                    f"option {text}: with several exporters, write {names[0]}.{name}=VALUE"
                )
        return found


def _format(name: str, what: str) -> str | None:
    return option(f"--{name}", metavar="FILE", help=f"Write {what}.")


def _exporter_options(name: str) -> tuple[str, ...]:
    return repeated_option(
        name,
        metavar="[NAME.]KEY=VALUE",
        help="Option of an exporter, its value in YAML; may be repeated.",
    )


@dataclass(frozen=True, kw_only=True)
class FormatOptions(OptionSet):
    """Options of `report`: a field that is called like an exporter has the path of its file."""

    SECTION = "Formats"

    html: str | None = _format("html", _PAGE)
    junit: str | None = _format(
        "junit", "test cases for continuous integration: workloads with their SLA, and the run"
    )
    csv: str | None = _format("csv", "a line for each iteration")
    csv_times: str | None = _format(
        "csv-times", "percentiles of the times of workloads and actions"
    )
    json: str | None = _format("json", "the JSON object of the run")
    rally: str | None = _format("rally", "the format of `rally task report --json`")
    parquet: str | None = _format("parquet", "a table of the iterations; needs pyarrow")
    hdr: str | None = _format("hdr", "an interval log of HdrHistogram")
    openmetrics: str | None = _format("openmetrics", "counts and durations for Prometheus")
    exports: tuple[str, ...] = repeated_option(
        "--export",
        metavar="NAME[=TARGET]",
        help=f"Write {_TOGETHER}; may be repeated. `plugin list exporter` lists exporters.",
    )
    folder: str = option(
        "--to",
        default=".",
        metavar="DIR",
        help="Folder for --export without TARGET; created if missing. Default: this folder.",
    )
    options: tuple[str, ...] = _exporter_options("--option")

    @property
    def wanted(self) -> ExportOptions:
        """The exports that these options request."""
        files = {name: getattr(self, name.replace("-", "_")) for name in FORMATS}
        return ExportOptions(
            files={name: path for name, path in files.items() if path is not None},
            exports=self.exports,
            folder=self.folder,
            options=self.options,
        )


@dataclass(frozen=True, kw_only=True)
class RunExportOptions(OptionSet):
    """Options for exports of a run at its end, and for metrics that it serves meanwhile."""

    SECTION = "Exports"

    report: str | None = option(
        "--report",
        metavar="FILE",
        help=f"At the end, write {_PAGE}. With a directory: one page of all tasks, with links to"
        " their reports; for night.html these are in night-runs.",
    )
    exports: tuple[str, ...] = repeated_option(
        "--export",
        metavar="NAME[=TARGET]",
        help=f"At the end, write {_TOGETHER}; may be repeated. With a URL, otlp also sends metrics"
        " during the run.",
    )
    options: tuple[str, ...] = _exporter_options("--export-option")
    metrics: str | None = option(
        "--metrics",
        metavar="[ADDR:]PORT",
        help="Serve metrics for Prometheus during the run; on 127.0.0.1 without ADDR. Default:"
        " [coordinator] metrics_address.",
    )
    archive: str | None = archive_url("At the end, put the run into an archive")

    @property
    def wanted(self) -> ExportOptions:
        """The exports that are to be made at the end of the run."""
        files = {} if self.report is None else {"html": self.report}
        return ExportOptions(files=files, exports=self.exports, options=self.options)

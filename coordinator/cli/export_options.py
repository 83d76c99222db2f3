"""Options that name exporters: a file for each format, and any exporter with its target."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from oslo_config import cfg

from osbench.common.errors import UsageError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.cli.base import warn_of_plugins

if TYPE_CHECKING:
    from osbench.coordinator.report.exporting import Export

#: Exporter -> what its file is. Each has an option of its own.
FORMATS = {
    "html": "a page with charts, errors and traces; opens without a server",
    "junit": "test cases for continuous integration: workloads with their SLA, and the run",
    "csv": "a line for each iteration",
    "csv-times": "a line for each time of a workload or atomic action",
    "json": "the JSON object of the run",
    "rally": "the format of `rally task report --json`",
    "parquet": "a table of the iterations; needs pyarrow",
    "hdr": "interval log of HdrHistogram",
    "openmetrics": "counts and durations for Prometheus",
}

_TOGETHER = "Write results with an exporter, to a file or folder or to the URL of a server"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What the options of this module collect from the command line."""

    #: Path by exporter.
    files: Mapping[str, str]
    #: Texts NAME or NAME=TARGET.
    exports: tuple[str, ...] = ()
    #: Folder of exports without a target.
    folder: str = "."
    #: Texts KEY=VALUE or EXPORTER.KEY=VALUE.
    options: tuple[str, ...] = ()
    #: Where Prometheus is to read the run while it goes on, as `[ADDRESS:]PORT`.
    metrics: str | None = None

    @property
    def given(self) -> bool:
        """Something is to be exported."""
        return bool(self.files or self.exports)

    def chosen(self, conf: cfg.ConfigOpts, plugin_path: Sequence[str]) -> list[Export]:
        """The exports, with their options and targets checked.

        Raises PluginError where a plug-in path cannot be used, OsbenchError.
        """
        if not self.given:
            if self.options:
                raise UsageError(f"{self.options[0]} is an option of an exporter: name one")
            return []
        return self._of(warn_of_plugins(Plugins((*conf.coordinator.plugin_path, *plugin_path))))

    def own(self) -> list[Export]:
        """The exports by osbench's own exporters, whatever plug-in paths there are.

        Raises OsbenchError where another one is wanted.
        """
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
            exporter = exporter_of(plugins, name, by_exporter.get(name, ()))
            found.append(Export(exporter, target, exact=exact))
            found[-1].check()
        return found

    def _divided(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Options by exporter, without its name."""
        found: dict[str, list[str]] = {}
        for option in self.options:
            name, dot, _ = option.partition("=")[0].partition(".")
            if dot and name in names:
                found.setdefault(name, []).append(option[len(name) + 1 :])
            elif len(set(names)) == 1:
                found.setdefault(names[0], []).append(option)
            else:
                raise UsageError(
                    f"option {option}: with several exporters, write {names[0]}.{name}=VALUE"
                )
        return found


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `report`: it gets what is to be exported as one `ExportOptions` named `wanted`."""

    @click.option(
        "--export",
        "exports",
        multiple=True,
        metavar="NAME[=TARGET]",
        help=f"{_TOGETHER}; may be repeated. `plugin list exporter` names them.",
    )
    @click.option(
        "--to",
        "folder",
        default=".",
        metavar="DIR",
        help="Folder of --export without TARGET; created if missing. Default: this folder.",
    )
    @click.option(
        "--option",
        "options",
        multiple=True,
        metavar="[NAME.]KEY=VALUE",
        help="Option of an exporter, its value in YAML; may be repeated.",
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        exports: tuple[str, ...],
        folder: str,
        options: tuple[str, ...],
        **others: Any,
    ) -> Any:
        files = {}
        for name in FORMATS:
            path = others.pop(_parameter(name))
            if path is not None:
                files[name] = path
        wanted = ExportOptions(files=files, exports=exports, folder=folder, options=options)
        return command(*args, wanted=wanted, **others)

    for name, text in reversed(FORMATS.items()):
        wrapped = click.option(
            f"--{name}", _parameter(name), metavar="FILE", help=f"Write {text}."
        )(wrapped)
    return wrapped


def run_export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `run`: it gets its options as one `ExportOptions` named `wanted_exports`."""

    @click.option("--report", "page", metavar="FILE", help=f"At the end, write {FORMATS['html']}.")
    @click.option(
        "--export",
        "exports",
        multiple=True,
        metavar="NAME[=TARGET]",
        help=f"{_TOGETHER} at the end; may be repeated. With a URL, otlp sends metrics during "
        "the run, too.",
    )
    @click.option(
        "--export-option",
        "options",
        multiple=True,
        metavar="[NAME.]KEY=VALUE",
        help="Option of an exporter, its value in YAML; may be repeated.",
    )
    @click.option(
        "--metrics",
        metavar="[ADDR:]PORT",
        help="Serve metrics of the run for Prometheus while it goes on; on 127.0.0.1 without ADDR. "
        "Default: [coordinator] metrics_address.",
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        page: str | None,
        exports: tuple[str, ...],
        options: tuple[str, ...],
        metrics: str | None,
        **others: Any,
    ) -> Any:
        files = {} if page is None else {"html": page}
        wanted = ExportOptions(files=files, exports=exports, options=options, metrics=metrics)
        return command(*args, wanted_exports=wanted, **others)

    return wrapped


def _parameter(name: str) -> str:
    return f"as_{name.replace('-', '_')}"

"""Rally's exporters as osbench's: their classes get a run as Rally's own results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.common.errors import ExportError
from osbench.common.files.named_files import expanded
from osbench.common.plugin.exporter import ExportedRun, Exporter
from osbench.edges.rally import importing, plugin_registry


def exporter_class(name: str) -> type[Exporter] | None:
    """Return the adapter class of Rally's exporter `name` or `name@platform`; imports Rally.

    None if there is none or Rally is not installed. Raises PluginError if Rally is broken, or if
    several platforms have the name.
    """
    found = plugin_registry.plugin("exporter", name) if importing.load() else None
    if found is None:
        return None
    body = {"RALLY": found, "NAME": found.get_name(), "FILE": found.get_name()}
    return type(f"Rally{found.__name__}", (RallyExporter,), {**body, "__doc__": found.__doc__})


class RallyExporter(Exporter):
    """Base class of adapters of Rally's exporters; they get the whole run in memory."""

    #: Rally's class.
    RALLY: ClassVar[Any]
    ANY_SUFFIX: ClassVar[bool] = True

    def export(self, run: ExportedRun, path: Path) -> None:
        """Write the files that Rally's class returns for the destination `path`.

        If that leaves no file at `path`, writes the text there that Rally would print. Raises
        ExportError if Rally refuses the destination.
        """
        made = self._made(run, str(path))
        for name, text in made.get("files", {}).items():
            expanded(name).write_text(text, encoding="utf-8")
        if not path.exists() and "print" in made:
            path.write_text(made["print"], encoding="utf-8")

    def send(self, run: ExportedRun, url: str) -> str:
        """Call Rally's class with the destination `url`; return the text that Rally would print.

        Raises ExportError if Rally refuses the URL.
        """
        made = self._made(run, url)
        return str(made.get("print") or f"Rally's exporter {self.NAME} has sent the run")

    def _made(self, run: ExportedRun, destination: str) -> Mapping[str, Any]:
        base = plugin_registry.base("exporter")
        said = base.validate(
            self.RALLY.get_fullname(),
            context={},
            config={},
            plugin_cfg={"destination": destination},
            vtype="syntax",
        )
        if said:
            raise ExportError(
                f"the exporter {self.NAME}: {' '.join(' '.join(said).split())}; correct the "
                f"address after {self.NAME}="
            )
        made: Mapping[str, Any] = base.make(self.RALLY, run.rally_results(), destination)
        return made

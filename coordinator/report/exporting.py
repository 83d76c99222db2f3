"""Exports a run: finds the exporter, checks its options and target, and writes files atomically."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from osbench.common.errors import ExportError, OsbenchError, UsageError
from osbench.common.files.named_files import expanded
from osbench.common.files.yaml_documents import load_yaml
from osbench.common.network.server_address import HTTP, server_address_fault
from osbench.common.plugin.exporter import ExportedRun, Exporter
from osbench.common.plugin.plugins import Plugins
from osbench.common.secrets.masking import error_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.report.error_json import to_error_json
from osbench.coordinator.report.html_exporter import HtmlPage
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.task.taskfile.schema.schema_durations import in_seconds
from osbench.coordinator.task.taskfile.schema.schema_errors import validate

#: Exit code of runs that lost iterations.
LOST = 3

#: Ends of file names that say a format; others, as .txt or none, say nothing.
_FORMATS = frozenset(
    {".csv", ".hlog", ".html", ".json", ".parquet", ".pdf", ".prom", ".xml", ".yaml"}
)
#: Ends of names that say the same.
_SAME = {".htm": ".html", ".yml": ".yaml"}


class Export:
    """An exporter plug-in with its target: a path, or the URL of a server."""

    def __init__(self, exporter: Exporter, target: str, *, exact: bool = False) -> None:
        """`target`: path or URL; `exact`: it is the path of a file, whatever its name.

        Otherwise a path with a suffix that the exporter takes is a file, any other a folder. Raises
        UsageError if the exporter does not take such a target.
        """
        self.exporter = exporter
        self.target = target
        self._exact = exact
        self._is_url = "://" in target and not exact
        writes, sends = _defines(exporter, "export"), _defines(exporter, "send")
        if self._is_url and not sends:
            raise UsageError(
                f"the exporter {self.name} writes files; give it a path instead of the URL "
                f"{mask_url(target)}"
            )
        if not self._is_url and not writes:
            raise UsageError(
                f"the exporter {self.name} sends results to a server; give its address as "
                f"{self.name}=URL"
            )
        path = expanded(target)
        suffix = Path(target).suffix
        is_file = exact or suffix == Path(exporter.FILE).suffix
        is_file = is_file or bool(exporter.ANY_SUFFIX and suffix)
        self._path = path / exporter.FILE if exporter.FILE and not is_file else path

    @property
    def name(self) -> str:
        """Name of the exporter plug-in."""
        return self.exporter.NAME

    def check(self) -> None:
        """Raise UsageError if the target cannot be written, so that no run is made in vain.

        Raises it also if an exact target has the suffix of another format. Creates and removes a
        draft in the target's folder, if the exporter writes a file. If the folder is missing, its
        nearest existing parent has to be writable instead. Of a URL only its form is checked.
        """
        if self._is_url:
            scheme = self.target.partition("://")[0]
            schemes = self.exporter.SCHEMES or (scheme,)
            fault = server_address_fault(self.target, schemes)
            # an address of another scheme may have another form
            if fault and (self.exporter.SCHEMES or scheme in HTTP):
                raise UsageError(
                    f"the address of the exporter {self.name}, {mask_url(self.target)}, {fault}"
                )
            return
        self._refuse_other_format()
        folder = self._folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        if self._path.is_dir() and self.exporter.FILE:
            raise UsageError(
                f"cannot write {self._path}, which is a directory; give the name of a file"
            )
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise UsageError(
                f"cannot write to {self._folder}: {folder} is not a writable directory; give "
                "another one"
            )
        if folder == self._folder and self.exporter.FILE:
            self._try_draft()

    def _try_draft(self) -> None:
        """Create a draft in the target's folder and remove it. Raises UsageError if that fails.

        The mode bits are not enough: a folder of /proc looks writable but takes no file.
        """
        draft = self._draft
        try:
            draft.touch()
            draft.unlink()
        except OSError as error:
            raise UsageError(
                f"cannot write {self._path}: {error.strerror}; free space, or give a path in a "
                "writable folder"
            ) from None

    def _refuse_other_format(self) -> None:
        """Raise UsageError if an exact target has the suffix of another format."""
        named, own = (Path(name).suffix.lower() for name in (self.target, self.exporter.FILE))
        named = _SAME.get(named, named)
        if self._exact and named in _FORMATS and own in _FORMATS and named != own:
            raise UsageError(
                f"{self.target} would not be {named[1:]}: the exporter {self.name} writes {own} "
                f"files; give a name that ends in {own}"
            )

    def write(self, run: ExportedRun) -> str:
        """Write a run to the target or send it there; return a message on the results.

        Creates missing folders and replaces an old file. Raises ExportError if that fails.
        """
        if self._is_url:
            return str(self._guarded(lambda: self.exporter.send(run, self.target)))
        self._in_place(lambda path: self.exporter.export(run, path))
        return f"wrote {self._path}"

    def write_failure(self, failure: Mapping[str, Any]) -> str:
        """Write to the target that a run could not start; return a message on the file.

        Returns "" if the target is a URL, or if the exporter has no form for failures. Raises
        ExportError if it cannot be written.
        """
        if self._is_url:
            return ""
        done = self._in_place(lambda path: self.exporter.export_failure(failure, path))
        return f"wrote {self._path}" if done else ""

    def write_unfinished(self, directory: RunDirectory) -> str:
        """Write the page of a run that goes on or was killed; return a message on the file.

        Returns "", and writes nothing, unless the exporter writes pages. Raises OsbenchError if
        that fails, or if the run is damaged.
        """
        page = self.exporter
        if not isinstance(page, HtmlPage):
            return ""
        self._in_place(lambda path: page.render(directory, path))
        return f"wrote {self._path}"

    @property
    def _draft(self) -> Path:
        return self._path.with_name(f".{self._path.name}.{os.getpid()}.draft")

    @property
    def _folder(self) -> Path:
        return self._path.parent if self.exporter.FILE else self._path

    def _in_place(self, write: Callable[[Path], Any]) -> Any:
        """Call `write` with the path of a draft, rename the draft to the target; return its result.

        So a partial file never has the target's name. The draft is removed if `write` fails. An
        exporter without `FILE` writes to the folder itself. Creates missing folders. Raises
        ExportError if that fails, and OsbenchErrors of `write`.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(
                f"cannot write to {self._folder}: {error.strerror}; give a path in a writable "
                "folder"
            ) from None
        if not self.exporter.FILE:
            return self._guarded(lambda: write(self._path))
        draft = self._draft
        try:
            done = self._guarded(lambda: write(draft))
            if draft.exists():
                draft.replace(self._path)
        except OSError as error:
            raise ExportError(
                f"cannot write {self._path}: {error.strerror}; free space, or give a path in a "
                "writable folder"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()
        return done

    def _guarded(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except OsbenchError:
            raise
        except OSError as error:
            what = self.target if self._is_url else self._path
            reason = error.strerror or error
            raise ExportError(
                f"the exporter {self.name} cannot write {what}: {reason}; correct the cause, then "
                "export again"
            ) from None
        except Exception as error:  # a plug-in's own code may raise anything
            raise ExportError(
                f"the exporter {self.name} raises {error_text(error)}; correct its code, or leave "
                "it out"
            ) from error


def _defines(exporter: Exporter, method: str) -> bool:
    return getattr(type(exporter), method) is not getattr(Exporter, method)


def exporter_of(plugins: Plugins, name: str, options: Sequence[str] = ()) -> Exporter:
    """Return an instance of the exporter called `name`, with `options` NAME=VALUE (VALUE in YAML).

    Raises UsageError for wrong options, PluginError for an unknown name.
    """
    kind = cast(type[Exporter], plugins.get("exporter", name))
    config = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise UsageError(f"option {option}: must be NAME=VALUE")
        try:
            config[key] = load_yaml(value)
        except yaml.YAMLError:
            raise UsageError(f"option {option}: {value} is not YAML; put it in quotes") from None
    config = in_seconds(config, kind.CONFIG_SCHEMA)
    problems = validate(config, kind.CONFIG_SCHEMA, f"exporter {name}")
    if problems:
        raise UsageError("; ".join(map(str, problems)))
    return kind(config)


def failure_of(
    error: OsbenchError | str, exit_code: int | None, manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the JSON object for `Exporter.export_failure`: error, exit code, run id and task.

    `manifest` is run.json, {} if there is none. `exit_code` None, after a killed coordinator,
    becomes 3: its iterations were lost.
    """
    known = error if isinstance(error, OsbenchError) else OsbenchError(error)
    found = to_error_json(known)
    found["exit_code"] = LOST if exit_code is None else exit_code
    return {
        **found,
        "run_id": str(manifest.get("run_id", "")),
        "task": str(manifest.get("task", "")),
    }

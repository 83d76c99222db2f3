"""What Rally's own loader makes of a task file, in this process and without its database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

#: Reads what `yaml.safe_load` reads, ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(kw_only=True)
class Loaded:
    """A task file as Rally sees it."""

    workloads: int = 0
    scenarios: Counter[str] = field(default_factory=Counter)
    contexts: Counter[str] = field(default_factory=Counter)
    #: Why Rally refuses the file; "" where it takes it.
    refusal: str = ""


class RallyLoader:
    """Rally's renderer, its task configuration, and its validation of syntax."""

    def __init__(self) -> None:
        pytest.importorskip("rally", reason="Rally is not installed: pip install osbench[rally]")
        from osbench.edges.rally import importing

        importing.load()
        from rally import api, exceptions
        from rally.task import engine, task_cfg

        # made without their constructors, which want a database
        self._renderer: Any = object.__new__(api._Task)
        self._engine: Any = object.__new__(engine.TaskEngine)
        self._engine.task = {"uuid": "none"}
        self._config = task_cfg.TaskConfig
        #: Results by document: most samples are there as YAML and as JSON.
        self._found: dict[str, Loaded] = {}
        self._refusals = (exceptions.RallyException, TypeError, yaml.YAMLError)

    def load(self, path: Path, args: Mapping[str, Any] | None = None) -> Loaded:
        """Render, parse and validate a task file as `rally task validate` begins to.

        Of files with the same document only the first is validated.
        """
        try:
            text = self._renderer.render_template(
                path.read_text("utf-8"), str(path.parent), **(args or {})
            )
            document = yaml.load(text, Loader=_LOADER)
        except self._refusals as error:
            return Loaded(refusal=str(error))
        # not sorted: the order of keys may decide what is refused first
        key = json.dumps(document, default=repr)
        if key not in self._found:
            self._found[key] = self._loaded(document)
        return self._found[key]

    def _loaded(self, document: Any) -> Loaded:
        loaded = Loaded()
        try:
            config = self._config(document)
            for workload in (one for subtask in config.subtasks for one in subtask["workloads"]):
                loaded.workloads += 1
                loaded.scenarios[workload["name"]] += 1
                loaded.contexts.update(name.partition("@")[0] for name in workload["contexts"])
            self._engine._validate_config_syntax(config)
        except self._refusals as error:
            loaded.refusal = str(error)
        return loaded

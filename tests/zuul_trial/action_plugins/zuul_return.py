"""Stands for Zuul's `zuul_return`: writes its data to the file that `zuul_return_file` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """The action."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Write what a job returns to Zuul."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        data = self._templar.template(self._task.args["data"])
        file = self._templar.template(task_vars["zuul_return_file"])
        Path(file).write_text(json.dumps(data), encoding="utf-8")
        return result | {"changed": False}

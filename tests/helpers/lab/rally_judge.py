"""Rally's own SLA criteria, in a process of Rally's pinned environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from helpers.lab.environment import environment

LAB = Path(__file__).parents[2] / "lab"


class RallyJudge:
    """A process of Rally's that judges."""

    def __init__(self) -> None:
        python = environment("rally", LAB / "requirements-rally.txt") / "bin" / "python"
        self._process = subprocess.Popen(
            [str(python), str(LAB / "judge_with_rally.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> RallyJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, criterion: str, config: Any, **more: Any) -> Any:
        """Have a criterion judge `iterations`, or without any its configuration."""
        assert self._process.stdin
        assert self._process.stdout
        question = {"criterion": criterion, "config": config, **more}
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

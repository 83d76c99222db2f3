"""Makes the JSON object of a failed command, as docs/results.schema.json describes it."""

from __future__ import annotations

from typing import Any

from osbench.common.errors import OsbenchError, TaskError


def to_error_json(error: OsbenchError) -> dict[str, Any]:
    """Return the JSON object of a failed command: message, exit code, problems of a task error."""
    problems = error.problems if isinstance(error, TaskError) else []
    # the message of a task error goes on with its problems, a line each
    message = str(error).partition("\n")[0] if problems else str(error)
    return {
        "error": {
            "message": message,
            "problems": [
                {"place": problem.place, "message": problem.message} for problem in problems
            ],
        },
        "exit_code": error.exit_code,
    }

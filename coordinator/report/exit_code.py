"""What the exit codes of `run` mean."""

from __future__ import annotations

#: A context's objects are left: `cleanup RUN`.
LEFT_BEHIND = 5

MEANINGS = {
    0: "everything ran and every SLA holds",
    1: "an SLA failed",
    2: "the command, task, configuration or deployment is wrong",
    3: "iterations were lost, dropped with a worker, or not started",
    4: "the load generator was the limit: the load was not the one asked for",
    5: "all is well but for a context that could not be undone",
    130: "interrupted",
}


def meaning(code: int) -> str:
    """A phrase for an exit code."""
    return MEANINGS.get(code, "unknown")

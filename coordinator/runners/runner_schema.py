"""Parts of the configuration that runners share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DRAFT = "http://json-schema.org/draft-07/schema#"

COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}
TIMES: Mapping[str, Any] = {**COUNT, "description": "iterations in all"}
USERS: Mapping[str, Any] = {**COUNT, "description": "virtual users, over all workers; 1 by default"}
MAX_CONCURRENCY: Mapping[str, Any] = {
    **COUNT,
    "description": "iterations at once, at most; arrivals that find no room are dropped",
}
MAX_CPU_COUNT: Mapping[str, Any] = {**COUNT, "description": "for Rally's sake; has no effect"}

#: Rally takes any number and means none by 0; a negative bound could only be a slip.
TIMEOUT: Mapping[str, Any] = {
    "type": "number",
    "minimum": 0,
    "description": "seconds an iteration may take; 0, the default, is no bound",
}

#: Rates in arrivals a second outside of which instants can't be told apart or told at all.
SLOWEST, FASTEST = 1e-9, 1e9

#: Seconds that arrivals are planned ahead.
HORIZON_S = 15.0

#: How arrivals follow each other at a rate, and where their chance begins.
ARRIVALS: Mapping[str, Any] = {
    "enum": ["even", "poisson"],
    "description": "how they follow each other; even by default",
}
SEED: Mapping[str, Any] = {
    "type": "integer",
    "minimum": 0,
    "maximum": 2**63 - 1,
    "description": "of poisson arrivals; 0 by default",
}

#: Seconds in which virtual users are added one after another.
RAMP_UP: Mapping[str, Any] = {
    "type": "number",
    "minimum": 0,
    "description": "seconds; 0, at once, by default",
}


def risen(config: Mapping[str, Any], elapsed_s: float) -> int:
    """Virtual users asked for at an instant: one at t0, `concurrency` once `ramp_up` is over."""
    users, ramp_up_s = int(config.get("concurrency", 1)), float(config.get("ramp_up", 0))
    if not ramp_up_s or elapsed_s >= ramp_up_s:
        return users
    return min(users, 1 + int(users * max(0.0, elapsed_s) / ramp_up_s))


def seed_without_effect(config: Mapping[str, Any]) -> list[str]:
    """A note where a seed is given and nothing is left to chance."""
    if "seed" not in config or config.get("arrivals", "even") != "even":
        return []
    return ["seed has no effect: arrivals are even"]


def without_effect(config: Mapping[str, Any]) -> list[str]:
    """A note where `max_cpu_count` is given: workers are spread over hosts, not over CPUs."""
    if "max_cpu_count" not in config:
        return []
    return ["max_cpu_count has no effect: the workers say how many processes they run"]

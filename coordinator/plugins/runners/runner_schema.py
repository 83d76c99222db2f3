"""Parts of the configuration of runners that several share: JSON schemas and checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.coordinator.plugins.runners.possible_rates import MOST_COUNT
from osbench.plugin.durations import DURATION, TIMEOUT_S

DRAFT = "http://json-schema.org/draft-07/schema#"

COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": MOST_COUNT}
TIMES: Mapping[str, Any] = {**COUNT, "description": "iterations in all"}
USERS: Mapping[str, Any] = {**COUNT, "description": "virtual users, over all workers; 1 by default"}
MAX_CONCURRENCY: Mapping[str, Any] = {
    **COUNT,
    "description": "most concurrent iterations; arrivals beyond that are dropped",
}
MAX_CPU_COUNT: Mapping[str, Any] = {
    **COUNT,
    "description": "for compatibility with Rally; has no effect",
}

#: Rally accepts any number, and 0 means no timeout; a negative number can only be a mistake.
TIMEOUT: Mapping[str, Any] = {
    **DURATION,
    "minimum": 0,
    "description": f"seconds an iteration may take; {TIMEOUT_S} by default, 0: no limit",
}

#: Seconds that arrivals are planned ahead.
HORIZON_S = 15.0

#: The distribution of arrivals, and the seed of random ones.
ARRIVALS: Mapping[str, Any] = {
    "enum": ["even", "poisson"],
    "description": "distribution of arrivals; even by default",
}
SEED: Mapping[str, Any] = {
    "type": "integer",
    "minimum": 0,
    "maximum": 2**63 - 1,
    "description": "seed of poisson arrivals; 0 by default",
}

#: Seconds in which virtual users are added one after another.
RAMP_UP: Mapping[str, Any] = {
    **DURATION,
    "minimum": 0,
    "description": "seconds in which virtual users are added; 0, at once, by default",
}


def stages(
    key: str, level: Mapping[str, Any], *, elsewhere: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the JSON schema of stages, each with a duration and the load at its end.

    `key` is the name of the load in a stage, `level` its schema. `elsewhere`: keys that belong to
    another runner, each with the message that says so.
    """
    duration = {**DURATION, "minimum": 0, "maximum": 1e9, "description": "seconds; 0 is a jump"}
    return {
        "type": "array",
        "minItems": 1,
        "description": "one after another",
        "items": {
            "type": "object",
            "properties": {"duration": duration, key: level},
            "required": ["duration", key],
            "additionalProperties": False,
            "elsewhere": elsewhere,
        },
    }


def ramped_users(config: Mapping[str, Any], elapsed_s: float) -> int:
    """Return the number of virtual users of a closed load at `elapsed_s` seconds after t0.

    It grows evenly from 1 at t0 to `concurrency` at `ramp_up`, both in `config`; without a ramp-up
    it is `concurrency`.
    """
    users, ramp_up_s = int(config.get("concurrency", 1)), float(config.get("ramp_up", 0))
    if not ramp_up_s or elapsed_s >= ramp_up_s:
        return users
    return min(users, 1 + int(users * max(0.0, elapsed_s) / ramp_up_s))


def seed_without_effect(config: Mapping[str, Any]) -> list[str]:
    """Return a note if a seed is given for even arrivals."""
    if "seed" not in config or config.get("arrivals", "even") != "even":
        return []
    return ["seed has no effect: arrivals are even"]


def without_effect(config: Mapping[str, Any]) -> list[str]:
    """Return a note if `max_cpu_count` is given, which has no effect."""
    if "max_cpu_count" not in config:
        return []
    return ["max_cpu_count has no effect: the workers say how many processes they run"]

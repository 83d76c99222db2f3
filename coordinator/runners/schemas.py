"""Parts of the JSON schemas that Rally's runners share, and the checks that go with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DRAFT = "http://json-schema.org/draft-07/schema#"

COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}

#: Rally takes any number and means none by 0; a negative bound could only be a slip.
TIMEOUT: Mapping[str, Any] = {"type": "number", "minimum": 0}


def infinite(config: Mapping[str, Any]) -> list[str]:
    """Messages for numbers that are infinite or not a number, which no JSON schema forbids."""
    return [
        f"{key} must be a finite number, got {value}"
        for key, value in config.items()
        if isinstance(value, float) and not math.isfinite(value)
    ]


def without_effect(config: Mapping[str, Any]) -> list[str]:
    """A note where `max_cpu_count` is given: workers are spread over hosts, not over CPUs."""
    if "max_cpu_count" not in config:
        return []
    return ["max_cpu_count has no effect: the workers say how many processes they run"]

"""Parts of the JSON schemas that Rally's runners share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DRAFT = "http://json-schema.org/draft-07/schema#"

COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}

#: Rally takes any number and means none by 0; a negative bound could only be a slip.
TIMEOUT: Mapping[str, Any] = {"type": "number", "minimum": 0}


def without_effect(config: Mapping[str, Any]) -> list[str]:
    """A note where `max_cpu_count` is given: workers are spread over hosts, not over CPUs."""
    if "max_cpu_count" not in config:
        return []
    return ["max_cpu_count has no effect: the workers say how many processes they run"]

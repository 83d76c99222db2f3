"""Reads deploy/compose.yaml as compose does: variables, merges, paths from the file's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

#: $$, or ${NAME} with a default or with what to say where it is not set.
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")

_TIME = re.compile(r"(\d+)s")


class NotSet(Exception):
    """A variable that must be set; the message is what compose would say."""


def read(path: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """The content of a compose file. Raises NotSet."""
    loaded = yaml.safe_load(path.read_text("utf-8"))
    found = _interpolated(loaded, variables)
    assert isinstance(found, dict)
    return found


def seconds(duration: str) -> float:
    """A duration such as 45s."""
    match = _TIME.fullmatch(duration)
    assert match, duration
    return float(match[1])


def _interpolated(node: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(node, dict):
        return {key: _interpolated(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [_interpolated(value, variables) for value in node]
    if not isinstance(node, str):
        return node

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        found = variables.get(match[1], "")
        if not found and match[2] == "?":
            raise NotSet(f"{match[1]}: {match[3]}")
        return found or match[3] or ""

    return _VARIABLE.sub(value, node)

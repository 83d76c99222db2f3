"""The schema of what `--json` prints, docs/results.schema.json, and whether a result follows it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from helpers.readme import REPOSITORY

SCHEMA = json.loads((REPOSITORY / "docs" / "results.schema.json").read_text("utf-8"))


@cache
def _validator() -> Any:
    """Checks the schema once: that takes longer than to check a result."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def validate(found: object) -> None:
    """Raise jsonschema.ValidationError for what does not follow the schema."""
    _validator().validate(found)

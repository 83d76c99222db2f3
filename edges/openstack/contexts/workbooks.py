"""The context `workbooks`: workbooks of Mistral."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from osbench.plugin.cloud import Cloud, PerProjectContext, expanded, load_yaml, read_text
from osbench.plugin.errors import ContextError


class Workbooks(PerProjectContext):
    """Makes workbooks from one file in every project, each with a unique name."""

    NAME: ClassVar[str] = "workbooks"
    ORDER: ClassVar[int] = 430
    SERVICE: ClassVar[str] = "mistral"
    KEY: ClassVar[str] = "workbooks"
    COUNT: ClassVar[str] = "workbooks_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "definition": {
                "type": "string",
                "description": "file of the workbook, on the coordinator's host",
            },
            "workbooks_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "workbooks in each project; 1 by default",
            },
        },
        "required": ["definition"],
        "additionalProperties": False,
        "examples": [{"definition": "workbook.yaml", "workbooks_per_tenant": 2}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if the definition's file is unreadable or no YAML mapping; else []."""
        try:
            _definition(config["definition"])
        except ContextError as error:
            return [str(error)]
        return []

    def setup(self) -> None:
        """Read the definition's file, and create the workbooks; store their names by project id.

        Raises ContextError if the file cannot be read.
        """
        self._definition = _definition(self.config["definition"])
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create a workbook named `name` from the definition; return `name`.

        If a workbook of that name exists, it counts as created by an earlier attempt.
        """
        text = yaml.safe_dump(self._definition | {"name": name})
        headers = {"Content-Type": "text/plain", "Accept": "*/*"}
        # 409: a try whose response was lost has made it
        cloud.request(
            "POST",
            "mistral",
            "workbooks",
            data=text.encode(),
            headers=headers,
            expected=(201, 409),
        )
        return name


def _definition(path: str) -> dict[str, Any]:
    try:
        found = load_yaml(read_text(expanded(path)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise ContextError(
            f"the definition {path} cannot be read: {said}; give a readable file in YAML"
        ) from None
    if not isinstance(found, dict):
        raise ContextError(f"the definition {path} must be a mapping, as Mistral's workbooks are")
    return found

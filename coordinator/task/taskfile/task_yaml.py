"""Writes values as YAML for a task file, in which Jinja finds nothing to fill in."""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

#: Characters that would begin an expression, a statement or a comment of Jinja.
JINJA = re.compile(r"\{(?=[{%#])|#(?=\})")


class _PlainDumper(yaml.SafeDumper):
    """Dumps YAML without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: PyYAML writes a value that occurs twice in full."""
        return True


def plain_yaml(value: Any, width: float = 80) -> str:
    """Return `value` as YAML text without aliases, its keys in their order."""
    return yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=width)


class _Dumper(_PlainDumper):
    """Dumps YAML in block style, and double-quotes texts with braces of Jinja."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists within mappings, which PyYAML does not do by default."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if JINJA.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def task_yaml(value: Any) -> str:
    """Return `value` as YAML text in which Jinja's opening braces are escaped.

    So rendered as a template and parsed, the text gives the value again.
    """
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf)
    return JINJA.sub(lambda found: f"\\x{ord(found.group()):02x}", text)

"""Replaces arguments that name files on the coordinator's host by the text of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment


def with_text(
    names: Sequence[str], args: Mapping[str, Any], environment: ContextEnvironment
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments with the text of the files that some of them name, and the context.

    Raises ContextError where a file cannot be read.
    """
    found = {**args, **texts_of(names, args)}
    return found, dict(environment.context)


def texts_of(names: Sequence[str], args: Mapping[str, Any]) -> dict[str, str]:
    """The text of each file by the name of its argument. Raises ContextError."""
    found = {}
    for name in names:
        path = args.get(name)
        if not isinstance(path, str):
            continue
        try:
            found[name] = Path(path).expanduser().read_text("utf-8")
        except OSError as error:
            raise ContextError(f"argument {name}: {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ContextError(f"argument {name}: {path}: is not text in UTF-8") from None
    return found

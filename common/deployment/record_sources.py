"""Reads the content of a deployment file, YAML or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from osbench.common.errors import DeploymentError
from osbench.common.files.named_files import read_text
from osbench.common.files.yaml_documents import load_yaml


def read_spec(path: Path) -> Any:
    """Read a deployment file: as YAML if it ends in .yaml or .yml, else as JSON; return its value.

    Raises DeploymentError with path and position of the first error; it does not quote the file.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise DeploymentError(
            f"cannot read {path}: {error.strerror}; give a file that can be read"
        ) from None
    except UnicodeDecodeError:
        raise DeploymentError(f"{path} is not text in UTF-8; save it in UTF-8") from None
    if path.suffix in {".yaml", ".yml"}:
        return _read_yaml(path, text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DeploymentError(
            f"{path}: line {error.lineno}, column {error.colno}: is not JSON: {error.msg}; correct "
            "it there, or name a file in YAML *.yaml"
        ) from None
    except RecursionError:
        raise DeploymentError(
            f"{path} is nested too deeply; write a record with fewer levels"
        ) from None


def _read_yaml(path: Path, text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise DeploymentError(f"{path}: {place}is not YAML; correct it there") from None

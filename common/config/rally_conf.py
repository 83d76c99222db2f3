"""Rally's configuration file, its path and its options for OpenStack; needs no Rally."""

from __future__ import annotations

import configparser
import sys
from collections.abc import Mapping
from pathlib import Path

from osbench.common.errors import ConfigError
from osbench.common.files.named_files import expanded, read_text

#: Rally's own configuration file: the first of these that exists.
FILES = (
    Path(sys.prefix, "etc/rally/rally.conf"),
    Path("~/.rally/rally.conf"),
    Path("/etc/rally/rally.conf"),
)

#: Groups of Rally's options for OpenStack: the older name first, which the newer one overrides.
_GROUPS = ("benchmark", "openstack")
_QUOTES = "\"'"


def configuration_file() -> Path | None:
    """Return the first of `FILES` that exists, Rally's configuration file; None if none does."""
    found = (expanded(path) for path in FILES)
    return next((path for path in found if path.is_file()), None)


def openstack_options(file: Path) -> Mapping[str, str]:
    """Return the values of Rally's options for OpenStack in the file, by name; {} if it has none.

    Quotes around values are removed. Raises ConfigError if the file cannot be read, or is not a
    configuration file.
    """
    # as oslo.config reads it: $ is a plain character here, and no group inherits from DEFAULT
    parser = configparser.RawConfigParser(strict=False, default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # case is kept
    try:
        parser.read_string(read_text(file), str(file))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"cannot read Rally's options in {file}: {reason}; correct it") from error
    found: dict[str, str] = {}
    for group in _GROUPS:
        if parser.has_section(group):
            found.update(parser.items(group))
    return {name: _without_quotes(value) for name, value in found.items()}


def _without_quotes(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES
    return value[1:-1] if quoted else value

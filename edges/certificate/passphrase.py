"""The passphrase of a key: from the environment or a prompt, never from an argument."""

from __future__ import annotations

import os
import sys

import click

from osbench.common.errors import UsageError

#: Environment variable with the passphrase.
VARIABLE = "OSBENCH_CERTIFICATE_PASSPHRASE"


def passphrase_of(name: str) -> str:
    """Return the passphrase of the encrypted key `name`. Raises UsageError without one."""
    known = os.environ.get(VARIABLE, "")
    if known:
        return known
    if not sys.stdin.isatty():
        raise UsageError(f"the key {name} has a passphrase: set {VARIABLE}, or use a terminal")
    return str(click.prompt(f"Passphrase of {name}", hide_input=True, err=True))


def new_passphrase(name: str) -> str:
    """Return the passphrase for a new key; "" for none, also if there is no terminal to ask at."""
    known = os.environ.get(VARIABLE)
    if known is not None or not sys.stdin.isatty():
        return known or ""
    return str(
        click.prompt(
            f"Passphrase of {name} (empty for none)",
            default="",
            show_default=False,
            hide_input=True,
            confirmation_prompt=True,
            err=True,
        )
    )

"""The command `keys`: writes the key file that coordinator and workers share."""

from __future__ import annotations

from pathlib import Path

import click

from osbench.common.errors import ConfigError
from osbench.common.protocol.keyring import KEPT, Keyring
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_rules import Alternatives, RuledCommand
from osbench.coordinator.front.cli.options.option_table import file_option, flag, options


@click.group(cls=Group)
def keys() -> None:
    """Make the keys that coordinator and workers share."""


@keys.command(
    cls=RuledCommand,
    rules=(
        Alternatives(
            of=("--rotate", "--force"), single="--rotate keeps old keys, --force drops them"
        ),
    ),
)
@options(
    path=file_option("--file", help="Key file to write instead of [security] key_file."),
    rotate=flag("--rotate", help=f"Put a new key first and keep the newest {KEPT - 1} old ones."),
    force=flag("--force", help="Replace a key file; messages signed with it are then refused."),
)
@with_settings
def new(settings: CommandSettings, path: Path | None, rotate: bool, force: bool) -> None:
    """Write a new key file, mode 0600; no key is ever shown.

    \b
    Example:
      osbench-coord keys new
      scp ~/.osbench/keys worker1:.osbench/keys
    """
    path = path or settings.key_file
    if rotate:
        ring = Keyring.load(path).rotated()
    elif path.exists() and not force:
        raise ConfigError(
            f"key file {path} exists: give --rotate to add a key to it or --force to replace it"
        )
    else:
        ring = Keyring.generate()
    ring.save(path)
    echo(f"Wrote {path} with {_key_count(len(ring.keys))}; key in use: {ring.keys[0].id.hex()}")
    echo(
        "Next, within a minute: copy it to every worker (their [security] key_file, mode 0600)."
        if rotate
        else "Next, with no run under way: copy it to every worker (their [security] key_file, "
        "mode 0600), then restart the workers."
    )


def _key_count(count: int) -> str:
    return "1 key" if count == 1 else f"{count} keys"

"""The command `osbench-coord`."""

from __future__ import annotations

import click

from osbench import __version__
from osbench.coordinator.cli.cleanup import cleanup
from osbench.coordinator.cli.common import Group, config_option
from osbench.coordinator.cli.deployment import deployment
from osbench.coordinator.cli.describe import completion, config, init
from osbench.coordinator.cli.keys import keys
from osbench.coordinator.cli.plugin import plugin
from osbench.coordinator.cli.results import results
from osbench.coordinator.cli.run import run
from osbench.coordinator.cli.runs import abort, runs, status
from osbench.coordinator.cli.trace import trace
from osbench.coordinator.cli.validate import validate
from osbench.coordinator.cli.workers import workers

EPILOG = """
\b
A first run, with nothing set up:
  osbench-coord run --scenario Dummy.dummy --arg sleep=0.1 --concurrency 4 --duration 5

\b
A task of your own, to change and run again:
  osbench-coord init task.yaml
  osbench-coord validate task.yaml
  osbench-coord run task.yaml

\b
Against a cloud:
  osbench-coord deployment create --name mycloud --from-env
  osbench-coord run task.yaml --deployment mycloud

\b
On more hosts, once `osbench-worker` runs there:
  osbench-coord workers
  osbench-coord run task.yaml --wait-for-workers 60
"""


@click.group(cls=Group, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@config_option
@click.version_option(__version__, prog_name="osbench-coord")
def main() -> None:
    """Drive load at OpenStack-style services from many worker processes and hosts."""


COMMANDS = (
    init,
    validate,
    run,
    status,
    abort,
    cleanup,
    results,
    trace,
    runs,
    workers,
    deployment,
    keys,
    plugin,
    config,
    completion,
)

for command in COMMANDS:
    main.add_command(command)

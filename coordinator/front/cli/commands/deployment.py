"""The command `deployment`: manages records of the clouds and services under test."""

from __future__ import annotations

import os
from pathlib import Path

import click

from osbench.common.plugin.cloud_platform import Finding, installed_cloud
from osbench.common.secrets.url_masking import mask_url
from osbench.common.text.escaping import escaped, one_line
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    echo,
    echo_json,
    echo_table,
    with_settings,
)
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import file_option, flag, option, options
from osbench.coordinator.front.cli.options.shared_options import json_flag
from osbench.coordinator.front.cli.time_limit import timeout_option
from osbench.coordinator.task.deployments.check import check
from osbench.coordinator.task.deployments.new_record import record_of_file
from osbench.coordinator.task.deployments.registry import Listed
from osbench.coordinator.text_table import TextTable, names, texts

_FAILED = 1


@click.group(cls=Group)
def deployment() -> None:
    """Keep records of the clouds and services under test."""


@deployment.command(
    cls=RuledCommand,
    rules=(
        Alternatives(
            of=("--file", "--cloud", "--from-env"),
            missing="no source of the record is given",
            single="a record is made of one of them",
        ),
        Rule(option="--region", why="is a region of clouds.yaml", needs=("--cloud",)),
    ),
)
@options(
    name=option("--name", required=True, help="Name of the new record."),
    path=file_option("--file", help="Deployment file in JSON or YAML."),
    cloud=option(
        "--cloud",
        metavar="NAME",
        help="Read the cloud of that name from clouds.yaml instead (needs osbench[openstack]).",
    ),
    region=option("--region", metavar="NAME", help="Its region; by default the first."),
    from_env=flag("--from-env", help="Read OS_* and OSPROFILER_* variables instead."),
    use=option(
        "--use/--no-use", help="Make it the record in use; by default only the first record is."
    ),
)
@with_settings
def create(
    settings: CommandSettings,
    name: str,
    path: Path | None,
    cloud: str | None,
    region: str | None,
    from_env: bool,
    use: bool | None,
) -> None:
    """Create a record from a file, clouds.yaml or the environment.

    \b
    Examples:
      osbench-coord deployment create --name lab --file lab.json
      osbench-coord deployment create --name lab --cloud lab
      . openrc; osbench-coord deployment create --name lab --from-env

    \b
    A file holds Rally's format, or one for services without Keystone:
      {"openstack": {"auth_url": "http://cloud:5000/v3",
                     "admin": {"username": "admin", "password": "...",
                               "project_name": "admin"},
                     "profiler_hmac_key": "...",
                     "profiler_conn_str": "redis://traces:6379"}}
      {"osbench": {"services": {"shop": "http://shop:8080"},
                   "profiler_hmac_key": "..."}}
    """
    if path:
        made = record_of_file(name, path)
    elif cloud:
        made = installed_cloud().record_of_cloud(name, cloud, region, os.environ)
    else:
        made = installed_cloud().record_of_environment(name, os.environ)
    used = settings.deployments.create(made.deployment, use=use)
    for note in made.notes:
        echo(f"note: {one_line(note)}", err=True)
    echo(f"Created deployment {name}" + (", now in use." if used else "."))


@deployment.command("list")
@with_settings
def list_records(settings: CommandSettings) -> None:
    """Show all records; the one in use is marked.

    \b
    Example:
      osbench-coord deployment list
    """
    records = settings.deployments.records()
    if not records:
        echo("There is no deployment. Make one: osbench-coord deployment create --help")
        return
    table = TextTable(
        names("in use", "name", "platform"), texts("address"), names("users", "profiler key")
    )
    for record in records:
        table.add_row("*" if record.in_use else "", record.name, *_record_cells(record))
    echo_table(table)


def _record_cells(record: Listed) -> tuple[str, str, str, str]:
    deployment = record.deployment
    if deployment is None:
        return "", one_line(record.problem), "", ""
    hosts = [host.partition("://")[2] for host in deployment.hosts]
    addresses = [deployment.content["auth_url"]] if deployment.platform == "openstack" else hosts
    count = len(deployment.users) + (deployment.admin is not None)
    key = "set" if deployment.profiler_hmac_key else "not set"
    return deployment.platform, escaped(mask_url(", ".join(sorted(addresses)))), str(count), key


@deployment.command()
@click.argument("name", required=False)
@options(as_json=json_flag())
@with_settings
def show(settings: CommandSettings, name: str | None, as_json: bool) -> None:
    """Show a record, or the one in use, with its secrets masked.

    \b
    Example:
      osbench-coord deployment show lab --json
    """
    record = settings.deployments.get(name)
    if as_json:
        shown = {"name": record.name, "version": record.version, "spec": record.masked()}
        echo_json(shown)
        return
    echo(f"name: {record.name}\nversion: {record.version}")
    echo_json(record.masked(), indent=2)


@deployment.command("check")
@click.argument("name", required=False)
@timeout_option()
@with_settings
def check_record(settings: CommandSettings, name: str | None, timeout_s: float) -> None:
    """Check everything that a record names.

    Checks credentials, services, profiler key and trace store. For each service of the catalogue
    it reports version and clock, and whether the service accepts requests signed with the
    profiler key and with OSProfiler's default key. Exits with 1 if anything failed.

    \b
    Example:
      osbench-coord deployment check lab
    """
    record = settings.deployments.get(name)
    findings = list(check(record, timeout_s))
    echo(f"deployment {record.name}")
    table = TextTable(names("what", "user", "project", "result"), texts("detail"))
    for finding in findings:
        table.add_row(
            finding.subject, finding.user, finding.project, _result(finding), finding.detail
        )
    echo_table(table)
    if any(finding.ok is False for finding in findings):
        click.get_current_context().exit(_FAILED)


def _result(finding: Finding) -> str:
    if finding.warning:
        return "warning"
    return {True: "ok", False: "failed", None: "-"}[finding.ok]


@deployment.command()
@click.argument("name")
@with_settings
def use(settings: CommandSettings, name: str) -> None:
    """Choose the record that commands use by default.

    \b
    Example:
      osbench-coord deployment use lab
    """
    settings.deployments.use(name)
    echo(f"Deployment {name} is now in use.")


@deployment.command()
@click.argument("name")
@with_settings
def delete(settings: CommandSettings, name: str) -> None:
    """Remove a record.

    \b
    Example:
      osbench-coord deployment delete lab
    """
    settings.deployments.delete(name)
    echo(f"Deleted deployment {name}.")

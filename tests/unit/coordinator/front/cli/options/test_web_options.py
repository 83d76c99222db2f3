"""`--web` and `--otlp` take an address only where one follows."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from osbench.coordinator.front.cli.commands.run import run
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_table import option_set
from osbench.coordinator.front.cli.options.web_options import (
    ListenAddress,
    LiveOutputOptions,
    WithWeb,
)


@click.command(cls=WithWeb)
@click.argument("task", required=False)
@option_set(LiveOutputOptions, "output")
def shown(task: str | None, output: LiveOutputOptions) -> None:
    web = output.web
    where = f"{web.host}:{web.port}:{web.fixed}" if web else "-"
    click.echo(f"{task} {where}")


@pytest.mark.parametrize(
    ("given", "task", "web"),
    [
        ("task.yaml", "task.yaml", "-"),
        ("--web task.yaml", "task.yaml", "127.0.0.1:8089:False"),
        ("task.yaml --web", "task.yaml", "127.0.0.1:8089:False"),
        ("--web 9000 task.yaml", "task.yaml", "127.0.0.1:9000:True"),
        ("--web 0.0.0.0:9000 task.yaml", "task.yaml", "0.0.0.0:9000:True"),
        ("task.yaml --web=[::1]:0", "task.yaml", "::1:0:True"),
        ("-- --web", "--web", "-"),
    ],
)
def test_what_follows_is_an_address_or_the_task(given: str, task: str, web: str) -> None:
    found = CliRunner().invoke(shown, given.split())

    assert found.output.split() == [task, web]


def test_a_port_that_is_too_large_is_an_address_and_not_the_task() -> None:
    found = CliRunner().invoke(shown, ["--web", "65536", "task.yaml"])

    assert found.exit_code
    assert "'65536' is not an address to listen at" in str(found.exception)


@click.command(cls=WithWeb)
@click.argument("task", required=False)
@click.option("--otlp", type=ListenAddress())
def receiving(task: str | None, otlp: str | None) -> None:
    click.echo(f"{task} {otlp}")


@pytest.mark.parametrize(
    ("given", "task", "otlp"),
    [
        ("task.yaml", "task.yaml", "None"),
        ("--otlp task.yaml", "task.yaml", "127.0.0.1:4318"),
        ("task.yaml --otlp", "task.yaml", "127.0.0.1:4318"),
        ("--otlp 0.0.0.0:9000 task.yaml", "task.yaml", "0.0.0.0:9000"),
    ],
)
def test_the_port_of_otlp_is_that_of_sdks(given: str, task: str, otlp: str) -> None:
    found = CliRunner().invoke(receiving, given.split())

    assert found.output.split() == [task, otlp]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--web=nowhere",), "is not an address"),
        (("--web=127.0.0.1:99999",), "is not an address"),
        (("--web", "--detach"), "osbench-coord web"),
        (("--otlp=nowhere",), "is not an address"),
        (("--otlp=127.0.0.1:99999",), "is not an address"),
    ],
)
def test_bad_options_are_one_message(options: tuple[str, ...], message: str) -> None:
    found = CliRunner().invoke(
        Group(commands=[run]), ["run", "--scenario", "Dummy.dummy", *options]
    )

    assert found.exit_code == 2
    assert message in found.stderr

"""A task from options, for runs without a file: `run --url http://host/ --rps 50 --duration 30`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from osbench.common.config.durations import TIMEOUT_S
from osbench.common.errors import UsageError
from osbench.common.network.origins import origin
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.front.cli.base import DurationType, FiniteRange
from osbench.coordinator.front.cli.options.limits import sla_of
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule
from osbench.coordinator.front.cli.options.option_table import option, repeated_option
from osbench.coordinator.front.cli.options.url_options import SCENARIO, URL_RULES, UrlOptions
from osbench.coordinator.plugins.runners.possible_rates import FASTEST, MOST_COUNT

#: Timeout of a request with --url: a response that streams for ever ends the iteration, seconds.
URL_TIMEOUT_S = 60
#: How long, and by how many users, a scenario is run.
LOAD = ("--rps", "--duration", "--times", "--users")

#: Rules of a command that takes a task file or a scenario.
ADHOC_RULES = (
    Alternatives(
        of=("TASK", "--url", "--scenario"),
        missing="there is no load to run",
        single="each defines the load",
        remedy="`osbench-coord init` writes a task",
    ),
    Rule(
        option="TASK",
        why="is a task file and defines this",
        excludes=("--arg", *LOAD, "--timeout", "--limit"),
        remedy="--set SUBTASK.WORKLOAD.KEY=VALUE changes it, as in --set 0.0.runner.times=5",
    ),
    Rule(
        option="--scenario",
        why="has no template to fill in",
        excludes=("--task-args", "--task-args-file"),
        remedy="give it --arg NAME=VALUE",
    ),
    Rule(
        option="--url",
        why="has no template to fill in",
        excludes=("--task-args", "--task-args-file", "--arg"),
        remedy="--method, --header and --body describe the request",
    ),
    *URL_RULES,
    Rule(option="--rps", why="does not wait for virtual users", excludes=("--users",)),
    Rule(option="--rps", why="does not say when the load ends", needs=("--duration", "--times")),
    Rule(
        option="--times", why="ends the load after that many iterations", excludes=("--duration",)
    ),
)


@dataclass(frozen=True, kw_only=True)
class Adhoc(UrlOptions):
    """Options for a request or a scenario and its load; all unset if there is a task file."""

    SECTION = "Load without a task file"

    scenario: str | None = option(
        "--scenario", metavar="NAME", help="Scenario to run instead of a task file."
    )
    #: Texts `name=value`, the value in YAML.
    arg: tuple[str, ...] = repeated_option(
        "--arg", metavar="NAME=VALUE", help="Argument of the scenario; may be repeated."
    )
    rps: float | None = option(
        "--rps",
        type=FiniteRange(0, FASTEST, min_open=True),
        metavar="N",
        help="Iterations to start per second, whether earlier ones have ended or not.",
    )
    #: Seconds.
    duration: float | None = option(
        "--duration", type=DurationType(), metavar="DURATION", help="Length of the load."
    )
    times: int | None = option(
        "--times",
        type=click.IntRange(1, MOST_COUNT),
        metavar="N",
        help="Total number of iterations.",
    )
    concurrency: int | None = option(
        "--users",
        "--concurrency",
        type=click.IntRange(1),
        metavar="N",
        help="Number of virtual users, if --rps is not given. Default: 1.",
    )
    #: Seconds.
    timeout: float | None = option(
        "--timeout",
        type=DurationType(),
        metavar="DURATION",
        help=f"Timeout of an iteration. Default: {URL_TIMEOUT_S} s with --url, else {TIMEOUT_S} s.",
    )
    #: Texts `name=value`, as `sla_of` reads them.
    limit: tuple[str, ...] = repeated_option(
        "--limit",
        metavar="NAME=VALUE",
        help="Fail (exit code 1) above this value; k6 calls it a threshold. p95=250ms or another"
        " percentile, mean=80ms, max=2s, failures=1% (default: 0 %); may be repeated.",
    )

    def document(self) -> dict[str, Any]:
        """Return the task document that these options describe; `ADHOC_RULES` hold for them.

        It is one workload; without a load, one virtual user runs once. Reads files given as @FILE.
        Raises UsageError for an invalid argument, header, file or limit.
        """
        workload: dict[str, Any]
        if self.url is None:
            scenario = str(self.scenario)
            title, subtitle = f"{scenario} from the command line", scenario
            workload = {"scenario": {scenario: self._arguments()}}
        else:
            args = self.request()
            parts = urlsplit(mask_url(self.url))
            title = subtitle = f"{args['method']} {parts.scheme}://{parts.netloc}{parts.path}"
            name = f"{args['method']} {parts.path or '/'}"
            workload = {"name": name, "scenario": {SCENARIO: args}}
        workload["runner"] = self._runner()
        # a response time counts from when an arrival was due
        sla = sla_of(self.limit, "service" if self.rps is None else "response")
        if sla:
            workload["sla"] = sla
        return {
            "version": 2,
            "title": title,
            "subtasks": [{"title": subtitle, "workloads": [workload]}],
        }

    def is_of(self, origins: Collection[str]) -> bool:
        """Return whether the origin of the address is in `origins`; True without an address.

        False if the address is malformed.
        """
        if self.url is None:
            return True
        try:
            return origin(self.url) in origins
        except ValueError:
            return False

    def _arguments(self) -> dict[str, Any]:
        # workers of local mode start before these are imported
        import yaml  # noqa: PLC0415 - see above

        from osbench.common.files.yaml_documents import load_yaml  # noqa: PLC0415 - see above

        found = {}
        for text in self.arg:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise UsageError(f"--arg {text}: write name=value")
            try:
                found[name] = load_yaml(value)
            except yaml.YAMLError:
                found[name] = value
        return found

    def _runner(self) -> dict[str, Any]:
        limit: dict[str, float] = {} if self.url is None else {"timeout": URL_TIMEOUT_S}
        if self.timeout is not None:
            limit = {"timeout": self.timeout}
        if self.rps is not None:
            end = {"times": self.times} if self.times else {"duration": self.duration}
            return {"rps": {"rps": self.rps, **end, **limit}}
        users = self.concurrency or 1
        if self.duration is not None:
            config = {"duration": self.duration, "concurrency": users, **limit}
            return {"constant_for_duration": config}
        return {"constant": {"times": self.times or users, "concurrency": users, **limit}}

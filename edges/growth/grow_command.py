"""The command `grow`: how requests of a task get slower, and do more work, as the service fills."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from osbench.common.errors import INTERRUPTED, OsbenchError, UsageError
from osbench.common.task import Task
from osbench.common.text.escaping import escaped
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    DurationType,
    console,
    echo,
    echo_json,
    with_settings,
    write_file,
)
from osbench.coordinator.front.cli.group import FILES
from osbench.coordinator.front.cli.one_run import Wanted, checked_plan
from osbench.coordinator.front.cli.options.option_rules import Alternatives
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    file_option,
    option,
    option_set,
    repeated_option,
)
from osbench.coordinator.front.cli.options.shared_options import (
    FleetOptions,
    json_flag,
    page_file,
    quiet_flag,
)
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.options.web_options import (
    OTLP,
    BackendUrl,
    ListenAddress,
    WithWeb,
)
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.load.run.plan import RunOptions
from osbench.coordinator.report.exit_code import LIMITED
from osbench.coordinator.task.taskfile.loading import TaskTemplate
from osbench.edges.growth.growth_json import growth_json
from osbench.edges.growth.growth_limits import GrowthLimits, elements
from osbench.edges.growth.growth_page import growth_page
from osbench.edges.growth.growth_result import GrowthResult
from osbench.edges.growth.growth_text import growth_markdown, show_growth
from osbench.edges.growth.growth_verdicts import GrowthVerdict, growth_verdicts
from osbench.edges.growth.laws import FEWEST
from osbench.edges.growth.population import Populating, by_command, by_seed
from osbench.edges.growth.population_growth import growth_of
from osbench.edges.growth.population_runs import PopulationRuns, with_population

#: Argument of the task's template that gets the population, if the template has it.
ARGUMENT = "population"
#: Greatest population.
_MOST = 10**9
#: Exit code: a criterion is not met.
_MISSED = 1


class PopulationsType(click.ParamType[tuple[int, ...]]):
    """Ascending populations on the command line, such as 100,1000,10000."""

    name = "populations"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Convert a string to two ascending numbers or more; fails with a usage error otherwise."""
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(int(one) for one in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 100,1000,10000", param, ctx)
        if len(found) < 2:
            self.fail(f"{value!r} has one population; growth takes two or more", param, ctx)
        if any(later <= one for one, later in pairwise(found)):
            self.fail(f"{value!r} is not ascending; begin with the least population", param, ctx)
        if found[0] < 1 or found[-1] > _MOST:
            self.fail(f"{value!r} has a population that is not from 1 to {_MOST:,}", param, ctx)
        return found


@dataclass(frozen=True, kw_only=True)
class GrowOptions(OptionSet):
    """Options for the populations of the service, and how it gets to them."""

    SECTION = "Populations"

    at: tuple[int, ...] = option(
        "--at",
        type=PopulationsType(),
        required=True,
        default=(),
        metavar="N,N,...",
        help="Populations, ascending: two show growth, three or more its law.",
    )
    seed: Path | None = file_option(
        "--seed", help="Fill the cloud by `osbench-coord seed FILE` for each population."
    )
    populate: str | None = option(
        "--populate",
        metavar="COMMAND",
        help="Fill the service by a shell command, which reads $POPULATION.",
    )
    #: Seconds.
    populate_within: float = option(
        "--populate-within",
        type=DurationType(1.0),
        default=3600.0,
        show_default="1h",
        metavar="DURATION",
        help="Longest time to fill the service to one population.",
    )
    rounds: int = option(
        "--rounds",
        type=click.IntRange(1, 100),
        default=1,
        show_default=True,
        metavar="N",
        help="Runs at each population; from 3 on they measure how much equal runs differ.",
    )
    predict: int | None = option(
        "--predict",
        type=click.IntRange(1, _MOST),
        metavar="N",
        help="Population to predict times for. Default: five times the greatest.",
    )
    item: str = option(
        "--item",
        default="item",
        show_default=True,
        metavar="NAME",
        help="Name of one member of the population in the output, such as port.",
    )

    def populating(self, settings: CommandSettings, deployment: str | None) -> Populating:
        """Return how the service gets to a population. Raises UsageError, DeploymentError."""
        if self.populate is not None:
            return by_command(self.populate, self.populate_within)
        assert self.seed is not None, "a rule requires one of them"
        files: tuple[str, ...] = click.get_current_context().meta.get(FILES, ())
        name = deployment if deployment is not None else settings.deployments.used()
        return by_seed(self.seed, name, files, self.populate_within)


@dataclass(frozen=True, kw_only=True)
class GrowRunOptions(FleetOptions):
    """Options for the runs of `grow`: workers, tags, sources of spans."""

    SECTION = "The runs"

    tag: tuple[str, ...] = repeated_option("--tag", help="Tag of all runs; may be repeated.")
    otlp: str | None = option(
        OTLP,
        type=ListenAddress(),
        metavar="[ADDR:PORT]",
        help="Receive spans of services by OTLP, by default at 127.0.0.1:4318.",
    )
    traces_from: str | None = option(
        "--traces-from",
        type=BackendUrl(),
        metavar="URL",
        help="At the end of each run, query traces from tempo+http://HOST:3200 or"
        " jaeger+http://HOST:16686.",
    )

    def wanted(self, path: str, options: TaskOptions) -> Wanted:
        """Return the request for runs of the task file at `path`, which is read with `options`."""
        return Wanted(
            source=path,
            options=options,
            deployment=self.deployment,
            run_options=RunOptions(
                workers=self.workers,
                join=self.join,
                wait_s=self.wait_for_workers,
                tags=self.tag,
                otlp=self.otlp or "",
                traces_from=self.traces_from or "",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class GrowOutputOptions(OptionSet):
    """Options for the output of `grow`."""

    SECTION = "Output"

    as_json: bool = json_flag()
    html: Path | None = page_file()
    markdown: Path | None = file_option(
        "--markdown", help="Write the result as Markdown, for a comment on a change."
    )
    quiet: bool = quiet_flag("the result")


@click.command(
    cls=WithWeb,
    rules=(
        Alternatives(
            of=("--seed", "--populate"),
            missing="the service has to get to each population",
            single="both fill the service",
        ),
    ),
)
@click.argument("task")
@option_set(GrowOptions, "growing")
@option_set(GrowRunOptions, "running")
@option_set(TaskOptions, "options")
@option_set(GrowOutputOptions, "output")
@with_settings
def grow(
    settings: CommandSettings,
    task: str,
    growing: GrowOptions,
    running: GrowRunOptions,
    options: TaskOptions,
    output: GrowOutputOptions,
) -> None:
    """Find the requests of a task that get slow as its service fills.

    The service is filled to each population, and TASK runs there. Time, spans and SQL statements of
    each request are compared: a law says how each grows, and N+1 names a request that makes a
    statement for each member of the population. Counts of spans do not depend on the speed of the
    machine. The criterion `growth` of the task limits the growth.

    The template argument `population` of TASK, if it has one, is the population.

    \b
    Examples:
      osbench-coord grow ports.yaml --seed ports-seed.yaml --at 100,1000,10000 --item port
      osbench-coord grow task.yaml --populate './fill $POPULATION' --at 50,500 --otlp
      osbench-coord grow task.yaml --populate ./fill --at 10,100,1000 --rounds 3 --html growth.html

    \b
    Exit codes:
      0 no criterion `growth` of the task is missed
      1 one is missed, or no iteration succeeded
      2 bad usage, or the service could not be filled
      4 no verdict: the load generator was the limit, or counts are unclear
      130 interrupted; results of the populations before are printed
    """
    if not Path(task).is_file():
        raise UsageError(
            f"there is no task file {task}; name one, or write it with `osbench-coord init`"
        )
    names = TaskTemplate(task).names()
    argument = ARGUMENT if names is not None and ARGUMENT in names else ""
    wanted = running.wanted(task, options)
    checked, _ = checked_plan(settings, with_population(wanted, argument, growing.at[0]))
    _require_populations(checked, growing.at)
    runs = PopulationRuns(
        settings,
        lambda population: with_population(wanted, argument, population),
        growing.populating(settings, running.deployment),
        Progress(quiet=output.quiet),
    )
    runs.run(growing.at, growing.rounds)
    if not runs.runs:
        raise _interrupt_error()
    result = growth_of(checked.title, runs.runs, predict=growing.predict, item=growing.item)
    # criteria cannot be judged by populations that were not measured
    complete = not runs.interrupted and runs.failure is None
    verdicts = growth_verdicts(checked, result) if complete else []
    code = _exit_code(result, verdicts)
    if runs.interrupted:
        code = INTERRUPTED
    elif runs.failure is not None:
        code = runs.failure.exit_code
    _write(result, verdicts, output, code, runs.tag)
    if runs.failure is not None:
        echo(escaped(f"Error: {runs.failure}", breaks=True), err=True)
    sys.exit(code)


def _require_populations(task: Task, populations: Sequence[int]) -> None:
    """Raise UsageError if a criterion limits a law, and there are two populations."""
    if len(populations) >= FEWEST:
        return
    for workload in task.workloads:
        for criterion in workload.sla:
            if criterion.name != GrowthLimits.NAME:
                continue
            for element in elements(criterion.config):
                laws = [one.get("law") for one in element.values() if isinstance(one, dict)]
                if any(law not in (None, "constant") for law in laws):
                    raise UsageError(
                        f"{workload.place}: the criterion growth limits a law, which takes"
                        f" {FEWEST} populations, and --at has {len(populations)}; add one"
                    )


def _exit_code(result: GrowthResult, verdicts: Sequence[GrowthVerdict]) -> int:
    if any(one.success is False for one in verdicts):
        return _MISSED
    undecided = any(one.success is None for one in verdicts)
    # without criteria, times are a part of the result
    return LIMITED if undecided or not (verdicts or result.times_judged) else 0


def _write(
    result: GrowthResult,
    verdicts: Sequence[GrowthVerdict],
    output: GrowOutputOptions,
    code: int,
    tag: str,
) -> None:
    """Print the result, and then write files: a file that cannot be written loses no result."""
    if output.as_json:
        echo_json(growth_json(result, verdicts, code))
    else:
        show_growth(result, verdicts, console())
        echo(f"Tag of these runs: {tag}")
    if output.html is not None:
        write_file(output.html, growth_page(result, verdicts))
    if output.markdown is not None:
        write_file(output.markdown, growth_markdown(result, verdicts))


def _interrupt_error() -> OsbenchError:
    error = OsbenchError("interrupted before a population was measured")
    error.exit_code = INTERRUPTED
    return error

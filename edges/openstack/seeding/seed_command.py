"""The command `seed`: makes the resources of a file that are not there, or removes them."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import click

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.base import CommandSettings, echo, echo_json, with_settings
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    option_set,
    repeated_option,
)
from osbench.coordinator.front.cli.options.shared_options import (
    deployment_name,
    json_flag,
    quiet_flag,
)
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.report.exit_code import AROUND
from osbench.coordinator.results.storage.progress import contexts_at
from osbench.coordinator.task.taskfile.args import read_args
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.coordinator.cloud_access import AT_ONCE, CloudAccess
from osbench.edges.openstack.seeding.seed_file import SeedPlan, check_name, read_seed
from osbench.edges.openstack.seeding.seed_making import SeedMaking, SeedProgress
from osbench.edges.openstack.seeding.seed_record import check_record, store_record
from osbench.edges.openstack.seeding.seed_removal import SeedRemoval
from osbench.edges.openstack.seeding.seed_result import SeedResult

#: Most requests at the same time.
MOST_AT_ONCE = 256
#: Errors of requests, as the user hears of them.
_FAILURES = (RequestFailed, AuthenticationFailed, OSError)


@dataclass(frozen=True, kw_only=True)
class SeedOptions(OptionSet):
    """Options for making a seed."""

    SECTION = "Seed"

    deployment: str | None = deployment_name()
    population: int | None = option(
        "--population",
        type=click.IntRange(0),
        metavar="N",
        help="Argument `population` of the file: short for --task-args population=N.",
    )
    task_args: tuple[str, ...] = repeated_option(
        "--task-args",
        metavar="ARGS",
        help="Arguments of the file's template: a YAML or JSON object, or k=v,k2=v2.",
    )
    task_args_file: tuple[str, ...] = repeated_option(
        "--task-args-file",
        metavar="FILE",
        help="YAML or JSON file of template arguments; overridden by --task-args.",
    )
    name: str | None = option(
        "--name", metavar="NAME", help="Name of the seed, instead of the file's."
    )
    at_once: int = option(
        "--at-once",
        type=click.IntRange(1, MOST_AT_ONCE),
        default=AT_ONCE,
        show_default=True,
        metavar="N",
        help="Requests at the same time.",
    )
    record: str | None = option(
        "--record",
        metavar="NAME",
        help="Then store a deployment record with the users of the seed, for runs as them.",
    )
    dry_run: bool = flag(
        "--dry-run", help="Show the existing and the missing resources without a change."
    )
    quiet: bool = quiet_flag("the result")
    as_json: bool = json_flag()


@dataclass(frozen=True, kw_only=True)
class SeedRemovalOptions(OptionSet):
    """Options for removing a seed."""

    SECTION = "Removal"

    remove: bool = flag("--remove", help="Remove all resources of the seed; asks before.")
    yes: bool = flag("--yes", help="Do not ask.")


RULES = (
    Alternatives(of=("FILE", "--remove"), missing="no seed is given"),
    Rule(option="--yes", why="confirms a removal", needs=("--remove",)),
    Rule(option="--at-once", why="is for making resources", excludes=("--remove",)),
    Rule(option="--record", why="stores users that are there", excludes=("--remove", "--dry-run")),
)


@click.command(cls=RuledCommand, rules=RULES)
@click.argument("file", required=False)
@option_set(SeedOptions, "options")
@option_set(SeedRemovalOptions, "removal")
@with_settings
def seed(
    settings: CommandSettings, file: str | None, options: SeedOptions, removal: SeedRemovalOptions
) -> None:
    """Make resources in a cloud that outlive runs.

    FILE lists kinds with their numbers, such as `ports: 10000`. The command makes missing
    resources, and finds the others by their names, osb-seed-NAME-KIND-NUMBER. So the same command
    continues after an interrupt, a crash or failures, and makes nothing twice. A lower number in
    the file removes nothing. No clean-up of runs takes a seed: --remove does.

    \b
    Examples:
      osbench-coord seed seed.yaml --deployment lab
      osbench-coord seed seed.yaml --deployment lab --population 10000 --at-once 16
      osbench-coord seed seed.yaml --deployment lab --dry-run
      osbench-coord seed seed.yaml --deployment lab --record lab-users
      osbench-coord seed seed.yaml --deployment lab --remove
      osbench-coord seed --remove --name full --deployment lab --yes

    \b
    A file; `osbench-coord seed seed.yaml --population 10000` gives the argument:
      name: full
      resources:
        - users: 5000
        - networks: 10
        - subnets: {of: networks}
        - ports: {count: {{ population }}, of: networks}

    \b
    Exit codes:
      0 everything is there (or, with --remove, gone)
      1 some resources could not be made; the same command continues
      2 bad usage, file or deployment, or a quota is too low: nothing was made
      5 with --remove: some resources are left
      130 interrupted; the same command continues
    """
    record = settings.deployment(options.deployment)
    if record is None:
        raise DeploymentError("no deployment is in use: name one with --deployment")
    plan = None
    if file is not None:
        plan = read_seed(
            file,
            read_args(options.task_args, options.task_args_file),
            options.population,
            options.name,
            for_removal=removal.remove,
        )
    if removal.remove:
        _remove(record, plan, options, sure=removal.yes)
    elif plan is not None:
        if options.record is not None:
            check_record(options.record, plan, settings.deployments)
        result = _make(record, plan, options)
        if options.record is not None and result.complete:
            store_record(options.record, record, result.groups, plan.name, settings.deployments)
        sys.exit(result.exit_code)


def _make(record: Deployment, plan: SeedPlan, options: SeedOptions) -> SeedResult:
    """Make missing resources, print the account, and return it."""
    begin, interrupted = time.monotonic(), False
    problems: list[str] = []
    with Progress(quiet=options.quiet) as progress:
        display = _SeedDisplay(progress)
        access = CloudAccess(_environment(record, display), "the command seed")
        making = SeedMaking(
            plan, access, at_once=options.at_once, tell=display.tell, say=progress.say
        )
        try:
            making.look()
        except _FAILURES as error:
            raise DeploymentError(f"deployment {record.name}: {error}") from None
        try:
            if not options.dry_run:
                making.make()
        except KeyboardInterrupt:
            interrupted = True
        except _FAILURES as error:
            problems.append(str(error))
    result = SeedResult(
        seed=plan.name,
        deployment=record.name,
        groups=making.groups,
        problems=(*problems, *making.problems),
        interrupted=interrupted,
        dry_run=options.dry_run,
        elapsed_s=time.monotonic() - begin,
    )
    if options.as_json:
        echo_json(result.to_document())
    else:
        result.show()
    return result


def _remove(record: Deployment, plan: SeedPlan | None, options: SeedOptions, *, sure: bool) -> None:
    """List the resources of a seed by kind, ask, and remove them.

    Raises UsageError without a name, DeploymentError if a list fails, ContextError (exit code 5) if
    some resources are left, click.Abort if the user says no.
    """
    name = plan.name if plan is not None else check_name(options.name)
    with Progress(quiet=options.quiet) as progress:
        access = CloudAccess(_environment(record, _SeedDisplay(progress)), "the command seed")
        search = SeedRemoval(name, access, plan.entries if plan is not None else ())
        try:
            found = search.find()
        except _FAILURES as error:
            raise DeploymentError(f"deployment {record.name}: {error}") from None
    if search.unseen:
        kinds = ", ".join(search.unseen)
        echo(f"not searched, as the deployment has no admin: {kinds}", err=True)
    listed = ", ".join(f"{number:,} {kind}" for kind, number in found.items()) or "nothing"
    total = count(sum(found.values()), "resource")
    if found and not sure and not options.dry_run:
        echo(f"seed {name} in {escaped(record.name)}: {listed}", err=True)
        click.confirm(f"remove {total} of seed {name}?", abort=True, err=True)
    if found and not options.dry_run:
        with Progress(quiet=options.quiet) as progress:
            _remove_found(search, record, progress)
    if options.as_json:
        keys = {"seed": name, "deployment": record.name, "exit_code": 0}
        echo_json({**keys, "dry_run": options.dry_run, "removed": found})
        return
    done = "would be removed" if options.dry_run else "removed"
    echo(f"seed {name} in {record.name}: {listed} {done}")


def _remove_found(search: SeedRemoval, record: Deployment, progress: Progress) -> None:
    search.show_progress(_environment(record, _SeedDisplay(progress)))
    try:
        search.remove()
    except (ContextError, *_FAILURES) as error:
        left = ContextError(f"{error}; give the same command again")
        left.exit_code = AROUND
        raise left from None


class _SeedDisplay:
    """Progress of a seed as lines of a display: counts, rate and time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began = time.monotonic()

    def tell(self, now: SeedProgress) -> None:
        """Show how far a group is."""
        ended = now.done + now.failed
        rate = ended / now.elapsed_s if now.elapsed_s > 0 else 0.0
        group = now.group
        words = [f"{group.entry.group}: {group.existing:,} existing, {now.done:,} made"]
        if now.failed:
            words.append(f"{now.failed:,} failed")
        if rate:
            words.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            words.append(f"{(now.wanted - ended) / rate:.0f} s left")
        self.step(", ".join(words), ended, now.wanted)

    def step(self, what: str, done: int, planned: int) -> None:
        """Show how far an operation is, such as a removal."""
        self._progress(contexts_at(what, done, planned, time.monotonic() - self._began))


def _environment(record: Deployment, display: _SeedDisplay) -> ContextEnvironment:
    return ContextEnvironment(run="", deployment=record, tell=display.step)

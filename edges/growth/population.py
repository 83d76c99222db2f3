"""Brings the service to a population: by the command `seed`, or by a shell command of the user."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.plugin import entry_points
from osbench.common.ports import clock
from osbench.coordinator.formatting import count
from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.child import last_lines
from osbench.coordinator.load.local.lifeline import Lifeline

#: Variable that has the population in the environment of the user's command.
POPULATION = "POPULATION"
#: Between two looks at the process, and between two reports of its output, seconds.
_LOOK_S, _TELL_S = 0.05, 10.0
#: Time of the process from SIGTERM to SIGKILL, and to be reaped, seconds.
_GRACE_S, _REAP_S = 10.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Populating:
    """A command that brings the service to a population, and the time that it may take."""

    #: The option that named it, for messages.
    option: str
    #: Command line, without the population.
    command: Sequence[str]
    #: Options that end the command line, before the population.
    population_option: Sequence[str] = ()
    #: Variable with the population in the environment of the command; "" for none.
    variable: str = ""
    #: Longest time for one population, seconds.
    within_s: float
    #: Further variables of its environment.
    environment: Mapping[str, str] = field(default_factory=dict)

    def populate(
        self,
        population: int,
        interrupted: Callable[[], bool],
        tell: Callable[[str], None] | None = None,
    ) -> bool:
        """Bring the service to a population; return False if `interrupted` became true before.

        `tell` gets the last line of the command's output from time to time if it is a new one. The
        process and all of its session end with this one. Raises OsbenchError, with more lines, if
        it fails or takes too long.
        """
        words = [*self.command]
        if self.population_option:
            words += [*self.population_option, str(population)]
        environment = {**os.environ, **self.environment}
        if self.variable:
            environment[self.variable] = str(population)
        where = f"{self.option} for a population of {count(population)}"
        with _output_file() as (lifeline, log), _process(words, environment, log, lifeline) as one:
            end = clock.monotonic() + self.within_s
            told, tells_at = "", clock.monotonic() + _TELL_S
            while (code := one.poll()) is None:
                if interrupted():
                    return False
                if clock.monotonic() > end:
                    raise OsbenchError(
                        f"{where} did not end within {self.within_s:g} s; raise --populate-within."
                        f"{_last_output(log)}"
                    )
                if tell is not None and clock.monotonic() > tells_at:
                    tells_at += _TELL_S
                    if (line := _last_line(log)) not in ("", told):
                        told = line
                        tell(line)
                clock.sleep(_LOOK_S)
            if code and interrupted():
                return False
            if code:
                how = f"ended with exit code {code}" if code > 0 else f"got signal {-code}"
                raise OsbenchError(
                    f"{where} {how}; correct the command or its service.{_last_output(log)}"
                )
            return True


def by_command(command: str, within_s: float) -> Populating:
    """Return the populating by a shell command, which has the population in `POPULATION`.

    Raises UsageError for a command without words.
    """
    if not command.strip():
        raise UsageError("--populate is empty; give a shell command, which reads $POPULATION")
    return Populating(
        option="--populate",
        command=("/bin/sh", "-c", command),
        variable=POPULATION,
        within_s=within_s,
    )


def by_seed(
    path: Path, deployment: str | None, config_files: Sequence[str], within_s: float
) -> Populating:
    """Return the populating by `osbench-coord seed`, of the cloud of a deployment.

    Raises UsageError if that command is not installed, or there is no deployment or file.
    """
    if "seed" not in entry_points.names("command"):
        raise UsageError(
            "--seed needs the command `osbench-coord seed`, which no installed package has; use"
            " --populate COMMAND"
        )
    if not path.is_file():
        raise UsageError(f"there is no seed file {path}; name an existing one")
    if deployment is None:
        raise UsageError(
            "--seed needs a deployment; give --deployment NAME, or select one with `osbench-coord"
            " deployment use NAME`"
        )
    files = [part for one in config_files for part in ("--config-file", one)]
    return Populating(
        option="--seed",
        command=(
            *(sys.executable, "-P", "-m", "osbench.coordinator.main", "seed"),
            *(*files, str(path), "--deployment", deployment, "--json"),
        ),
        population_option=("--population",),
        within_s=within_s,
    )


@contextlib.contextmanager
def _output_file() -> Iterator[tuple[Lifeline, Path]]:
    """Yield a watchdog and the path of a file for output, which both end with the block."""
    lifeline = Lifeline()
    try:
        # unpredictable, since the folder of temporary files is shared
        with tempfile.TemporaryDirectory(prefix="osbench-populate-") as folder:
            lifeline.register_folder(Path(folder))
            yield lifeline, Path(folder) / "output"
    finally:
        lifeline.close()


@contextlib.contextmanager
def _process(
    words: Sequence[str], environment: Mapping[str, str], log: Path, lifeline: Lifeline
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a separate session, which ends with the block; output goes to `log`."""
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - the command of the user, or our own
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
    except OSError as error:
        raise OsbenchError(
            f"the command that fills the service cannot be started: {error.strerror}; correct it"
        ) from None
    leader = watchdog.find(process.pid)
    assert leader, "a child that was not waited for is at least a zombie"
    lifeline.register_process("workers", leader)
    try:
        yield process
    finally:
        # also what the command has left in the background
        watchdog.end([leader], _GRACE_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)


def _last_line(log: Path) -> str:
    return next((one.strip() for one in reversed(last_lines(log).splitlines()) if one.strip()), "")


def _last_output(log: Path) -> str:
    tail = last_lines(log)
    return f" Its last lines:\n{tail}" if tail else " It has no output"

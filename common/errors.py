"""Exceptions of osbench: one short tree. Messages name the problem, its place and the remedy."""

from __future__ import annotations

import functools
import re

from osbench.common.secrets.url_masking import mask_url

#: Parts of a message that belong to a single case: ids, numbers, e-mail addresses.
_SINGLE = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|(?<![\w.+-])[\w.+-]{1,64}(?:@|%40)[\w.-]{1,255}"
    # letters alone, too: of 300 ids of six digits one has no number
    r"|(?<![^\W_])[0-9a-f]{6,64}(?![^\W_])"
    r"|(?<!errno )(?<!answered )(?<!expected )(?<!status )(?<!code )(?<!http )\b\d+\b",
    re.IGNORECASE,
)
#: Exit code of a command that was interrupted.
INTERRUPTED = 130


class OsbenchError(Exception):
    """Base class of osbench's exceptions; a command that ends by one exits with its `exit_code`.

    Its string may be printed and stored: secrets in URLs are masked.
    """

    exit_code = 2

    def __str__(self) -> str:
        return mask_url(super().__str__())


class UsageError(OsbenchError):
    """The command line is wrong or contradicts itself."""


class ConfigError(OsbenchError):
    """The configuration has unknown or invalid values; the message lists them with their places."""


class DeploymentError(OsbenchError):
    """A deployment record is missing, malformed or refused."""


class PluginError(OsbenchError):
    """A plug-in cannot be found or loaded, or is of another kind."""


class ExportError(OsbenchError):
    """Results cannot be written, or a server does not take them."""


class ArchiveError(OsbenchError):
    """An archive of runs cannot be read or written; the message has archive and reason."""


class RefusedRun(ArchiveError):
    """An archive refuses a run: it has other contents under that run's id, or the run changed."""


class DamagedArchive(ArchiveError):
    """A file of an archive is cut, changed or missing; the message names the file."""

    exit_code = 3


class OutputError(OsbenchError):
    """Output of a command cannot be written."""

    exit_code = 5


class ContextError(OsbenchError):
    """A context cannot be set up or undone, or its data cannot be stored."""


class FleetError(OsbenchError):
    """There are fewer workers, or less capacity, than the task needs."""


class StoreError(OsbenchError):
    """Redis or the broker rejects the connection: address, password, version or policy."""


class StoreMissing(StoreError):
    """There is no server at the address of Redis or the broker, perhaps not yet."""


class CalibrationError(OsbenchError):
    """A calibration ran but measured no good iteration: the service failed or was slow."""

    exit_code = 1


class StoreUnreachable(OsbenchError):
    """Redis did not reply; the command may or may not have taken effect."""

    exit_code = 3

    def __init__(self, text: str, *, server: str = "Redis") -> None:
        """Set the message `text`, and in `server` the name and address of the silent server."""
        super().__init__(text)
        self.server = server


class BrokerAway(StoreUnreachable):
    """The broker did not take a message; only for a broker that is not the Redis of the run."""


class StoreLost(OsbenchError):
    """Redis or the broker was unreachable for too long, so the run ends; it can be resumed."""

    exit_code = 3


class Superseded(OsbenchError):
    """Another coordinator process has resumed this run, so this one must end."""

    exit_code = 3


class StorageError(OsbenchError):
    """The run directory cannot be written: the disk is full or fails. Names file and reason."""

    exit_code = 3


class DirectoryRemoved(StorageError):
    """The run directory was removed during the run, so the run cannot be resumed."""


class DamagedRun(OsbenchError):
    """A file of a run directory, named in the message, is cut, changed, missing or of another run.

    Its string ends with the remedy: restore the file, or read the rest with --damaged.
    """

    exit_code = 3
    _remedy = "Restore the file from a copy, or read the rest with --damaged"

    @property
    def problem(self) -> str:
        """Return the message without the remedy that its string ends with; URLs are not masked."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{super().__str__()}. {self._remedy}"


class WrongDocument(DamagedRun):
    """A document of a run is JSON of another shape, which --damaged does not help to read."""

    _remedy = "Restore the file from a copy, or run the task again"


class OlderCopy(DamagedRun):
    """The journal is an older copy without the last decisions; a resumed run would repeat them."""

    _remedy = "Restore the newest copy of the run directory, then resume the run"


class Untrusted(OsbenchError):
    """A message has a wrong signature, kind or format; receivers count and ignore it."""


class Problem:
    """A problem of an input file: place, "" if unknown, and message; secrets of URLs are masked."""

    __slots__ = ("message", "place")

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        self.message = mask_url(message)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class TaskError(OsbenchError):
    """A task file is invalid; `problems` has every problem found, and the message lists all."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        lines = "\n".join(f"  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{source}: {count}\n{lines}")


class KindError(Exception):
    """An exception whose `kind` is its message without ids and numbers; reports group by it."""

    kind: str


@functools.lru_cache(1024)
def kind_of(message: str) -> str:
    """Return `message` with `*` for numbers and ids, so that reports group similar errors.

    Numbers after words such as "status", "errno" or "expected" stay.
    """
    return _SINGLE.sub("*", message)

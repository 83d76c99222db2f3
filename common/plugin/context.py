"""The interface of contexts: resources of iterations, created before the load, removed after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.files.named_files import expanded, read_text


def no_progress(what: str, done: int, planned: int) -> None:
    """Do nothing: the default of `ContextEnvironment.tell`, which reports progress."""


@dataclass(frozen=True, kw_only=True)
class ContextEnvironment:
    """All that a context gets besides its own configuration: run, deployment, other contexts."""

    #: Id of the run.
    run: str
    #: The deployment under test; None if the run has no deployment record.
    deployment: Deployment | None = None
    #: What the contexts before this one have made, by key.
    context: Mapping[str, Any] = field(default_factory=dict)
    #: The scenario that the contexts are for, and the configuration of all of them by name. Only
    #: set during setup.
    scenario: str = ""
    contexts: Mapping[str, Any] = field(default_factory=dict)
    #: Number of the workload within the run.
    workload: int = 0
    #: The run did not finish: its last requests may still be in progress.
    crashed: bool = False
    #: Iterations failed or timed out: what they requested may still be created.
    unanswered: bool = False
    #: Reports the progress of a long operation: what is done, how many, of how many.
    tell: Callable[[str, int, int], None] = no_progress


#: The name under which existing plug-ins import it.
Surroundings = ContextEnvironment


@dataclass(frozen=True, kw_only=True)
class ResourceInError:
    """A resource that is in error, or changing."""

    #: In the plural.
    kind: str
    #: As its service reports it; with the change that is being made, if that is separate.
    state: str
    in_error: bool
    #: Iteration that created it; 0 if a context did.
    iteration: int


@dataclass(kw_only=True)
class ErrorSearchResult:
    """Resources found in error or changing, and kinds that could not be listed."""

    #: By kind that was listed.
    found: dict[str, list[ResourceInError]] = field(default_factory=dict)
    #: Kinds that could not be listed, and why.
    unlisted: dict[str, str] = field(default_factory=dict)
    #: Time for which changes were awaited, seconds.
    waited_s: float = 0.0
    #: Reason if the search was broken off; else "".
    problem: str = ""


class Context:
    """Base class of contexts, which run in the coordinator.

    One instance sets up, another may clean up. `made` is all that is kept between the two: it is
    stored, encrypted, before the load starts, and its keys are in the context of every iteration.
    It holds msgpack types only: None, booleans, numbers, text, bytes, lists and mappings.
    """

    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: Contexts are set up from the lowest to the highest and removed the other way round.
    ORDER: ClassVar[int] = 1000
    #: Only scenarios can ask for it (`scenario.configure(context=...)`), task files can't.
    HIDDEN: ClassVar[bool] = False
    #: JSON schema of the configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}

    def __init__(
        self,
        config: Any,
        surroundings: ContextEnvironment,
        made: dict[str, Any],
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        self.config = config
        self.surroundings = surroundings
        self.made = made
        #: Stores `made` as it is now. Call it after creating something that must be removed even
        #: if this process is killed.
        self.keep = keep

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on errors that the schema cannot detect; `config` fits the schema.

        [] unless a subclass overrides it.
        """
        return []

    def setup(self) -> None:
        """Create the resources of iterations and record them in `made`; subclasses override this.

        Called once before the load. An exception prevents the load.
        """
        raise NotImplementedError

    def cleanup(self) -> None:
        """Remove the resources in `made`, also after a `setup` that failed or was killed midway.

        Subclasses override this. After an exception it is called again.
        """
        raise NotImplementedError

    def in_error(self, patient: Callable[[], bool]) -> ErrorSearchResult:
        """Search resources of the workload that are in error or changing; remove none.

        Only called of a subclass that overrides it, after the load and before `cleanup`. Changing
        resources are awaited while `patient` returns true.
        """
        raise NotImplementedError


def with_text(
    names: Sequence[str], args: Mapping[str, Any], environment: ContextEnvironment
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return `args` with texts instead of file names, and the context: two new dicts.

    `names`: the arguments that name files, as in `texts_of`. Raises ContextError if a file cannot
    be read.
    """
    found = {**args, **texts_of(names, args)}
    return found, dict(environment.context)


def texts_of(names: Sequence[str], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text of each file that the arguments `names` name, by argument.

    The files are on the coordinator's host. A list of files becomes a mapping of texts by path, a
    mapping of files a mapping of texts by the same keys. Missing and other arguments are left out.
    Raises ContextError if a file cannot be read.
    """
    found: dict[str, Any] = {}
    for name in names:
        given = args.get(name)
        if isinstance(given, str):
            found[name] = _text(name, given)
        elif isinstance(given, list):
            found[name] = {str(path): _text(name, str(path)) for path in given}
        elif isinstance(given, Mapping):
            found[name] = {key: _text(name, str(path)) for key, path in given.items()}
    return found


def _text(argument: str, path: str) -> str:
    try:
        return read_text(expanded(path))
    except OSError as error:
        raise ContextError(
            f"argument {argument}: cannot read {path}: {error.strerror}; give a file that this "
            "host can read"
        ) from None
    except UnicodeDecodeError:
        raise ContextError(
            f"argument {argument}: {path} is not text in UTF-8: save it in UTF-8, or give "
            "another file"
        ) from None

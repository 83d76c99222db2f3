"""The context interface: what a workload's iterations need, made before the load, removed after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from osbench.common.deployment.record import Deployment


def untold(what: str, done: int, planned: int) -> None:
    """Tell nobody how far a context is."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a context may use beside its configuration."""

    #: Id of the run.
    run: str
    #: What is under test; None where the run has no deployment record.
    deployment: Deployment | None = None
    #: What the contexts before this one have made, by key.
    context: Mapping[str, Any] = field(default_factory=dict)
    #: The scenario they are for, and the configuration of all its contexts by name; known while
    #: they are set up.
    scenario: str = ""
    contexts: Mapping[str, Any] = field(default_factory=dict)
    #: Number of the workload within the run.
    workload: int = 0
    #: The run did not come to its end: what it sent last may still be on its way.
    crashed: bool = False
    #: Iterations have failed or timed out: what they have asked for may still be made.
    unanswered: bool = False
    #: Shows how far a long piece of work is: what is done, how many of how many.
    tell: Callable[[str, int, int], None] = untold


class Context:
    """Base of contexts. Runs in the coordinator; a new instance sets up, another may clean up.

    `made` is all that lasts between the two: it is stored, encrypted, before the load starts,
    and its keys are in the context of every iteration. It holds msgpack types only: None,
    booleans, numbers, text, bytes, lists and mappings.
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
        surroundings: Surroundings,
        made: dict[str, Any],
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        self.config = config
        self.surroundings = surroundings
        self.made = made
        #: Stores `made` as it is now; call it after making something that must not be forgotten,
        #: should this process die.
        self.keep = keep

    def setup(self) -> None:
        """Make what iterations need and note it in `made`. May raise: then nothing is loaded."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Remove what `made` names; also after a `setup` that failed half-way, or a death.

        Must bear being called again where it raised before.
        """
        raise NotImplementedError

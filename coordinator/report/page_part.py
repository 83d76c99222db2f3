"""Parts of a run's page that optional packages provide by entry points `osbench.page_part`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from osbench.common.plugin import entry_points
from osbench.coordinator.report.run_facts import RunFacts


@dataclass(frozen=True, kw_only=True)
class SlowReason:
    """The reason why slow iterations of a workload were slow; "" if there is none."""

    text: str
    #: The text names a clear cause.
    is_clear: bool = False
    #: Id of the page's element with all causes; "" for none.
    details: str = ""
    #: Id of an example, as in `PagePart.anchors`; "" for none.
    example: str = ""


class PagePart:
    """A part of the page of a run; a method that is not overridden adds nothing.

    Templates are named `PACKAGE:FILE`, a file in the folder `assets` of a package. They see the
    variables of the page, and the part under its name in `parts`.
    """

    #: Template of the last charts over time, in the section of each workload `m`; "" for none.
    OVER_TIME: ClassVar[str] = ""
    #: Templates of what a live page replaces, by the end of the id of its element: "ID" in the
    #: section `w1` is the element `w1-ID`.
    LIVE: ClassVar[Mapping[str, str]] = {}
    #: Template of a section after all workloads, its id, and its name in the bar; "" for none.
    SECTION: ClassVar[str] = ""
    ANCHOR: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""
    #: Scripts of the page, named as templates are.
    SCRIPTS: ClassVar[Sequence[str]] = ()

    @classmethod
    def of(cls, facts: RunFacts, *, live: bool) -> Self | None:
        """Return the part of a run's page, None if the page has none; each part overrides this.

        Raises DamagedRun.
        """
        raise NotImplementedError

    def payload(self, workload: int) -> Mapping[str, Any]:
        """Return additions to the data of a workload's charts, as JSON values."""
        return {}

    def iterations(self, workload: int) -> Sequence[int]:
        """Return iterations that the page's table must have, the most useful first."""
        return ()

    def explanation(self, workload: int) -> SlowReason | None:
        """Return why slow iterations were slow; None if the part does not look for it."""
        return None

    def anchors(self) -> Mapping[str, str]:
        """Return ids by trace id: the element `t-ID` shows the iteration."""
        return {}


def page_part_types() -> dict[str, type[PagePart]]:
    """Return the types of all installed parts by name, sorted. Raises PluginError."""
    names = sorted(entry_points.names("page_part"))
    return {name: entry_points.load_object("page_part", name) for name in names}


def page_parts(facts: RunFacts, *, live: bool) -> dict[str, PagePart]:
    """Read the parts of a run's page, by name. Raises DamagedRun."""
    found = {name: one.of(facts, live=live) for name, one in page_part_types().items()}
    return {name: part for name, part in found.items() if part is not None}

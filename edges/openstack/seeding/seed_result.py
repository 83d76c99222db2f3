"""The result of the command `seed`: the account as a table and as JSON, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import INTERRUPTED
from osbench.common.text.escaping import one_line
from osbench.coordinator.formatting import count, spaced
from osbench.coordinator.front.cli.base import echo, echo_table
from osbench.coordinator.text_table import TextTable, figures, names
from osbench.edges.openstack.seeding.seed_group import SeedGroup
from osbench.edges.openstack.seeding.seed_making import reasons

#: Exit code: some resources could not be made, or not be tried.
INCOMPLETE = 1


@dataclass(frozen=True, kw_only=True)
class SeedResult:
    """The account of a seed, with problems and the time taken."""

    seed: str
    deployment: str
    groups: Sequence[SeedGroup]
    #: Messages on problems apart from failures of the groups.
    problems: Sequence[str] = ()
    interrupted: bool = False
    #: Nothing was made: the account says what would be.
    dry_run: bool = False
    elapsed_s: float

    @property
    def complete(self) -> bool:
        """Whether everything is there, each object once."""
        return not self.problems and all(group.complete for group in self.groups)

    @property
    def exit_code(self) -> int:
        """130 if interrupted, 0 if everything is there or nothing was to be made, else 1."""
        if self.interrupted:
            return INTERRUPTED
        return 0 if self.complete or self.dry_run else INCOMPLETE

    def to_document(self) -> dict[str, Any]:
        """Return the result as JSON has it; its keys are documented in docs/seed.md."""
        return {
            "seed": self.seed,
            "deployment": self.deployment,
            "exit_code": self.exit_code,
            "complete": self.complete,
            "interrupted": self.interrupted,
            "dry_run": self.dry_run,
            "elapsed_s": round(self.elapsed_s, 3),
            "resources": [_group_document(group) for group in self.groups],
            "problems": list(self.problems),
        }

    def show(self) -> None:
        """Print the account to stdout, and problems to stderr."""
        table = TextTable(
            names("kind", "names"),
            figures("planned", "existing", "made", "failed", "not tried", "beyond"),
        )
        for group in self.groups:
            table.add_row(group.entry.word, _span(group), *map(count, _figures(group)))
        echo_table(table)
        echo(self._sum_line())
        for group in self.groups:
            for reason in reasons(group):
                echo(one_line(f"{group.entry.group}: {reason}"), err=True)
            if group.doubles:
                what = count(group.doubles, "second object", "second objects")
                echo(f"{group.entry.group}: {what} of one name removed", err=True)
            if group.beyond:
                what = count(group.beyond, "object has", "objects have")
                echo(f"{group.entry.group}: {what} a number beyond the file's; they stay", err=True)
        for problem in self.problems:
            echo(one_line(problem), err=True)
        if not self.complete and not self.dry_run:
            why = "interrupted" if self.interrupted else "incomplete"
            echo(f"{why}: give the same command again to continue", err=True)

    def _sum_line(self) -> str:
        planned = sum(group.planned for group in self.groups)
        existing = sum(group.existing for group in self.groups)
        parts = [f"{existing:,} existing"]
        for word in ("made", "failed", "not_tried"):
            number = sum(getattr(group, word) for group in self.groups)
            if number or word == "made":
                shown = "to make" if self.dry_run and word == "not_tried" else word
                parts.append(f"{number:,} {shown.replace('_', ' ')}")
        if self.dry_run:
            parts.remove("0 made")
        return (
            f"seed {self.seed} in {self.deployment}: {planned:,} planned = {' + '.join(parts)}, "
            f"in {spaced(self.elapsed_s)}"
        )


def _figures(group: SeedGroup) -> tuple[int, ...]:
    account = (group.planned, group.existing, group.made, group.failed, group.not_tried)
    return (*account, group.beyond)


def _span(group: SeedGroup) -> str:
    first, last = group.names
    if not group.planned:
        return "-"
    return first if first == last else f"{first} ... {group.planned}"


def _group_document(group: SeedGroup) -> dict[str, Any]:
    keys = ("planned", "existing", "made", "failed", "not_tried", "beyond")
    first, last = group.names
    return {
        "kind": group.entry.word,
        "group": group.entry.group,
        "first": first if group.planned else None,
        "last": last if group.planned else None,
        **dict(zip(keys, _figures(group), strict=True)),
        "doubles_removed": group.doubles,
        "errors": [
            {"message": message, "count": number} for message, number in group.errors.most_common()
        ],
    }

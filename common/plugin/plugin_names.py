"""Parses plug-in names of task files: `name`, `name@native`, `name@rally`, `name@platform`."""

from __future__ import annotations

from dataclasses import dataclass

#: Where a plug-in comes from: from osbench or a plug-in path of its kind, or from Rally.
NATIVE = "native"
RALLY = "rally"
SOURCES = (NATIVE, RALLY)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A plug-in's name in a task file, parsed: the name before the @, and the source after it."""

    #: Without what follows the `@`.
    bare: str
    #: `NATIVE` or `RALLY` where the name says it; a platform is Rally's.
    source: str | None = None
    #: The name that Rally knows: with the platform where one was given.
    in_rally: str


def parse_name(name: str) -> Asked:
    """Parse a plug-in's name in a task file: `name`, or `name@` with native, rally or a platform.

    A platform means Rally.
    """
    bare, at, suffix = name.partition("@")
    if not at:
        return Asked(bare=bare, in_rally=bare)
    if suffix in SOURCES:
        return Asked(bare=bare, source=suffix, in_rally=bare)
    return Asked(bare=bare, source=RALLY, in_rally=name)


def order(name: str, prefer: str) -> tuple[str, ...]:
    """Return the sources, `NATIVE` and `RALLY`, in which to search for a plug-in, first to last.

    Only one if `name` says it after an @; else both, `prefer` first.
    """
    source = parse_name(name).source
    if source is not None:
        return (source,)
    return SOURCES if prefer == NATIVE else (RALLY, NATIVE)

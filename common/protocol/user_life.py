"""What the life of a virtual user consists of beside its iterations."""

from __future__ import annotations

import enum


class LifeEvent(enum.IntEnum):
    """A failure follows its success."""

    BEGUN = 0
    NOT_BEGUN = 1
    ENDED = 2
    NOT_ENDED = 3
    #: An iteration of the user timed out: another takes its place, and keeps nothing of it.
    REPLACED = 4

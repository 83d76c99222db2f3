"""Moves virtual users between workers so that there are never more than asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.fleet.worker import Member


def regrant(members: Sequence[Member], targets: Sequence[int]) -> list[Member]:
    """Change shares towards their targets; answers whose share changed.

    A share is lowered at once, and counts as held until the worker's heartbeat shows that it
    has let go (design: lower, wait, raise). Only what is not held is given to others.
    """
    changed = []
    for member, target in zip(members, targets, strict=True):
        member.target = target
        if target < member.share:
            member.share = target
            member.generation += 1
            changed.append(member)
    free = sum(targets) - sum(max(member.share, member.held) for member in members)
    for member in members:
        # what it still holds itself can be given back to it
        kept = max(member.share, member.held)
        share = min(member.target, kept + max(free, 0))
        if share > member.share:
            free -= max(0, share - kept)
            member.share = share
            member.held = max(kept, share)
            member.generation += 1
            changed.append(member)
    return changed

"""Rules on shares of zones that can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.plugin.runner import split
from osbench.coordinator.load.dispatch.open_load import Ints
from osbench.coordinator.load.fleet.zones import ZoneShares, apportion, deal, zone_of
from osbench.coordinator.load.run.workload.user_allocation import UserAllocation
from world.mutants.mutant import Change, mutant


@mutant("zone-arrivals", "arrivals are divided among zones by their shares", faults=())
def _zone_arrivals() -> Sequence[Change]:
    def evenly(one: ZoneShares, dues: Ints, labels: Sequence[str], first: int) -> list[Ints]:
        return deal(dues, len(labels), first)

    return [(ZoneShares, "deal", evenly)]


@mutant("zone-of-number", "the zone of an arrival follows from its number in the load", faults=())
def _zone_of_number() -> Sequence[Change]:
    real = ZoneShares.deal

    def anew(one: ZoneShares, dues: Ints, labels: Sequence[str], first: int) -> list[Ints]:
        return real(one, dues, labels, 1)

    return [(ZoneShares, "deal", anew)]


@mutant("zone-users", "virtual users are divided among zones by their shares", faults=())
def _zone_users() -> Sequence[Change]:
    def evenly(
        one: ZoneShares, total: int, labels: Sequence[str], capacity: Sequence[int], least: int = 0
    ) -> list[int]:
        return list(split(total, capacity))

    return [(ZoneShares, "split", evenly)]


@mutant("zone-lost", "a zone without workers leaves its users to the others")
def _zone_lost() -> Sequence[Change]:
    real = ZoneShares.split

    def kept(
        one: ZoneShares, total: int, labels: Sequence[str], capacity: Sequence[int], least: int = 0
    ) -> list[int]:
        users = apportion(total, [one._weights[zone] for zone in one.names])
        gone = one.absent(labels)
        lost = sum(many for zone, many in zip(one.names, users, strict=True) if zone in gone)
        return real(one, total - lost, labels, capacity, least)

    return [(ZoneShares, "split", kept)]


@mutant("zone-noted", "the journal has the zones without workers")
def _zone_noted() -> Sequence[Change]:
    real = UserAllocation.note_held

    def unnoted(one: UserAllocation) -> None:
        load = one._load
        one._absent = load.plan.zones.absent(each.beat.label for each in load.workers.active)
        real(one)

    return [(UserAllocation, "note_held", unnoted)]


@mutant("zone-foreign", "workers of zones without a share take no part")
def _zone_foreign() -> Sequence[Change]:
    def first(one: ZoneShares, label: str) -> str:
        zone = zone_of(label)
        return zone if zone in one.names else "" if "" in one.names or not one else one.names[0]

    return [(ZoneShares, "_zone", first)]

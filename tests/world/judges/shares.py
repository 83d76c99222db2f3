"""Each zone has its share of a load, as exactly as the workers that took part allow.

Shares are apportioned as in a table of Sainte-Laguë: the numbers 1, 3, 5 ... divided by the share
of each zone, of which the smallest get a seat each. Equal ones may be seated in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from itertools import groupby

from osbench.coordinator.results.storage.run_directory import RunDirectory
from world.coordinators import SimulatedRun
from world.judges.finding import Finding
from world.shares import Deal

#: Passes of the control loop for which users may be missing: their numbers come back first.
LACKING_MOST = 100


class _Table:
    """The shares of a load by zone, as exact numbers."""

    def __init__(self, percents: Mapping[str, float]) -> None:
        rest = 100 - sum(map(Fraction, percents.values()), Fraction())
        others = {"": rest} if rest else {}
        self.shares = {zone: Fraction(share) for zone, share in percents.items()} | others
        #: By zones with workers: the zones that may have each seat, and the most of each up to it.
        self._owners: dict[frozenset[str], list[set[str]]] = {}

    def zone(self, zone: str) -> str:
        """The zone in the load of workers whose labels have a zone."""
        return zone if zone in self.shares or "" not in self.shares else ""

    def present(self, zones: Collection[str]) -> frozenset[str]:
        """The zones among `zones` that have a share."""
        return frozenset(zones) & frozenset(self.shares)

    def owners(self, zones: frozenset[str], seats: int) -> list[set[str]]:
        """The zones that may have each seat, of some or more."""
        found = self._owners.get(zones, [])
        if len(found) < seats:
            many = 2 * seats
            every = [(Fraction(2 * k + 1) / self.shares[z], z) for z in zones for k in range(many)]
            grouped = [
                {zone for _, zone in group}
                for _, group in groupby(sorted(every), lambda one: one[0])
            ]
            # as many seats as zones that have an equal claim
            found = self._owners[zones] = [one for one in grouped for _ in one][:many]
        return found

    def most(self, zones: frozenset[str], seats: int) -> Counter[str]:
        """The most seats that each zone may have."""
        found: Counter[str] = Counter()
        left = 0
        for owners in self.owners(zones, seats)[:seats]:
            if not left:
                found.update(owners)
                left = len(owners)
            left -= 1
        return found


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare starts, grants and records of a run with the shares of its load."""
    workload = run.plan.task.workloads[0]
    if not workload.zones:
        return
    table = _Table({zone: share / 10_000 for zone, share in workload.zones.items()})
    zones = {one.name: table.zone(one.zone) for one in run.world.workers}
    yield from _starts(run, table, zones)
    yield from _arrivals(run, table, zones)
    yield from _users(run, table, zones)
    yield from _noted(run, table, zones)


def _granted(run: SimulatedRun) -> Iterator[tuple[str, int, bytes]]:
    """Hosts and numbers that were granted to them, by the journal, with due times; "" if none."""
    hosts: dict[str, str] = {}
    for record in RunDirectory(run.folder).decisions():
        if record["do"] == "member":
            hosts[record["mid"]] = record["incarnation"].partition(".")[0]
        elif record["do"] in ("cut", "drop"):
            at = 0
            for low, high in record["intervals" if record["do"] == "cut" else "numbers"]:
                for number in range(low, high):
                    due = record["dues"][8 * at : 8 * at + 8] if record["dues"] else b""
                    yield hosts.get(record.get("mid", ""), ""), number, due
                    at += 1


def _starts(run: SimulatedRun, table: _Table, zones: Mapping[str, str]) -> Iterator[Finding]:
    """Only workers of zones with a share start iterations, those that were granted to them."""
    granted = {(host, number) for host, number, _ in _granted(run)}
    for one in run.known.starts:
        if zones[one.process] not in table.shares:
            yield Finding("started in a zone without a share", f"{one.number} on {one.process}")
            return
        if (one.process, one.number) not in granted:
            yield Finding("started by a worker that it was not granted to", str(one))
            return


def _arrivals(run: SimulatedRun, table: _Table, zones: Mapping[str, str]) -> Iterator[Finding]:
    """The zone of an arrival follows from its rank by time, and from the zones with workers."""
    deals: dict[int, Deal] = {}
    for deal in run.known.shares.deals:
        # a coordinator that was killed may not have written what it dealt
        if deal.first:
            deals |= dict.fromkeys(range(deal.first, deal.first + deal.many), deal)
        present = table.present({zones[host] for host in deal.hosts})
        got: Counter[str] = Counter()
        for host, many in deal.got.items():
            got[zones[host]] += many
        if deal.got and present and got - table.most(present, deal.many):
            yield Finding("arrivals that came back were not shared", f"{dict(got)} of {deal}")
    first: dict[int, tuple[int, str]] = {}
    for host, number, due in _granted(run):
        if due:
            first.setdefault(number, (int.from_bytes(due, "little", signed=True), host))
    ranked = sorted((due, host, number) for number, (due, host) in first.items())
    for rank, (_, host, number) in enumerate(ranked, 1):
        if not host:
            # it was dropped
            continue
        present = table.present({zones[one] for one in deals[rank].hosts})
        if present and zones[host] not in table.owners(present, rank)[rank - 1]:
            text = (
                f"{number}, by time {rank}, to {host} in zone {zones[host]}, of {sorted(present)}"
            )
            yield Finding("an arrival in another zone", text)
            return


def _users(run: SimulatedRun, table: _Table, zones: Mapping[str, str]) -> Iterator[Finding]:
    """No zone of a closed load has more users than its share, and none are missing for long."""
    most: Counter[str] = Counter()
    by_split = [most]
    for split in run.known.shares.splits:
        present = table.present({zones[host] for host in split.hosts})
        users: Counter[str] = Counter()
        for host, limit in zip(split.hosts, split.limits, strict=True):
            users[zones[host]] += limit
        share = table.most(present, split.users)
        if users - share:
            yield Finding("more users than the share of a zone", f"{dict(users)} of {split}")
            return
        if present and users.total() < split.users and split.passes > LACKING_MOST:
            yield Finding("users in no zone", f"{dict(users)} of {split}")
        most = most | share
        by_split.append(most)
    for (zone, splits), count in run.known.shares.at_once.items():
        if splits and count > by_split[splits][zone]:
            text = f"{count} in zone {zone}, and its share is {by_split[splits][zone]} at most"
            yield Finding("more iterations at once than the share of a zone", text)


def _noted(run: SimulatedRun, table: _Table, zones: Mapping[str, str]) -> Iterator[Finding]:
    """The journal has the zones without workers."""
    looked = run.known.shares.looked
    assert run.coordinator is not None
    if looked is None or looked[0] != run.coordinator.process.name:
        return
    noted: list[str] = []
    for record in RunDirectory(run.folder).decisions():
        if record["do"] == "zones":
            noted = record["absent"]
    absent = set(table.shares) - {zones[host] for host in looked[1]}
    if absent != set(noted):
        yield Finding("zones without workers are not noted", f"{sorted(absent)}, noted {noted}")

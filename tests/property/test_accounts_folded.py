"""A run directory folds to the accounts that the live run had, whatever came in which order."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.live_accounts import LiveAccounts, register
from helpers.sample_reports import shown
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.storage.frames import placed_frames
from osbench.coordinator.results.storage.run_directory import RunDirectory

STEPS = 120
seeds = st.integers(0, 2**32)


def folded(directory: RunDirectory) -> Accounts:
    found = Accounts()
    register(found)
    found.fold(directory)
    return found


def told(accounts: Accounts) -> dict[str, Any]:
    """All that a report, or a run that goes on, takes from accounts."""
    found: dict[str, Any] = {
        "epoch": accounts.epoch,
        "memberships": {mid: asdict(one) for mid, one in accounts.memberships.items()},
        "t0_at": accounts.t0_at,
        "closed": accounts.closed,
        "refused": accounts.refused,
    }
    for workload, results in accounts.results.items():
        ledger = results.ledger
        names = [one.name for one in accounts.memberships.values()]
        found[f"workload {workload}"] = {
            "accounting": asdict(ledger.accounting()),
            "open": {name: list(ledger.held(name)) for name in names},
            "batches": {name: ledger.open_batches(name) for name in names},
            "statistics": shown(results.statistics),
            "sla": [asdict(verdict) for verdict in results.sla.judge(results.statistics)],
            "sums": (results.want_ns, results.cut, results.warmup_rows, results.refused),
            "busy_s": pytest.approx(results.busy_s),
        }
    return found


@settings(max_examples=examples(25))
@given(seeds)
def test_a_directory_folds_to_what_the_live_run_had(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live = LiveAccounts(Path(folder), seed)
        for _ in range(STEPS):
            live.step()
        before = told(live.accounts)
        again = told(folded(live.directory))
        for one in (before, again):
            # arrivals that were never granted nor dropped are on no disk before the end
            one["workload 1"]["accounting"].pop("planned")
        assert again == before

        live.close()
        for _ in range(STEPS // 4):
            live.step()
        assert told(folded(live.directory)) == told(live.accounts)
        for results in live.accounts.results.values():
            sums = results.ledger.accounting()
            assert sums.settled == sums.planned
        live.directory.close()


@settings(max_examples=examples(40))
@given(seeds, st.data())
def test_what_damage_leaves_of_it_adds_up(seed: int, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live = LiveAccounts(Path(folder), seed)
        for _ in range(STEPS // 2):
            live.step()
        live.directory.close()
        left = Path(folder) / "left"
        shutil.copytree(live.directory.path, left)
        for name in ("journal", "blocks"):
            ends = [0, *(at + 8 + len(record) for at, record in placed_frames(left / name))]
            with (left / name).open("r+b") as file:
                file.truncate(data.draw(st.sampled_from(ends)))

        damaged = RunDirectory(left)
        damaged.accept_damage()
        accounts = folded(damaged)

        for results in accounts.results.values():
            results.ledger.close(None)
            sums = results.ledger.accounting()
            assert sums.settled == sums.planned


@settings(max_examples=examples(25))
@given(seeds)
def test_any_order_of_blocks_settles_the_same(seed: int) -> None:
    """Where no number was granted twice, sums do not depend on when a block came."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = (LiveAccounts(Path(folder) / name, seed) for name in ("one", "other"))
        for live in (one, other):
            for _ in range(4):
                live.join()
            for _ in range(20):
                live.grant()
            for _ in range(40):
                live.work()
            live.bag.entries.clear()
        sent = list(one.sent)
        assert [block.number for block in sent] == [block.number for block in other.sent]
        other.chance.shuffle(other.sent)
        for live in (one, other):
            for block in live.sent:
                live.bag.put(block)
                live.bag.put(block)
            live.bag.size = live.chance.randint(1, 9)
            while live.bag.entries:
                live.receiver.receive(0)
            live.close()

        for mine, theirs in zip(
            one.accounts.results.values(), other.accounts.results.values(), strict=True
        ):
            assert mine.ledger.accounting() == theirs.ledger.accounting()
            assert mine.statistics.errors.groups() == theirs.statistics.errors.groups()
            assert mine.statistics.errors.other == theirs.statistics.errors.other
        for live in (one, other):
            live.directory.close()

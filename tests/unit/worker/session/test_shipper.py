"""The shipper brings all that a membership has to tell into numbered blocks, each once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic_ns

import numpy as np
import pytest

from helpers.engines import COROUTINES, MS, batch, closed, until
from helpers.local_redis import LocalStore
from osbench.common.errors import StoreError, StoreUnreachable
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.protocol import timers
from osbench.common.protocol.columns import decode_rows
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.exchanges import EXCHANGE_BYTES, OWN, pack_kept
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Block
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.worker.session import result_source as module
from osbench.worker.session import shipper as shipper_module
from osbench.worker.session.log_book import ENTRY_CHARS, LogBook
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.shipper import Shipper
from servers.child import PATIENCE_S

SIGNER = Signer(Keyring.generate())


class Wire(LocalStore):
    """A store that may refuse an append, or take it and lose the response."""

    def __init__(self) -> None:
        super().__init__()
        self.tend()
        self.trouble = ""
        self.chance = random.Random(0)
        #: How often each trouble strikes.
        self.rate = 1.0

    def append(self, entry, *, instead_of=""):
        struck = self.trouble and self.chance.random() < self.rate
        if struck and self.trouble == "refused":
            raise StoreError("no room")
        place = ""
        if not struck or self.trouble == "lost":
            place = super().append(entry, instead_of=instead_of)
        if struck:
            raise StoreUnreachable("no answer")
        return place

    def blocks(self) -> list[Block]:
        """All that arrived, in order."""
        return [Block.parse(SIGNER.verify(Block.KIND, entry)) for _, entry in self.read(0, 1 << 30)]


class Taken:
    """What a coordinator makes of blocks, in whatever order they came, each once."""

    def __init__(self, wire: Wire) -> None:
        found = {block.number: block for block in wire.blocks()}
        self.blocks: list[Block] = [found[number] for number in sorted(found)]
        self.rows = [decode_rows(block.columns) for block in self.blocks if block.columns]

    def numbers(self) -> list[int]:
        parts = [rows.iteration for rows in self.rows]
        return np.concatenate(parts).tolist() if parts else []

    def returned(self) -> Intervals:
        found = Intervals()
        for block in self.blocks:
            for low, high in block.returned:
                assert not found.within(low, high), "given back twice"
                found.add(low, high)
        return found

    def failures(self) -> list[list]:
        return [failure for block in self.blocks for failure in block.failures]


@contextmanager
def shipping(
    wire: Wire, folder: Path, limit: int = 1 << 30, log: LogBook | None = None
) -> Iterator[Shipper]:
    shipper = Shipper(
        run="r",
        incarnation="w",
        membership="m",
        store=wire,
        signer=SIGNER,
        outbox=Outbox(folder / "spool", limit),
        log=log or LogBook(),
        patience_s=lambda: timers.RESEND_S,
    )
    try:
        yield shipper
    finally:
        shipper.close()
        shipper.outbox.close()


def test_results_are_looked_for_rarely_as_long_as_there_is_no_workload(tmp_path, monkeypatch):
    waits: list[float] = []

    class NotedEvent(threading.Event):
        def wait(self, timeout=None):
            waits.append(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(shipper_module.threading, "Event", NotedEvent)

    with shipping(Wire(), tmp_path):
        until(lambda: len(waits) >= 4)

    # it waits for news, then a moment for more of them
    assert min(waits[::2]) >= 0.2


def test_rows_arrive_once(tmp_path):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 3, 0.05)
        engine.add(batch((1, 50_001)))
        engine.set_user_limit(4)
        until(lambda: not engine.unsettled)
        shipper.flush()

    taken = Taken(wire)
    assert sorted(taken.numbers()) == list(range(1, 50_001))
    assert {block.workload for block in taken.blocks} == {3}
    assert all(len(rows) <= module.BLOCK_ROWS for rows in taken.rows)
    assert engine.rows == []


def test_columns_are_what_happened(tmp_path):
    def work(scenario):
        with ActionTimer(scenario, "step"):
            scenario.sleep_between(0.002)
        if scenario.context["iteration"] == 2:
            raise ValueError("two")
        scenario.add_output(complete={"title": "t", "chart_plugin": "P", "data": [1]})

    wire = Wire()
    with closed(work) as engine, shipping(wire, tmp_path) as shipper:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)
        expected = list(engine.rows)
        shipper.serve(engine, 0, 0.05)
        shipper.flush()

    (block,) = Taken(wire).blocks
    rows = decode_rows(block.columns)
    assert rows.outcome.tolist() == [Outcome.OK, Outcome.FAILED]
    assert rows.started.tolist() == [row[3] - engine.t0_ns for row in expected]
    assert rows.idle.tolist() == [row[5] for row in expected]
    assert rows.names == ("step",)
    assert rows.actions[:, 0].tolist() == [0, 1]
    assert rows.failure.tolist() == [0, block.failures[0][0]]
    assert [number for number, _ in rows.outputs] == [1]


def test_what_is_given_back_and_waited_for_arrives_once(tmp_path):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.set_user_limit(1)
        time.sleep(0.02)
        engine.add(batch((1, 11)))
        until(lambda: not engine.unsettled)
        engine.stop(monotonic_ns())
        engine.add(batch((11, 101), number=2))
        until(lambda: not engine.unsettled)
        shipper.flush()

    taken = Taken(wire)
    assert sorted(taken.numbers()) == list(range(1, 11))
    assert taken.returned() == Intervals([(11, 101)])
    assert sum(block.want_ns for block in taken.blocks) == engine.want_ns >= 20 * MS


def test_failures_and_cuts_arrive_once_before_or_with_their_rows(tmp_path):
    def work(scenario):
        raise ValueError("m" * 2000 + str(scenario.context["iteration"] % 7))

    wire = Wire()
    with closed(work) as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.add(batch((1, 2001)))
        engine.set_user_limit(8)
        until(lambda: not engine.unsettled)

    known: set[int] = set()
    for block in Taken(wire).blocks:
        known |= {failure[0] for failure in block.failures}
        # a failure may come before its row, in a block without rows
        assert not block.columns or set(decode_rows(block.columns).failure.tolist()) <= known
    assert len(Taken(wire).failures()) == len(known)
    assert sum(block.cut for block in Taken(wire).blocks) == engine.body.failures.cut == len(known)


def test_a_large_backlog_is_cut_into_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", 1000)
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        engine.add(batch((1, 4501)))
        engine.set_user_limit(4)
        until(lambda: len(engine.rows) == 4500)
        shipper.serve(engine, 0, 0.05)
        shipper.flush()

    taken = Taken(wire)
    assert [len(rows) for rows in taken.rows] == [1000, 1000, 1000, 1000, 500]
    assert sorted(taken.numbers()) == list(range(1, 4501))


def test_large_outputs_make_smaller_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 100_000)

    def work(scenario):
        item = {"title": "t", "chart_plugin": "P", "data": "x" * 40_000}
        scenario.add_output(complete=item)

    wire = Wire()
    with closed(work) as engine, shipping(wire, tmp_path) as shipper:
        engine.add(batch((1, 8)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 7)
        shipper.serve(engine, 0, 0.05)
        shipper.flush()

    taken = Taken(wire)
    assert [len(rows) for rows in taken.rows] == [2, 2, 2, 1]
    assert sorted(taken.numbers()) == list(range(1, 8))


def test_many_requests_make_smaller_blocks_and_one_keeps_the_block_large(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 1000 * EXCHANGE_BYTES)

    async def work(scenario):
        for _ in range(400 if scenario.context["iteration"] > 3 else 1):
            scenario._recorder.note_exchange(pack_kept(-1, OWN, 5, 6, 7, 8, 200))

    wire = Wire()
    with closed(work, users=COROUTINES) as engine, shipping(wire, tmp_path) as shipper:
        engine.add(batch((1, 8)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 7)
        shipper.serve(engine, 0, 0.05)
        shipper.flush()

    taken = Taken(wire)
    assert [len(rows) for rows in taken.rows] == [5, 2]
    assert [len(rows.exchanges) for rows in taken.rows] == [803, 800]


@pytest.mark.parametrize("trouble", ["away", "lost", "refused"])
def test_blocks_that_did_not_get_through_go_again(tmp_path, trouble, caplog):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path, limit=2000) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.set_user_limit(2)
        for part in range(6):
            wire.trouble = trouble if 1 <= part < 4 else ""
            engine.add(batch((part * 100 + 1, part * 100 + 101), number=part + 1))
            until(lambda: not engine.unsettled)
        packed = shipper.outbox.number() - 1
        until(lambda: max(block.number for block in wire.blocks()) == packed)

    taken = Taken(wire)
    assert sorted(taken.numbers()) == list(range(1, 601))
    assert len(caplog.records) == 1


def test_results_are_packed_while_the_store_is_away(tmp_path):
    wire = Wire()
    wire.trouble = "away"
    with closed() as engine, shipping(wire, tmp_path, limit=10) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.add(batch((1, 5001)))
        engine.set_user_limit(4)
        until(lambda: not engine.unsettled)

        assert engine.rows == []
        assert len(shipper.outbox) > 0
        assert (tmp_path / "spool").stat().st_size > 0


def test_acknowledged_blocks_do_not_go_again(tmp_path):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.set_user_limit(1)
        engine.add(batch((1, 2)))
        until(lambda: not engine.unsettled)
        shipper.outbox.acknowledge(shipper.outbox.number() - 1)
        wire.trouble = "away"
        engine.add(batch((2, 3), number=2))
        until(lambda: not engine.unsettled)
        wire.trouble = ""
        until(lambda: len(Taken(wire).blocks) >= 2)

    numbers = [block.number for block in wire.blocks()]
    assert numbers == sorted(set(numbers))


def test_the_next_workload_begins_where_the_last_one_ended(tmp_path):
    wire = Wire()
    with closed() as first, closed() as second, shipping(wire, tmp_path) as shipper:
        shipper.serve(first, 0, 0.2)
        first.add(batch((1, 101)))
        first.set_user_limit(1)
        until(lambda: len(first.rows) + first.shipped == 100)
        wire.trouble = "away"
        first.close()
        shipper.flush()
        shipper.serve(second, 1, 0.2)
        wire.trouble = ""
        second.add(batch((1, 51), number=2))
        second.set_user_limit(1)
        until(lambda: len(second.rows) + second.shipped == 50)
        shipper.flush()

    blocks = Taken(wire).blocks
    rows = {0: 0, 1: 0}
    for block in blocks:
        rows[block.workload] += block.columns["rows"] if block.columns else 0
    assert rows == {0: 100, 1: 50}
    assert [block.workload for block in blocks] == sorted(block.workload for block in blocks)


@pytest.mark.timing
def test_the_first_results_travel_fast_and_later_ones_together_on_an_idle_machine(tmp_path):
    wire = Wire()
    with (
        closed(lambda scenario: time.sleep(0.001)) as engine,
        shipping(wire, tmp_path) as shipper,
    ):
        shipper.serve(engine, 0, 0.2)
        engine.add(batch((1, 1_000_000)))
        engine.set_user_limit(2)
        time.sleep(1.2)
        engine.stop(0)

    sizes = [len(rows) for rows in Taken(wire).rows]
    assert sizes[0] < max(sizes) / 2
    assert len(sizes) < 30


def test_text_that_is_not_utf8_does_not_stop_the_shipping(tmp_path):
    def work(scenario):
        with ActionTimer(scenario, "caf\udce9"):
            raise FileNotFoundError("caf\udce9")

    wire = Wire()
    with closed(work) as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.add(batch((1, 11)))
        engine.set_user_limit(1)
        until(lambda: not engine.unsettled)

    taken = Taken(wire)
    assert sorted(taken.numbers()) == list(range(1, 11))
    assert taken.rows[0].names == ("caf\\udce9",)


def test_iterations_with_very_many_actions_are_shipped(tmp_path):
    def work(scenario):
        for _ in range(70_000):
            with ActionTimer(scenario, "step"):
                pass

    wire = Wire()
    with closed(work) as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: not engine.unsettled)

    assert sum(len(rows.actions) for rows in Taken(wire).rows) == 140_000


def test_how_users_begin_and_end_is_shipped_also_after_the_load(tmp_path):
    wire = Wire()
    ending = threading.Event()

    def on_stop(scenario):
        ending.wait(PATIENCE_S)

    with (
        closed(lambda scenario: None, on_start=lambda scenario: None, on_stop=on_stop) as engine,
        shipping(wire, tmp_path) as shipper,
    ):
        shipper.serve(engine, 0, 0.01)
        engine.set_user_limit(2, [(5, 7)])
        engine.add(batch((1, 11)))
        until(lambda: not engine.unsettled)
        engine.close()
        time.sleep(0.05)
        ending.set()
        until(lambda: not engine.has_users_to_end)

    life = [event for block in Taken(wire).blocks for event in block.life]
    assert sorted((kind, number) for kind, number, *_ in life) == [(0, 5), (0, 6), (2, 5), (2, 6)]
    assert all(begun <= ended for _, _, begun, ended, _ in life)


def test_an_error_of_our_own_loses_nothing(tmp_path, monkeypatch, caplog):
    wire, broken = Wire(), threading.Event()
    seal = SIGNER.sign

    class Breaking:
        def sign(self, kind, body):
            if broken.is_set():
                raise ZeroDivisionError
            return seal(kind, body)

    def work(scenario):
        raise ValueError("abc"[scenario.context["iteration"] % 3])

    with closed(work) as engine, shipping(wire, tmp_path) as shipper:
        shipper._signer = Breaking()
        broken.set()
        shipper.serve(engine, 0, 0.01)
        engine.set_user_limit(2)
        engine.add(batch((1, 301)))
        until(lambda: "internal error" in caplog.text and len(engine.rows) == 300)
        broken.clear()
        until(lambda: not engine.unsettled)

    taken = Taken(wire)
    assert sorted(taken.numbers()) == list(range(1, 301))
    assert len(taken.failures()) == 3


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_doubled_over_a_bad_line(tmp_path, seed):
    chance = random.Random(seed)
    wire = Wire()
    wire.chance, wire.rate = chance, 0.4

    def work(scenario):
        if scenario.context["iteration"] % 50 == 0:
            raise ValueError(scenario.context["iteration"] % 200)

    with closed(work) as engine, shipping(wire, tmp_path, limit=5000) as shipper:
        shipper.serve(engine, 0, 0.01)
        last = 1
        for number in range(1, 40):
            wire.trouble = chance.choice(["", "away", "lost", "refused"])
            engine.add(batch((last, last + 100), number=number))
            last += 100
            engine.set_user_limit(chance.randint(0, 5))
            if chance.random() < 0.3 and wire.blocks():
                shipper.outbox.acknowledge(len(Taken(wire).blocks))
            time.sleep(chance.random() * 0.01)
        engine.stop(monotonic_ns())
        until(lambda: not engine.unsettled)
        wire.trouble = ""
        packed = shipper.outbox.number() - 1
        until(lambda: len(Taken(wire).blocks) == packed)

    taken = Taken(wire)
    numbers = Intervals.of(np.array(taken.numbers(), np.int64))
    assert len(numbers) == len(taken.numbers())
    numbers.update(taken.returned())
    assert numbers == Intervals([(1, last)])
    assert len(numbers) == len(taken.numbers()) + len(taken.returned())


def test_numbers_that_no_engine_had_go_back_under_their_workload(tmp_path):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 4, 0.01)
        shipper.give_back(3, [(1, 5)])
        shipper.give_back(3, [(7, 9)])
        shipper.give_back(4, [(20, 22)])
        until(lambda: len(Taken(wire).returned()) == 8)
        shipper.flush()

    found = {}
    for block in Taken(wire).blocks:
        found.setdefault(block.workload, Intervals()).update(block.returned)
    assert found == {3: Intervals([(1, 5), (7, 9)]), 4: Intervals([(20, 22)])}
    assert engine.unsettled == 0


def test_void_batches_are_told_once(tmp_path):
    wire = Wire()
    with shipping(wire, tmp_path) as shipper:
        shipper.reject([3, 5])
        shipper.flush()
        shipper.reject([6])
        shipper.flush()

    told = [seq for block in Taken(wire).blocks for seq in block.voids]
    assert sorted(told) == [3, 5, 6]
    assert {block.workload for block in Taken(wire).blocks} == {-1}


def test_an_earlier_engine_is_shipped_until_its_last_iteration_has_ended(tmp_path):
    go = threading.Event()
    wire = Wire()
    with (
        closed(lambda scenario: go.wait(PATIENCE_S)) as first,
        closed() as second,
        shipping(wire, tmp_path) as shipper,
    ):
        shipper.serve(first, 0, 0.01)
        first.add(batch((1, 3)))
        first.set_user_limit(2)
        until(lambda: len(first.inflight) == 2)
        first.close()
        shipper.serve(second, 1, 0.01)
        second.add(batch((1, 11), number=2))
        second.set_user_limit(1)
        until(lambda: not second.unsettled)
        go.set()
        until(lambda: not first.unsettled)
        until(lambda: len(shipper._sources) == 1)
        shipper.flush()

    rows = {0: 0, 1: 0}
    for block in Taken(wire).blocks:
        rows[block.workload] += block.columns["rows"] if block.columns else 0
    assert rows == {0: 2, 1: 10}


def test_the_last_block_comes_after_all_others_and_none_after_it(tmp_path):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 10.0)
        engine.add(batch((1, 101)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) + engine.shipped == 100)
        shipper.give_back(1, [(1, 2)])
        shipper.reject([9])
        shipper.finish()
        shipper.finish()
        shipper.give_back(1, [(2, 3)])
        shipper.flush()

    blocks = Taken(wire).blocks
    assert [block.final for block in blocks] == [False] * (len(blocks) - 1) + [True]
    assert sum(block.columns.get("rows", 0) for block in blocks) == 100
    assert Taken(wire).returned() == Intervals([(1, 2)])
    assert blocks[-2].voids == [9]


def test_making_the_last_block_does_not_send_it(tmp_path):
    wire = Wire()
    wire.trouble = "away"
    with shipping(wire, tmp_path) as shipper:
        shipper.finish()
        wire.trouble = ""
        shipper.flush()

    assert [block.final for block in wire.blocks()] == [True]


def test_starts_after_the_lease_are_counted_once(tmp_path):
    wire = Wire()
    with closed() as engine, shipping(wire, tmp_path) as shipper:
        shipper.serve(engine, 0, 0.01)
        engine._late += [None, None]
        shipper.flush()
        engine._late.append(None)
        shipper.flush()

    assert [block.started_late for block in Taken(wire).blocks if block.started_late] == [2, 1]


def test_what_is_printed_and_logged_arrives_once_even_without_results(tmp_path):
    wire, log = Wire(), LogBook()
    log.begin("r")
    with shipping(wire, tmp_path, log=log):
        log.add("stdout", "hello")
        log.add("stdout", "x" * (ENTRY_CHARS + 1))
        until(lambda: sum(len(block.log) for block in Taken(wire).blocks) == 2)

        blocks = Taken(wire).blocks
    entries = [entry for block in blocks for entry in block.log]
    assert [entry[1:] for entry in entries] == [
        ["stdout", -1, 0, "hello"],
        ["stdout", -1, 0, "x" * ENTRY_CHARS],
    ]
    assert sum(block.log_cut for block in blocks) == 1

"""Processes that run a load, note on a will page, and log each number before they start it.

As a script this module is the template of them: it has imported all, reads a request a line, forks
a process for it, and prints its process id, and a line when it has ended. A request has the process
and the descriptor of the page, path of the log, seed, closed or open, and kind of users. The log
has eight bytes for each number.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import time
from time import monotonic_ns

from helpers.engines import MS, S, arrivals, batch, closed, nap, opened
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.engine import Engine
from osbench.worker.engine.will_page import WillPage

#: Iteration numbers of a batch.
SIZE = 400
BATCHES = 60


def batches(seed: int, kind: str) -> list[Batch]:
    """The batches of a load: their numbers do not ascend from one batch to the next."""
    chance = random.Random(seed)
    firsts = [1 + SIZE * at for at in range(BATCHES)]
    chance.shuffle(firsts)
    if kind == "closed":
        return [
            batch((first, first + 100), (first + 120, first + SIZE), number=seq)
            for seq, first in enumerate(firsts, 1)
        ]
    found, due = [], 0
    for seq, first in enumerate(firsts, 1):
        dues = [due + MS // 10 * at for at in range(SIZE)]
        found.append(arrivals(dues, first=first, number=seq))
        due = dues[-1]
    return found


def load(engine: Engine, seed: int, kind: str) -> None:
    """Batches come one after the other; the lease ends and is renewed, batches are recalled."""
    chance = random.Random(-seed)
    engine.set_user_limit(8)
    for one in batches(seed, kind):
        engine.add(one)
        time.sleep(chance.random() * 0.004)
        if chance.random() < 0.3:
            engine.set_lease(monotonic_ns() + MS)
            time.sleep(0.003)
            engine.set_lease(monotonic_ns() + 60 * S)
        if chance.random() < 0.1:
            engine.give_back(engine.take_back(one.seq))
    time.sleep(60)


def run(owner: int, descriptor: int, path: str, seed: int, kind: str, users: str) -> None:
    """Be the process of a request."""
    page = WillPage(os.open(f"/proc/{owner}/fd/{descriptor}", os.O_RDWR), "host.1.aa")
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    pause_s = random.Random(seed).choice([0, 0, 0.0005, 0.002])
    page.join("run-1", "a" * 32)
    page.serve(3, kind == "open")

    async def work(scenario: object) -> None:
        os.write(log, struct.pack("<q", scenario.context["iteration"]))  # type: ignore[attr-defined]
        await nap(pause_s)

    made = (
        opened(work, t0_in_ns=0, max_lag_ns=20 * S, page=page, users=users)
        if kind == "open"
        else closed(work, page=page, users=users)
    )
    with made as engine:
        load(engine, seed, kind)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(*json.loads(line))
            return
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()

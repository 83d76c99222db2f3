"""A worker process of a world, and the supervisor that outlives it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from osbench.common.errors import OsbenchError
from osbench.common.protocol.envelope import Signer, Vault
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import UserLimits
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import agent as agent_module
from osbench.worker.process.agent import Agent, Identity, Patience
from osbench.worker.process.host_load import HostSample
from osbench.worker.process.will_sender import WillSender
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.preparation import Preparation
from osbench.worker.session.refusals import Refusals
from world.fibers import Process
from world.wire import Client

if TYPE_CHECKING:
    from world.world import World

#: Virtual users of a worker.
USERS = 64
#: How fast the clocks of workers run: least and most, beside 1.
DRIFT = 0.01
#: Until a supervisor sees that its process has ended, and until it starts another, seconds.
SEEN_S = 0.1
AGAIN_S = 1.0
#: Longest wait for a drained worker, seconds.
DRAIN_S = 60.0


class _IdleHost:
    """In place of `HostLoad`: nothing else runs on the host of a worker."""

    cores = 1
    quota = 0.0

    def measure(self, now_s: float) -> HostSample:
        """Nothing waits, and nothing is used."""
        return HostSample(0.0, 0.0, 0.0)


agent_module.HostLoad = _IdleHost  # type: ignore[misc, assignment]


class WorkerProcess:
    """Agent, engines and consumer; its supervisor reads the page of its will."""

    def __init__(self, world: World, name: str, label: str = "") -> None:
        self._world = world
        #: By which it is in a zone.
        self.label = label
        rate = 1 + world.scheduler.chance.uniform(-DRIFT, DRIFT)
        self.process = Process(name, world.seed, rate=rate)
        self.incarnation = f"{name}.1.{self.process.chance.randbytes(8).hex()}"
        self._page = WillPage.create()
        self.agent: Agent | None = None
        #: Somebody has killed, paused, or drained it.
        self.hurt = False
        #: It was killed, and its supervisor tells what it cannot have started.
        self.bequeaths = False
        world.scheduler.spawn(self.process, self._main, "main")

    @property
    def name(self) -> str:
        """The name of its host."""
        return self.process.name

    @property
    def zone(self) -> str:
        """The part of its label before the first slash."""
        return self.label.split("/")[0]

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self.process.alive

    def _main(self) -> None:
        world = self._world
        keyring = world.keyring()
        page = WillPage.__new__(WillPage)
        page.__dict__.update(vars(self._page), _incarnation=self.incarnation)
        self.agent = Agent(
            identity=Identity(
                incarnation=self.incarnation, host=self.name, pid=1, label=self.label
            ),
            connect=lambda bound_s: Client(world.redis, bound_s),  # type: ignore[arg-type, return-value]
            equipment=Equipment(
                incarnation=self.incarnation,
                user_limits=UserLimits(threads=USERS, coroutines=USERS),
                signer=Signer(keyring),
                vault=Vault(keyring),
                preparation=Preparation(world.conf, world.plugins),
                refusals=Refusals(),
                sleep=PreciseSleep(0.0),
                spool_dir=Path(world.conf.data_dir) / "spool",
                spool_limit_bytes=1 << 30,
                page=page,
            ),
            patience=Patience(
                redis_timeout_s=5.0, coordinator_lost_s=world.coordinator_lost_s, max_stuck=8
            ),
        )
        try:
            self.agent.start()
        except OsbenchError as error:
            # the process ends, and its supervisor starts another
            world.note("worker could not start", str(error))
            self.agent, self.process.alive = None, False
            world.scheduler.after(AGAIN_S, partial(world.hire, self.label))
            return
        world.broker.consume(self.incarnation, self.agent.receive)

    def drain(self) -> None:
        """SIGTERM: what the main thread of a worker process does then."""
        self.hurt = True
        self._world.note("drain", self.name)
        self._world.scheduler.spawn(self.process, self._drain, "drain")

    def _drain(self) -> None:
        assert self.agent is not None
        self.agent.drain()
        self.agent.done.wait(DRAIN_S)
        try:
            self.agent.deregister()
        except OsbenchError as error:
            self._world.note("not deregistered", str(error))
        self._end(supervised=True)

    def kill(self, *, supervised: bool = True) -> None:
        """kill -9, or the end of its host: no thread of it goes on."""
        self.hurt, self.bequeaths = True, supervised
        self._world.note("kill", self.name)
        self._end(supervised=supervised)

    def _end(self, *, supervised: bool) -> None:
        self.process.alive = False
        if supervised:
            supervisor = Process(f"{self.name}-supervisor", self._world.seed)
            spawn = self._world.scheduler.spawn
            self._world.scheduler.after(
                SEEN_S, lambda: spawn(supervisor, self._bequeath, "supervisor")
            )

    def _bequeath(self) -> None:
        will = self._page.read()
        if will is not None:
            WillSender(self._world.conf).send(will)

    def pause(self, seconds: float, *, with_clock: bool = False) -> None:
        """SIGSTOP, or with its clock a virtual machine that is suspended."""
        now = self._world.scheduler.now
        until = now + int(seconds * 1e9)
        self.hurt = True
        self._world.note("pause", f"{self.name} {seconds:g} s")
        # who sleeps already goes on sleeping
        self.process.paused_until = max(self.process.paused_until, until)
        if with_clock:
            self._world.scheduler.at(until, lambda: self._stood(until - now))

    def _stood(self, span_ns: int) -> None:
        self.process.stood_ns += span_ns

    def awaited(self) -> list[tuple[str, str]]:
        """Runs and memberships of which it keeps results, though it has left them."""
        agent = self.agent
        return agent._left.memberships() if self.is_up and agent is not None else []

    def serves(self) -> set[str]:
        """The run that it serves, if it does."""
        agent = self.agent
        if not self.is_up or agent is None or agent._session is None:
            return set()
        return {agent._session.run}

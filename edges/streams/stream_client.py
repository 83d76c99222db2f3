"""Requests whose responses stream, for virtual users that are threads or coroutines.

They are made by the rules of osbench's own HTTP clients, with the same TLS sessions, observers and
counts, over connections that only streams use.
"""

from __future__ import annotations

import logging
import threading
import weakref
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any, NamedTuple

from osbench.common.errors import KindError, kind_of
from osbench.common.plugin.atomic import Recorder
from osbench.common.plugin.output_values import pack_output
from osbench.common.plugin.scenario import Scenario
from osbench.common.ports import clock
from osbench.edges.streams.event_times import BYTE_RATE, EVENT_RATE, MOST_ACTIONS
from osbench.edges.streams.stream_body import StreamBody
from osbench.edges.streams.stream_connections import (
    LoopStreamConnection,
    StreamConnection,
)
from osbench.edges.streams.stream_wish import StreamWish
from osbench.worker.engine.engine import IterationTimeout
from osbench.worker.http.addresses import shown_url
from osbench.worker.http.blocking_driver import drive
from osbench.worker.http.exchange_steps import Wrap
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.on_loop.loop_driver import drive_on_loop
from osbench.worker.http.own_connections import with_connections
from osbench.worker.http.ready_requests import ReadyRequest, beyond
from osbench.worker.http.socket_client import KEPT, ThreadConnections
from osbench.worker.http.user.request_base import AskedRequest
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse

LOG = logging.getLogger(__name__)


class WrongStream(KindError, ValueError):
    """Error of a stream that has ended otherwise than the task wants."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.kind = kind_of(str(self))


class _ReadyStream(NamedTuple):
    """A request that is about to be sent."""

    ready: ReadyRequest
    own: list[str]
    phases: ExchangePhases
    body: StreamBody


class _StreamPool(threading.local):
    def __init__(self) -> None:
        self.pool = ThreadConnections(KEPT)


class StreamClient:
    """Makes the requests of a workload whose responses stream, next to its other HTTP clients."""

    def __init__(self, clients: HttpClients) -> None:
        """`clients`: of the workload, whose rules, limits and header lines apply."""
        self._threads, self._loops = clients._of_threads, clients._of_loop
        self._by_thread = _StreamPool()
        #: Streams that ended with their iterations.
        self._ended = 0
        # for its connections only
        self._pools = LoopClient(clients._of_run, clients._bound)

    def blocking_answer(
        self, asked: AskedRequest, scenario: Scenario, cookies: Cookies
    ) -> RawResponse:
        """Make a request and read its stream; blocks this thread. See `answer`."""
        with self._reading(asked, scenario, cookies) as sent:
            steps = self._threads._rules.request(
                self._by_thread.pool,
                sent.ready,
                sent.own,
                sent.phases,
                keep_body=sent.body,  # type: ignore[arg-type] # `StreamParser` takes it
                recorder=scenario._recorder,
                cookies=cookies,
            )
            return drive(with_connections(steps, make=_blocking_connection))

    async def answer(
        self, asked: AskedRequest, scenario: Scenario, cookies: Cookies
    ) -> RawResponse:
        """Make a request and read its stream, event by event; return the response.

        `asked.options` has the mapping `stream`. `scenario` gets the events as actions, and the
        rates in charts. Raises TimeoutError and ConnectionError with the events and bytes so
        far, WrongStream if a stream ends otherwise than the task wants, and ValueError if only
        another HTTP client can make the request.
        """
        with self._reading(asked, scenario, cookies) as sent:
            steps = self._loops._rules.request(
                self._pools._pool(),
                sent.ready,
                sent.own,
                sent.phases,
                keep_body=sent.body,  # type: ignore[arg-type] # `StreamParser` takes it
                recorder=scenario._recorder,
                cookies=cookies,
            )
            turn = LoopStreamConnection.instead_of
            return await drive_on_loop(with_connections(steps, turn=turn))

    @contextmanager
    def _reading(
        self, asked: AskedRequest, scenario: Scenario, cookies: Cookies
    ) -> Iterator[_ReadyStream]:
        """Prepare a request; after the block judge its stream and add its rates to the charts."""
        options = dict(asked.options)
        wish = StreamWish.of(options.pop("stream"))
        ready = self._threads._ready.get(asked.method, asked.url, options)
        if ready is None:
            why = beyond(asked.method, asked.url, options)
            raise ValueError(
                f"{asked.method} {shown_url(asked.url)}: osbench's own HTTP client reads streams,"
                f" and it cannot send {why}; leave that out, or stream"
            )
        own = list(cookies.added_to(asked.own, ready.request))
        recorder = scenario._recorder
        body = StreamBody(wish, recorder, shows=self._threads._rules._observer is not None)
        phases = ExchangePhases(monotonic_ns())
        recorder.ask(phases)
        try:
            yield _ReadyStream(ready, own, phases, body)
        except (ConnectionError, TimeoutError) as error:
            if not body.begun:
                raise
            said = f"{error}; {body.so_far(clock.monotonic_ns())}"
            raise type(error)(said) from error
        except (CancelledError, IterationTimeout):
            if body.begun:
                self._note_end(asked.name, body.so_far(clock.monotonic_ns()))
            raise
        if body.times.are_sampled:
            name = f"{asked.name}: each time between events is recorded"
            scenario.verify(f"{name} (an iteration records {MOST_ACTIONS:,} actions)", False)
        if body.problem:
            raise WrongStream(asked.name, body.problem)
        _add_rates(scenario, asked.name, body)

    def _note_end(self, name: str, progress: str) -> None:
        """Log a stream that ended with its iteration, as by its timeout, if it is the 1st, 10th...

        The failure of the iteration is the engine's, which does not know streams.
        """
        with _LOCK:
            self._ended += 1
            number = self._ended
        if str(number).strip("0") == "1":
            LOG.info("%s: stream %d that ended with its iteration; %s", name, number, progress)


def _blocking_connection(step: Wrap) -> StreamConnection:
    return StreamConnection(step.socket, step.tls)


def _add_rates(scenario: Scenario, name: str, body: StreamBody) -> None:
    """Add the rates of a stream to the charts of the iteration; each has one rate for an action.

    Events per second are counted from the first to the last event, bytes from the sending of the
    request to the last byte. Several streams of one action are added up.
    """
    times = body.times
    if not body.begun:
        return
    kept: dict[str, dict[str, tuple[float, float]]] = vars(scenario).setdefault("_stream_rates", {})
    measured = (
        (EVENT_RATE, times.count - 1, times.last_ns - times.first_ns),
        (BYTE_RATE, body.body_bytes / 1000, body.arrived_ns - times.begun_ns),
    )
    for title, number, lasted_ns in measured:
        if number <= 0 or lasted_ns <= 0:
            continue
        rates = kept.setdefault(title, {})
        before, before_s = rates.get(name, (0.0, 0.0))
        rates[name] = before + number, before_s + lasted_ns / 1e9
    _put_charts(scenario, kept)


def _put_charts(scenario: Scenario, kept: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Replace the charts of rates among the outputs of the iteration."""
    outputs = scenario._outputs = scenario._outputs or []
    places: dict[str, int] = vars(scenario).setdefault("_stream_charts", {})
    for title, rates in kept.items():
        if title not in places:
            places[title] = len(outputs)
            outputs.append(b"")
        data = [[name, number / lasted_s] for name, (number, lasted_s) in rates.items()]
        chart = {"title": title, "chart_plugin": "StatsTable", "data": data}
        outputs[places[title]] = pack_output("additive", chart)


#: The clients of each workload of this process.
_MADE: weakref.WeakKeyDictionary[HttpClients, StreamClient] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


class ScenarioStreams:
    """The door of `self.http` to this edge, with the methods of `HttpClients` that it calls."""

    def __init__(self, clients: HttpClients, scenario: Scenario) -> None:
        """`clients`: of the workload. `scenario`: the iteration, which gets events and rates."""
        self._scenario = scenario
        with _LOCK:
            made = _MADE.get(clients)
            self._client = made or _MADE.setdefault(clients, StreamClient(clients))

    def answer(self, asked: AskedRequest, _: Recorder, cookies: Cookies) -> Any:
        """Return a coroutine that makes a request; see `StreamClient.answer`."""
        return self._client.answer(asked, self._scenario, cookies)

    def blocking_answer(self, asked: AskedRequest, _: Recorder, cookies: Cookies) -> RawResponse:
        """Make a request and return its response; blocks this thread."""
        return self._client.blocking_answer(asked, self._scenario, cookies)

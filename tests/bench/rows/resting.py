"""What OSProfiler costs a service: not there, disabled, enabled and at rest, and tracing."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import requests
from osprofiler import profiler, web

from bench.comparison import Comparison
from bench.copies import INSIDE, Like, copies
from bench.stage import BenchError, Stage
from bench.taking_turns import Request, Side, ask, median_interval, ratios, take_turns
from services import operations
from services.catalogue import admin
from services.lab import Lab
from services.temporary import temporary_lab

NEEDS = ("redis",)

#: Blocks of each service and round, and requests to each process before the first.
BLOCKS = 2
WARM_UP = 5
#: Messages in the queue that is read: nothing is added, so that the last request is as the first.
MESSAGES = 10

_WITHOUT = Like(launcher=(INSIDE / "serve_untraced.py",))
ABSENT, AGAIN, TRACED = "absent", "absent again", "traced"
#: The processes that take turns; the second tells how far two equal ones are apart.
ARMS: Mapping[str, Like] = {
    ABSENT: _WITHOUT,
    AGAIN: _WITHOUT,
    "disabled": Like(profiler=False),
    "enabled": Like(profiler=True),
    TRACED: Like(profiler=True),
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The request that a service is asked."""

    service: str
    title: str
    request: Request


@dataclass(frozen=True, kw_only=True)
class Round:
    """What was measured of one set of processes, by arm."""

    sides: Mapping[str, Side]
    #: Events that a signed request left in the trace store.
    events: Mapping[str, int]


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Zaqar, Glance and Keystone, new processes every round."""
    found: list[Comparison] = []
    with temporary_lab() as lab:
        operations.start(lab, ["zaqar", "glance"])
        for asked in _asked(lab):
            rounds = []
            for number in range(1, stage.rounds + 1):
                rounds.append(_round(lab, asked, stage.block_s * BLOCKS))
                say(f"round {number}/{stage.rounds}, {asked.service}: {_told(rounds[-1].sides)}")
            found += _comparisons(asked, rounds)
    return found


def _asked(lab: Lab) -> Iterator[Asked]:
    session = admin(lab)
    token = {"X-Auth-Token": str(session.get_token()), "Accept": "application/json"}
    zaqar = {**token, "Client-ID": str(uuid.uuid4())}
    messages = "/v2/queues/bench/messages"
    for _ in range(MESSAGES):
        told = requests.post(
            f"http://127.0.0.1:{lab.port('zaqar')}{messages}",
            json={"messages": [{"body": "a message of the bench", "ttl": 100_000}]},
            headers=zaqar,
            timeout=60,
        )
        told.raise_for_status()
    yield Asked(
        service="zaqar",
        title=f"Zaqar, {MESSAGES} messages",
        request=("GET", f"{messages}?echo=true&limit={MESSAGES}", None, zaqar),
    )
    yield Asked(
        service="glance",
        title="Glance, list of images",
        request=("GET", "/v2/images", None, token),
    )
    domain = {"name": lab.domain_name}
    user = {"name": lab.username, "domain": domain, "password": lab.password}
    scope = {"project": {"name": lab.project_name, "domain": domain}}
    identity = {"methods": ["password"], "password": {"user": user}}
    body = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
    yield Asked(
        service="keystone",
        title="Keystone, a token",
        request=("POST", "/v3/auth/tokens", body, {"Content-Type": "application/json"}),
    )


def _round(lab: Lab, asked: Asked, seconds: float) -> Round:
    with copies(lab, asked.service, ARMS) as running:
        sides = {
            name: Side(
                pid=copy.pid,
                port=copy.port,
                request=partial(_traced, asked, lab.hmac_key)
                if name == TRACED
                else partial(_plain, asked),
            )
            for name, copy in running.items()
        }
        take_turns([*sides.values()], seconds, WARM_UP)
        events = {name: _events(lab, asked, side) for name, side in sides.items()}
    if events[ABSENT] or events[AGAIN] or not events["enabled"]:
        raise BenchError(f"{asked.service} does not trace as it should: {events}")
    return Round(sides=sides, events=events)


def _plain(asked: Asked) -> Request:
    return asked.request


def _traced(asked: Asked, hmac_key: str, base_id: str | None = None) -> Request:
    """The same with headers of a trace of its own."""
    method, path, body, headers = asked.request
    profiler.clean()
    profiler.init(hmac_key, base_id=base_id)
    signed = web.get_trace_id_headers()
    profiler.clean()
    return method, path, body, {**headers, **signed}


def _events(lab: Lab, asked: Asked, side: Side) -> int:
    """Events that a signed request to a process leaves in the trace store."""
    trace = str(uuid.uuid4())
    ask(side.port, _traced(asked, lab.hmac_key, trace))
    with contextlib.closing(lab.traces.client()) as store:
        return int(store.llen(f"osprofiler_opt:{trace}"))


def _comparisons(asked: Asked, rounds: list[Round]) -> list[Comparison]:
    return [_comparison(asked, rounds, name) for name in list(ARMS)[1:]]


def _comparison(asked: Asked, rounds: list[Round], name: str) -> Comparison:
    pairs = [(one.sides[name], one.sides[ABSENT]) for one in rounds]
    cpu = [ratio for arm, absent in pairs for ratio in ratios(arm.cpu_ms, absent.cpu_ms)]
    waited = [ratio for arm, absent in pairs for ratio in ratios(arm.latency_ms, absent.latency_ms)]
    latency_ms = median(value for arm, _ in pairs for value in arm.latency_ms)
    return Comparison(
        row="resting",
        title=f"{asked.title}, OSProfiler {name}: CPU a request",
        unit="ms",
        osbench=tuple(median(arm.cpu_ms) for arm, _ in pairs),
        peer_name=f"OSProfiler {ABSENT}",
        peer=tuple(median(absent.cpu_ms) for _, absent in pairs),
        note=f"{len(cpu)} turns: CPU {_interval(cpu)}; latency {latency_ms:.2f} ms, "
        f"{_interval(waited)}; events of a signed request: {rounds[-1].events[name]}",
    )


def _interval(values: list[float]) -> str:
    bounds = median_interval(values)
    said = f"{bounds[0]:.3f} - {bounds[1]:.3f}" if bounds else "too few"
    return f"{median(values):.3f} x ({said})"


def _told(sides: Mapping[str, Side]) -> str:
    return ", ".join(f"{name} {median(side.cpu_ms):.3f} ms" for name, side in sides.items())

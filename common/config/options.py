"""Every option of osbench: its group, type, limits, default and help text."""

from __future__ import annotations

import math
from typing import Any

from oslo_config import cfg, types

from osbench.common.config.durations import seconds
from osbench.common.files.named_files import expanded
from osbench.common.network.server_address import AMQP, HTTP, REDIS, UNIX, parse_server_address

#: Sample rate that is computed from the plan of each workload.
AUTO = "auto"

#: Notes on criteria that are met too easily: there is none; `failure_rate` allows nearly all to
#: fail, or no criterion judges failures; a percentile is of too few iterations, or of the response
#: time of a closed load.
NO_CRITERION = "no-criterion"
FAILURES_ALLOWED = "failures-allowed"
FAILURES_UNJUDGED = "failures-unjudged"
FEW_ITERATIONS = "few-iterations"
CLOSED_RESPONSE = "closed-response"
CRITERIA_NOTES = (
    NO_CRITERION,
    FAILURES_ALLOWED,
    FAILURES_UNJUDGED,
    FEW_ITERATIONS,
    CLOSED_RESPONSE,
)

#: What sends the requests of clients of OpenStack.
FAST, REQUESTS = "fast", "requests"

#: Largest response of a service that is kept, MiB, if no setting says otherwise.
RESPONSE_LIMIT_MIB = 64


class _Number(types.Float):
    """Option type: a finite number; "nan" and "inf", which `float` accepts, raise ValueError."""

    def __call__(self, value: Any) -> float:
        number = self._read(value)
        if not math.isfinite(number):
            raise ValueError("must be a finite number")
        super().__call__(number)
        return number

    def _read(self, value: Any) -> float:
        try:
            return float(value)
        except ValueError:
            raise ValueError("must be a number") from None


class _Seconds(_Number):
    """Option type: seconds, given as a number or as a text such as 30s or 5m."""

    def _read(self, value: Any) -> float:
        try:
            return float(value)
        except ValueError:
            return seconds(value)


class _Share(_Number):
    """Option type: a fraction from 0 to 1, or the word `AUTO`."""

    def __call__(self, value: Any) -> float | str:  # type: ignore[override]  # or AUTO
        return AUTO if value == AUTO else super().__call__(value)


class _Whole(types.Integer):
    """Option type: an integer within its limits; other values raise ValueError."""

    def __call__(self, value: Any) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError("must be an integer") from None
        super().__call__(number)
        return number


class _Level(types.String):
    """Option type: a log level in upper or lower case, converted to upper case."""

    def __call__(self, value: Any) -> str:
        return str(super().__call__(str(value).upper()))


class _Path(types.String):
    """Option type: a path that is not empty; ~ is replaced by the home directory."""

    def __call__(self, value: Any) -> str:
        if not value:
            raise ValueError("must not be empty")
        return str(expanded(super().__call__(value)))


class _OptionalPath(_Path):
    """Option type: a path with ~ replaced by the home directory; "" if the value is empty."""

    def __call__(self, value: Any) -> str:
        return super().__call__(value) if value else ""


class Url(types.ConfigType):
    """Option type: the address of a server with a scheme of `schemes`; None if it is empty.

    Raises ValueError without the value, since it may contain a password.
    """

    def __init__(self, *schemes: str) -> None:
        super().__init__(type_name="URL")
        self.schemes = schemes

    def __call__(self, value: Any) -> str | None:
        if not value:
            return None
        parse_server_address(str(value), self.schemes)
        return str(value)

    def _formatter(self, value: Any) -> str:
        return str(value)


def _seconds(name: str, default: float, text: str, low: float = 0.0) -> cfg.Opt:
    return cfg.Opt(name, type=_Seconds(min=low, type_name="seconds"), default=default, help=text)


def _whole(name: str, default: int, text: str, low: int) -> cfg.Opt:
    return cfg.Opt(name, type=_Whole(min=low, type_name="number"), default=default, help=text)


_DEFAULT = [
    cfg.Opt(
        "data_dir",
        type=_Path(type_name="path"),
        default="~/.osbench",
        help="Directory of runs, deployment records and keys.",
    ),
    cfg.Opt(
        "log_level",
        type=_Level(choices=["DEBUG", "INFO", "WARNING", "ERROR"]),
        default="WARNING",
        help="Lowest level of log messages written to stderr.",
    ),
]

_BENCHMARK = [
    cfg.BoolOpt(
        "enable_profiler",
        default=True,
        help="Profile iterations with OSProfiler where the deployment has an HMAC key. "
        "A workload or a deployment may say otherwise.",
    ),
    cfg.Opt(
        "profiler_sample_rate",
        type=_Share(min=0.0, max=1.0, type_name="share"),
        default=1.0,
        help="Share of the iterations that are profiled, from 0 to 1, or auto: as many as [traces] "
        "tail_traces asks for and store_budget_mib allows. The iterations that are not profiled "
        "serve to measure the overhead of profiling.",
    ),
    _seconds(
        "lag_limit_s",
        0.1,
        "A run whose 99th percentile of start lag is above this many seconds counts as limited "
        "by the generator (exit code 4).",
    ),
    _seconds(
        "max_lag_s",
        1.0,
        "An arrival of an open runner that could not start within this many seconds of its "
        "scheduled time is dropped.",
    ),
    cfg.ListOpt(
        "silenced_notes",
        item_type=types.String(choices=list(CRITERIA_NOTES)),
        default=[],
        help="Notes on criteria that are met too easily, which `validate` and runs leave out: "
        f"any of {', '.join(CRITERIA_NOTES)}.",
    ),
]


def _file(name: str, text: str) -> cfg.Opt:
    return cfg.Opt(name, type=_OptionalPath(type_name="path"), default="", help=text)


_MESSAGING = [
    cfg.Opt(
        "redis_url",
        type=Url(*REDIS, "unix"),
        secret=True,
        help="Redis that coordinator and workers share, for example "
        "redis://user:password@host:6379/0. Without it a run starts its own server and workers "
        "on this machine (local mode).",
    ),
    cfg.Opt(
        "broker_url",
        type=Url(*REDIS, *UNIX, *AMQP),
        secret=True,
        help="Celery broker, for example amqp://user:password@host:5672/vhost. "
        "Without it redis_url is the broker.",
    ),
    _file(
        "tls_ca_file",
        "PEM file of the authorities that sign the certificates of Redis (rediss://) and of the "
        "broker (amqps://). By default the authorities of the system.",
    ),
    _file(
        "tls_certificate_file",
        "Certificate of this client for servers that ask for one, PEM; tls_key_file belongs to it.",
    ),
    _file("tls_key_file", "Its private key, PEM, without a passphrase. Mode 0600."),
    _seconds(
        "redis_timeout_s", 5.0, "Timeout of a connection to Redis and of each reply.", low=0.1
    ),
    _seconds(
        "patience_s",
        60.0,
        "Seconds that Redis or the broker may be unreachable under load; then the run ends with "
        "exit code 3 and reports the results so far.",
        low=1.0,
    ),
]

_SECURITY = [
    cfg.Opt(
        "key_file",
        type=_Path(type_name="path"),
        default="$data_dir/keys",
        help="File with the keys that sign messages and encrypt deployment records; create it "
        "with 'osbench-coord keys new' and copy it to every worker. Mode 0600.",
    ),
]


def _plugin_path() -> cfg.Opt:
    return cfg.ListOpt(
        "plugin_path",
        item_type=_Path(),
        default=[],
        help="Python files, or directories of them, to load plug-ins from; separated by commas.",
    )


def _metrics_address(what: str) -> cfg.Opt:
    return cfg.StrOpt(
        "metrics_address",
        default="",
        help=f"Port, or address:port, at which Prometheus reads metrics of {what}. Without an "
        "address it is 127.0.0.1; without a value there is no such endpoint.",
    )


_WORKER = [
    _whole(
        "processes",
        0,
        "Worker processes; 0 is one per core that the host or its container's CPU quota gives.",
        low=0,
    ),
    _whole(
        "virtual_users",
        256,
        "Threads of each worker process, each for a virtual user (a concurrent iteration). Virtual "
        "users of `async def` scenarios are coroutines: only memory bounds their number.",
        low=1,
    ),
    cfg.StrOpt("label", default="", help="Name shown for this host's workers."),
    _plugin_path(),
    _metrics_address("the worker processes of this host"),
    _whole(
        "max_stuck",
        64,
        "Number of threads stuck in timed-out iterations at which a process takes no more work.",
        low=1,
    ),
    _seconds(
        "drain_timeout_s",
        30.0,
        "Seconds that running iterations may take to end after a request to stop the worker.",
    ),
    _seconds(
        "coordinator_lost_s",
        60.0,
        "Seconds that a worker waits for a silent coordinator, or for `resume`. Then it gives back "
        "iterations that have not started and is free; its results wait for `resume`.",
        low=5.0,
    ),
    cfg.Opt(
        "spin_budget",
        type=_Number(min=0.0, max=1.0, type_name="share"),
        default=0.1,
        help="Share of a core, from 0 to 1, that a worker process may spend on being awake shortly "
        "before an arrival is scheduled, so that it starts some 50 us sooner. It is spent only "
        "while a core is idle; an arrival takes 50 to 100 us of it, so that 0.1 suffices for 1,000 "
        "arrivals per second. 0: never; advisable where a container has a limit of CPU.",
    ),
    cfg.BoolOpt(
        "realtime",
        default=False,
        help="Run worker processes under the kernel's policy SCHED_RR: no ordinary process of the "
        "host delays a start any more. It needs a limit of real-time priority of 1 or more, or "
        "the capability SYS_NICE (deploy/README.md), and cores to spare: a scenario that "
        "computes for long keeps everything else of the host waiting.",
    ),
    _seconds(
        "ship_interval_s", 0.2, "Longest time between two shipments of results, seconds.", low=0.01
    ),
    _whole(
        "spool_limit_mib",
        64,
        "MiB of unacknowledged results that are kept in memory; the rest goes to a file.",
        low=1,
    ),
    cfg.StrOpt(
        "openstack_transport",
        default=FAST,
        choices=[FAST, REQUESTS],
        help="HTTP client of keystoneauth1, and so of all OpenStack scenarios and of Rally's "
        "plug-ins. fast: osbench's own, and requests for calls that it does not support. "
        "requests: always requests.",
    ),
    _whole(
        "response_limit_mib",
        RESPONSE_LIMIT_MIB,
        "Largest response to a request of an iteration, as sent and as decoded, in MiB; the "
        "iteration fails on a larger one. A body that is not kept, as with `stream: true`, has "
        "no such limit.",
        low=1,
    ),
    _whole(
        "trace_expiry_s", 86400, "Seconds after which the spans of a trace expire in Redis.", low=1
    ),
    _whole(
        "trace_queue_spans",
        100000,
        "Spans that may wait to be written; further ones are dropped and counted.",
        low=1,
    ),
]

_COORDINATOR = [
    _seconds(
        "worker_lost_after_s",
        3.0,
        "Seconds without a sign of life after which a worker counts as lost; its lease to start "
        "iterations ends sooner. If it is heard again, it continues.",
        low=3.0,
    ),
    _seconds(
        "wait_for_workers_s",
        30.0,
        "Seconds that a run waits for Redis and the broker, and for enough free workers, before it "
        "gives up.",
    ),
    cfg.BoolOpt(
        "join",
        default=True,
        help="A run without --workers also takes workers that become free while its load runs. "
        "--join and --no-join of a run override this.",
    ),
    _plugin_path(),
    _metrics_address("a run in progress"),
]

_TRACES = [
    cfg.BoolOpt(
        "collect",
        default=True,
        help="Read the traces of a run at its end, keep some of them in the run directory, and "
        "delete the others from the trace store.",
    ),
    _whole(
        "keep_slowest",
        500,
        "Traces of the slowest iterations of a workload that are kept.",
        low=0,
    ),
    _whole(
        "keep_failed",
        200,
        "Traces of failed and timed-out iterations of a workload that are kept.",
        low=0,
    ),
    cfg.Opt(
        "keep_share",
        type=_Number(min=0.0, max=1.0, type_name="share"),
        default=0.05,
        help="Share of all other traces that is kept, sampled at random.",
    ),
    _whole(
        "keep_limit_mib",
        256,
        "MiB that the kept traces of a run may take, compressed. The random sample gets half.",
        low=1,
    ),
    _seconds(
        "late_s",
        5.0,
        "Seconds that a run waits at its end for services to write missing spans.",
    ),
    _whole(
        "expiry_s",
        86400,
        "Seconds after which kept traces expire in the trace store: services set no expiry.",
        low=1,
    ),
    _whole(
        "read_most",
        100000,
        "Most traces of a run that are read, a random sample, in addition to kept traces: "
        "100,000 take about a minute.",
        low=1,
    ),
    cfg.BoolOpt(
        "keep_arguments",
        default=False,
        help="Keep function arguments, SQL parameters, queries and error messages. They may "
        "contain passwords, tokens and user data.",
    ),
    cfg.ListOpt(
        "files",
        item_type=_Path(),
        default=[],
        help="Files with further spans of the traces: logs of trace points, or OTLP in JSON; "
        "separated by commas.",
    ),
    cfg.StrOpt(
        "otlp_listen",
        default="",
        help="Receive spans of services by OTLP/HTTP at ADDR:PORT during a run, as `run --otlp` "
        "does. Runs are traced without profiler_hmac_key and a trace store then.",
    ),
    cfg.StrOpt(
        "otlp_token",
        secret=True,
        default="",
        help="Bearer token of requests to otlp_listen, which an address that others reach needs. "
        "Services have it in OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN.",
    ),
    _file("otlp_certificate_file", "Certificate of otlp_listen, PEM; with it services use https."),
    _file("otlp_key_file", "Its private key, PEM, without a passphrase. Mode 0600."),
    _whole(
        "otlp_limit_mib",
        512,
        "MiB that spans received by OTLP, or queried, may take in the run directory, compressed, "
        "until the end of the run; further ones are refused and counted.",
        low=1,
    ),
    _seconds(
        "otlp_late_s",
        6.0,
        "Seconds that a run waits at its end for spans by OTLP, here or at query_url: SDKs send "
        "them every 5 s.",
    ),
    cfg.StrOpt(
        "query_url",
        secret=True,
        default="",
        help="Query the spans of services at the end of a run, as `run --traces-from` does: "
        "tempo+http://HOST:3200 or jaeger+http://HOST:16686, or with https. Runs are traced "
        "without profiler_hmac_key and a trace store then.",
    ),
    cfg.StrOpt(
        "query_headers",
        secret=True,
        default="",
        help="Headers of these queries, name=value,name=value, percent-encoded, such as "
        "Authorization=Bearer%20TOKEN,X-Scope-OrgID=TENANT.",
    ),
    _whole(
        "query_most",
        4000,
        "Approximate number of traces of a run that are queried: a random sample, and up to a "
        "quarter for kept traces.",
        low=1,
    ),
    _whole("query_parallel", 8, "Queries at a time.", low=1),
    _seconds(
        "query_limit_s", 120.0, "Seconds that all queries at the end of a run may take.", low=1.0
    ),
    _seconds(
        "query_late_s",
        30.0,
        "Seconds during which traces that are not there yet are queried again.",
    ),
    cfg.Opt(
        "tail_percent",
        type=_Number(min=0.0, max=99.99, type_name="percent"),
        default=99.0,
        help="Percentile above which profiler_sample_rate = auto wants traces.",
    ),
    _whole("tail_traces", 50, "Least number of traces it wants above that percentile.", low=1),
    _whole(
        "store_budget_mib",
        512,
        "MiB that the traces of a run may take in the trace store when the rate is auto.",
        low=1,
    ),
    _whole(
        "spans_per_trace",
        30,
        "Spans per trace that auto assumes, including spans of services.",
        low=1,
    ),
]

_METRICS = [
    cfg.Opt(
        "prometheus",
        type=Url(*HTTP),
        secret=True,
        help="Prometheus that watches the system under test, http://HOST:9090: counters of its "
        "hosts and services are read during a run and at its end, and shown next to latency.",
    ),
    cfg.StrOpt(
        "prometheus_headers",
        secret=True,
        default="",
        help="Headers of these queries, name=value,name=value, percent-encoded, such as "
        "Authorization=Bearer%20TOKEN,X-Scope-OrgID=TENANT.",
    ),
    _file(
        "queries",
        "YAML file with queries of further counters, a list of {name, query, kind, unit, "
        "host_label}; one with the name of a default query replaces it.",
    ),
    cfg.BoolOpt(
        "default_queries",
        default=True,
        help="Read the counters of node_exporter, mysqld_exporter, rabbitmq_prometheus and "
        "memcached_exporter, if present.",
    ),
    _seconds("late_s", 15.0, "Seconds that a run waits at its end for the last scrape."),
    _seconds("limit_s", 60.0, "Seconds that all queries of a run may take.", low=1.0),
]

#: The options by group, in the order in which the sample file shows them.
OPTIONS: dict[str, list[cfg.Opt]] = {
    "DEFAULT": _DEFAULT,
    "benchmark": _BENCHMARK,
    "messaging": _MESSAGING,
    "security": _SECURITY,
    "worker": _WORKER,
    "coordinator": _COORDINATOR,
    "traces": _TRACES,
    "metrics": _METRICS,
}

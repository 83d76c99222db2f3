"""Spans of a worker in a real Redis, read back with OSProfiler's own tools."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import logging
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import osprofiler.drivers.redis_driver  # makes its driver known
import osprofiler.notifier
import osprofiler.opts
import osprofiler.profiler
import pytest
import webob
import webob.dec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from osprofiler.drivers import base
from osprofiler.web import WsgiMiddleware

from osbench.common.plugin.atomic import ActionTimer, Names, Recorder
from osbench.common.plugin.scenario import Scenario
from osbench.worker.tracing import span_writer
from osbench.worker.tracing.profiling import Tracer, trace_headers
from osbench.worker.tracing.span_writer import SpanWriter
from osbench.worker.tracing.store_queue import StoreQueue
from osbench.worker.tracing.trace_ids import uuid_text
from servers import redis_server
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

NAMES = Names()


def iterate(tracer, number, work=lambda: None):
    """One traced iteration with one action; returns the trace id."""
    profiler = tracer.begin(number)
    scenario = Scenario({})
    scenario._recorder = Recorder(NAMES, profiler)
    with ActionTimer(scenario, "dummy.act"):
        work()
    return tracer.end(profiler, None)


def report(url, trace_id):
    """The trace as OSProfiler's driver reads it: names nested, and what the events say."""
    osprofiler.opts.set_defaults(osprofiler.opts.cfg.CONF)
    found = base.get_driver(url).get_report(uuid_text(trace_id))

    def nested(children):
        return {child["info"]["name"]: nested(child["children"]) for child in children}

    return nested(found["children"]), found


def events(client, trace_id):
    return [
        json.loads(raw) for raw in client.lrange(f"osprofiler_opt:{uuid_text(trace_id)}", 0, -1)
    ]


def finish(writer, spans):
    """Close the writer and check that every span was written."""
    writer.close(PATIENCE_S)
    assert writer.stats() == {"written": spans, "dropped": 0, "waiting": 0, "error": ""}


def test_osprofilers_own_driver_reads_the_trace(redis):
    writer = SpanWriter(redis.url, 600, 1000)
    tracer = Tracer("key", "run-7", 1.0, writer, 1, scenario="Dummy.dummy")

    trace_id = iterate(tracer, 3)
    finish(writer, 2)

    tree, found = report(redis.url, trace_id)
    assert tree == {"osbench.iteration": {"dummy.act": {}}}
    root = found["children"][0]["info"]
    start = root["meta.raw_payload.osbench.iteration-start"]
    assert start["info"]["run"] == "run-7"
    assert start["info"]["iteration"] == 3
    assert start["info"]["scenario"] == "Dummy.dummy"
    assert (root["project"], root["service"]) == ("osbench", "worker")
    assert 0 < redis.client().ttl(f"osprofiler_opt:{uuid_text(trace_id)}") <= 600


def test_the_osprofiler_command_shows_the_trace(redis):
    writer = SpanWriter(redis.url, 600, 1000)

    trace_id = iterate(Tracer("key", "r", 1.0, writer, 1), 1)
    finish(writer, 2)
    said = subprocess.run(
        [
            str(Path(sys.executable).with_name("osprofiler")),
            *("trace", "show", "--json", uuid_text(trace_id), "--connection-string", redis.url),
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    (root,) = json.loads(said.stdout)["children"]
    assert root["info"]["name"] == "osbench.iteration"
    assert [child["info"]["name"] for child in root["children"]] == ["dummy.act"]


def test_eight_threads_never_mix_their_traces(redis):
    writer = SpanWriter(redis.url, 600, 100_000)
    tracer = Tracer("key", "r", 1.0, writer, 1)
    numbers, done = iter(range(4000)), {}

    def live():
        for number in numbers:
            done[number] = iterate(tracer, number)

    threads = [threading.Thread(target=live) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    finish(writer, 8000)

    assert len(done) == len(set(done.values())) == 4000
    client = redis.client()
    assert client.dbsize() == 4000
    for number, trace_id in done.items():
        stop, inner_stop, inner_start, start = events(client, trace_id)
        assert [start["name"], inner_start["name"]] == [
            "osbench.iteration-start",
            "dummy.act-start",
        ]
        assert [stop["name"], inner_stop["name"]] == ["osbench.iteration-stop", "dummy.act-stop"]
        assert start["info"]["iteration"] == number
        assert start["trace_id"] == stop["trace_id"] == inner_start["parent_id"]
        assert inner_start["trace_id"] == inner_stop["trace_id"] != start["trace_id"]
        assert start["base_id"] == start["parent_id"] == uuid_text(trace_id)


def test_a_store_that_dies_costs_spans_and_no_iteration(redis):
    writer = SpanWriter(redis.url, 600, 500)
    tracer = Tracer("key", "r", 1.0, writer, 1)

    before = [iterate(tracer, number) for number in range(100)]
    wait_until(lambda: writer.stats()["written"] == 200)
    redis.kill()
    during = [iterate(tracer, number) for number in range(100, 1100)]
    wait_until(lambda: writer.stats()["error"])
    lost = writer.stats()["dropped"]
    redis.restart()
    wait_until(lambda: writer.stats()["waiting"] == 0)
    after = iterate(tracer, 2000)
    writer.close(PATIENCE_S)

    stats = writer.stats()
    assert len({*before, *during, after}) == 1101
    assert lost >= 1500
    assert stats["written"] + stats["dropped"] == 2202
    assert stats["dropped"] >= lost
    assert report(redis.url, after)[0] == {"osbench.iteration": {"dummy.act": {}}}


def test_a_store_that_hangs_costs_spans_and_no_iteration(redis):
    writer = SpanWriter(redis.url, 600, 500)
    tracer = Tracer("key", "r", 1.0, writer, 1)
    iterate(tracer, 0)
    wait_until(lambda: writer.stats()["written"] == 2)

    redis.pause()
    ids = [iterate(tracer, number) for number in range(1, 1001)]
    writer.close(0.5)
    redis.resume()

    assert len(set(ids)) == 1000
    assert writer.stats()["written"] == 2
    assert writer.stats()["dropped"] == 2000


def test_a_connection_closed_while_idle_loses_nothing(redis):
    writer = SpanWriter(redis.url, 600, 1000)
    tracer = Tracer("key", "r", 1.0, writer, 1)
    iterate(tracer, 1)
    wait_until(lambda: writer.stats()["written"] == 2)

    client = redis.client()
    client.client_kill_filter(_type="normal", skipme=True)
    trace_id = iterate(tracer, 2)
    writer.close(PATIENCE_S)

    assert writer.stats()["written"] == 4
    assert writer.stats()["dropped"] == 0
    assert report(redis.url, trace_id)[0] == {"osbench.iteration": {"dummy.act": {}}}


def test_a_wrong_password_is_said_and_not_repeated(redis, caplog):
    url = redis.url.replace("functional", "hunter2")
    writer = SpanWriter(url, 600, 1000)

    with caplog.at_level(logging.DEBUG):
        trace_id = iterate(Tracer("s3cret-key", "r", 1.0, writer, 1), 1)
        wait_until(lambda: writer.stats()["error"])
        writer.close(5.0)

    assert len(trace_id) == 16
    assert writer.stats()["dropped"] == 2
    assert "AUTH is refused: WRONGPASS" in writer.stats()["error"]
    assert "WRONGPASS" in caplog.text
    for secret in ("hunter2", "s3cret-key", "functional"):
        assert secret not in caplog.text + str(writer.stats())


def test_a_full_store_is_said_and_its_refusals_are_counted(redis):
    redis.client().config_set("maxmemory", "1")
    writer = SpanWriter(redis.url, 600, 1000)

    iterate(Tracer("key", "r", 1.0, writer, 1), 1)
    wait_until(lambda: writer.stats()["dropped"] == 2)
    redis.client().config_set("maxmemory", "0")
    iterate(Tracer("key", "r", 1.0, writer, 1), 2)
    writer.close(5.0)

    assert writer.stats()["written"] == writer.stats()["dropped"] == 2
    assert "OOM" in writer.stats()["error"]


def test_what_comes_between_the_last_look_and_the_close_is_written(redis, monkeypatch):
    put, closing = threading.Event(), threading.Event()
    queues = []

    class Hesitant(StoreQueue):
        """Sees nothing waiting, and continues when a trace has arrived and the end is requested."""

        def _take(self):
            queues.append(self)
            batch = super()._take()
            if not batch and not put.is_set():
                put.set()
                closing.wait(PATIENCE_S)
            return batch

    monkeypatch.setattr(span_writer, "StoreQueue", Hesitant)
    writer = SpanWriter(redis.url, 600, 1000)
    assert put.wait(PATIENCE_S)
    iterate(Tracer("key", "r", 1.0, writer, 1), 1)
    closer = threading.Thread(target=writer.close, args=(PATIENCE_S,))
    closer.start()
    wait_until(lambda: queues[0]._stop_by is not None)
    closing.set()
    closer.join()

    assert writer.stats() == {"written": 2, "dropped": 0, "waiting": 0, "error": ""}


def test_another_database_and_a_user_of_the_store(redis):
    redis.client().acl_setuser(
        "tracer",
        enabled=True,
        passwords=["+pw"],
        keys=["osprofiler_opt:*"],
        commands=["+lpush", "+expire", "+select"],
    )
    writer = SpanWriter(f"redis://tracer:pw@127.0.0.1:{redis.port}/3", 600, 1000)

    trace_id = iterate(Tracer("key", "r", 1.0, writer, 1), 1)
    finish(writer, 2)

    assert report(redis.url.replace("/0", "/3"), trace_id)[0]


def test_a_unix_socket():
    with redis_server(password="pw", unixsocket=True) as server:
        writer = SpanWriter(server.url, 600, 1000)

        trace_id = iterate(Tracer("key", "r", 1.0, writer, 1), 1)
        finish(writer, 2)

        assert len(events(server.client(), trace_id)) == 4


def test_tls_with_the_stores_certificate_checked(redis, tmp_path):
    with tls_proxy(redis.port, tmp_path) as (port, authority):
        trusting = f"rediss://:functional@127.0.0.1:{port}/0?ssl_ca_certs={authority}"
        writer = SpanWriter(trusting, 600, 1000)
        trace_id = iterate(Tracer("key", "r", 1.0, writer, 1), 1)
        finish(writer, 2)

        careful = SpanWriter(f"rediss://:functional@127.0.0.1:{port}/0", 600, 1000)
        iterate(Tracer("key", "r", 1.0, careful, 1), 1)
        careful.close(5.0)

    assert len(events(redis.client(), trace_id)) == 4
    assert careful.stats()["dropped"] == 2
    assert "CERTIFICATE_VERIFY_FAILED" in careful.stats()["error"]


def test_spans_of_a_traced_service_hang_below_the_action(redis):
    @webob.dec.wsgify
    def service(request):
        with osprofiler.profiler.Trace("db"):
            return webob.Response(text="ok")

    app = WsgiMiddleware(service, hmac_keys="old, key", enabled=True)
    osprofiler.opts.set_defaults(osprofiler.opts.cfg.CONF)
    driver = base.get_driver(redis.url, project="web", service="api")

    def call():
        headers = trace_headers()
        # the service has its own threads, without the profiler of the virtual user
        thread = threading.Thread(
            target=lambda: webob.Request.blank("/", headers=headers).get_response(app)
        )
        thread.start()
        thread.join()

    writer = SpanWriter(redis.url, 600, 1000)
    before = osprofiler.notifier.get()
    osprofiler.notifier.set(driver.notify)
    try:
        trace_id = iterate(Tracer("key", "r", 1.0, writer, 1), 1, call)
    finally:
        osprofiler.notifier.set(before)
    finish(writer, 2)

    tree, _ = report(redis.url, trace_id)
    assert tree == {"osbench.iteration": {"dummy.act": {"wsgi": {"db": {}}}}}
    assert redis.client().ttl(f"osprofiler_opt:{uuid_text(trace_id)}") > 0


def wait_until(ready):
    """Wait for the writer's thread; a state that never comes fails by the test's timeout."""
    pause = threading.Event()
    while not ready():
        pause.wait(0.01)


@contextlib.contextmanager
def tls_proxy(target, folder):
    """TLS in front of a port, with its own certificate; yields its port and certificate."""
    certificate, key = self_signed(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = socket.create_server(("127.0.0.1", 0))

    def pump(source, sink):
        with contextlib.suppress(OSError):
            while received := source.recv(65536):
                sink.sendall(received)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(plain):
        with (
            plain,
            contextlib.suppress(OSError),
            context.wrap_socket(plain, server_side=True) as outside,
            socket.create_connection(("127.0.0.1", target)) as inside,
        ):
            back = threading.Thread(target=pump, args=(inside, outside))
            back.start()
            pump(outside, inside)
            back.join()

    def accept():
        with contextlib.suppress(OSError):
            while True:
                # one connection after the other is enough here
                serve(listening.accept()[0])

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listening.getsockname()[1], certificate
    finally:
        # wakes the thread that accepts, which closing alone does not
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()


def self_signed(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "trace store")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"

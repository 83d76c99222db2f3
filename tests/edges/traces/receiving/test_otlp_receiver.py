"""The receiver as a run has it: a process that listens, and ends with the run."""

from __future__ import annotations

import os
import signal
import ssl
import urllib.error
import urllib.request

import psutil
import pytest

from helpers.certificates import self_signed
from helpers.otlp_requests import request_of
from osbench.common.config import config
from osbench.common.errors import UsageError
from osbench.common.values.trace_mark import TraceMark
from osbench.edges.traces.receiving import otlp_receiver
from osbench.edges.traces.receiving.otlp_receiver import OtlpReceiver, Received
from osbench.edges.traces.sources.span_spool import SpooledTraces
from servers import free_port

OWN = [TraceMark("run-1").put(bytes([number]) * 16) for number in range(3)]


@pytest.fixture
def conf(tmp_path):
    return config.load([])


@pytest.fixture
def started(conf, tmp_path):
    """Starts receivers, and ends them."""
    found = []

    def start(listen="127.0.0.1:0", **options):
        for name, value in options.items():
            conf.set_override(name, value, "traces")
        receiver = OtlpReceiver(listen, conf)
        found.append(receiver)
        receiver.start("run-1", tmp_path)
        return receiver

    yield start
    for one in found:
        one.stop()


def post(url, traces=OWN, context=None, **headers):
    body = request_of(traces).SerializeToString()
    named = {"Content-Type": "application/x-protobuf", **headers}
    request = urllib.request.Request(f"{url}/v1/traces", body, named)
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        return answer.status


def test_spans_are_on_disk_when_the_receiver_stores_no_more_and_later_ones_are_late(
    started, tmp_path
):
    receiver = started()

    assert post(receiver.url, [*OWN, os.urandom(16)]) == 200
    receiver.stop_storing()
    traces = {trace.trace_id for trace in SpooledTraces(tmp_path / "traces" / "received")}
    assert post(receiver.url, OWN[:1]) == 200
    received = receiver.stop()

    assert traces == {trace.hex() for trace in OWN}
    assert received.notes() == [
        "3 spans of this run received by OTLP; 1 of other traces not kept, 1 too late ([traces]"
        " otlp_late_s)"
    ]
    assert receiver.stop() == Received(counts={})
    with pytest.raises(urllib.error.URLError):
        post(receiver.url)


def test_tls_and_a_token_guard_what_others_reach(started, tmp_path):
    certificate = str(self_signed(tmp_path))
    port = free_port()
    receiver = started(
        f"0.0.0.0:{port}",
        otlp_token="s3cret",
        otlp_certificate_file=certificate,
        otlp_key_file=certificate,
    )
    trusted = ssl.create_default_context(cafile=certificate)
    url = f"https://127.0.0.1:{port}"

    assert receiver.url == f"https://0.0.0.0:{port}"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        post(url, context=trusted)
    assert post(url, context=trusted, Authorization="Bearer s3cret") == 200
    (process,) = [one for one in psutil.Process().children() if "receiver" in str(one.cmdline())]
    assert "s3cret" not in str(process.cmdline()) + str(process.environ())
    assert receiver.stop().notes() == [
        "3 spans of this run received by OTLP",
        "OTLP: 1 request without the token of [traces] otlp_token",
    ]


def test_what_cannot_work_is_refused_before_anything_begins(conf, monkeypatch):
    with pytest.raises(UsageError, match=r"set \[traces\] otlp_token"):
        OtlpReceiver("0.0.0.0:4318", conf)
    receiver = OtlpReceiver("127.0.0.1:0", conf)
    port = receiver.url.rpartition(":")[2]
    with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
        OtlpReceiver(f"127.0.0.1:{port}", conf)
    receiver.stop()
    monkeypatch.setattr(otlp_receiver, "_has_protobuf", lambda: False)
    with pytest.raises(UsageError, match=r"osbench\[otlp\]"):
        OtlpReceiver("127.0.0.1:0", conf)
    monkeypatch.undo()
    conf.set_override("otlp_key_file", "/key.pem", "traces")
    with pytest.raises(UsageError, match="belong together"):
        OtlpReceiver("127.0.0.1:0", conf)


def test_a_certificate_that_cannot_be_used_is_told(started, tmp_path):
    (tmp_path / "none.pem").write_text("no certificate")

    with pytest.raises(UsageError, match=r"cannot receive OTLP at https://127.0.0.1:\d+: "):
        started(
            otlp_certificate_file=str(tmp_path / "none.pem"),
            otlp_key_file=str(tmp_path / "none.pem"),
        )


def test_a_receiver_that_was_killed_is_told_in_the_report(started):
    receiver = started()
    post(receiver.url)
    receiver.stop_storing()
    (process,) = [one for one in psutil.Process().children() if "receiver" in str(one.cmdline())]
    process.send_signal(signal.SIGKILL)

    received = receiver.stop()

    assert received.counts["accepted"] == 3
    assert received.notes()[1] == ("OTLP: the receiver ended before the run did, with exit code -9")

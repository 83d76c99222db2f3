"""The OTLP receiver of a run, seen from the coordinator: starts, queries and ends its process."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import select
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench.common.errors import UsageError
from osbench.common.network.address import Address
from osbench.common.network.listen_address import parse_listen_address
from osbench.coordinator.formatting import count
from osbench.edges.traces.receiving.receiver_task import ReceiverTask

LOG = logging.getLogger(__name__)

#: The file of its spans within the folder `traces` of the run directory.
SPOOL = "received"
#: Longest wait for a response of the process, seconds.
ANSWER_S = 30.0
_MODULE = "osbench.edges.traces.receiving.receiver_process"


@dataclass(frozen=True, kw_only=True)
class Received:
    """Result of a receiver that has ended: its counts of spans and requests, and its failure.

    `counts` has the fields of `ReceivedCounts`; it is empty if nothing was received.
    """

    counts: dict[str, int]
    #: Reason if spans could not be written, or if the receiver ended before the run; else "".
    failure: str = ""

    def notes(self) -> list[str]:
        """Return messages for the report: spans received and not kept, and why; the failure."""
        found, rest = self.counts, []
        for name, words in _DROPPED:
            if found.get(name):
                rest.append(f"{count(found[name])} {words}")
        text = f"{count(found.get('accepted', 0), 'span')} of this run received by OTLP"
        notes = [f"{text}; {', '.join(rest)}" if rest else text]
        for name, words in _REQUESTS:
            if found.get(name):
                notes.append(f"OTLP: {count(found[name], 'request')} {words}")
        if self.failure:
            notes.append(f"OTLP: {self.failure}")
        return notes


_DROPPED = (
    ("strangers", "of other traces not kept"),
    ("malformed", "malformed"),
    ("refused", "refused, for which there was no room ([traces] otlp_limit_mib)"),
    ("late", "too late ([traces] otlp_late_s)"),
)
_REQUESTS = (
    ("malformed_requests", "that could not be read"),
    ("deferred_requests", "sent back for a retry, since too many spans were waiting"),
    ("unauthorized_requests", "without the token of [traces] otlp_token"),
    ("other_signals", "with metrics or logs, which are not kept"),
)


class OtlpReceiver:
    """Receives spans of services by OTLP during a run, in a process from `start` to `stop`.

    Used in the coordinator, which only starts, queries and ends the process.
    """

    def __init__(self, listen: str, conf: cfg.ConfigOpts) -> None:
        """Check the settings of `[traces]` and bind the address `listen` (ADDR:PORT).

        Raises UsageError if the settings or the address cannot be used.
        """
        host, port = parse_listen_address(listen)
        address = Address(host=host, port=port, fixed=True)
        traces = conf.traces
        self._task = ReceiverTask(
            run_id="",
            path="",
            limit_bytes=traces.otlp_limit_mib << 20,
            token=str(traces.otlp_token or ""),
            certificate=traces.otlp_certificate_file,
            key=traces.otlp_key_file,
            everything=bool(traces.keep_arguments),
        )
        _check(address, self._task)
        self._socket = address.bind()
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        #: Value for OTEL_EXPORTER_OTLP_ENDPOINT of services.
        self.url = f"{'https' if self._task.certificate else 'http'}://{shown}:{port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._last: dict[str, Any] = {}

    def start(self, run_id: str, run: Path) -> None:
        """Start the process, which writes spans to the folder `traces` of the run directory `run`.

        Creates the folder, and closes the socket in this process. Returns when the process is ready
        for requests. Raises UsageError if it does not start, OSError.
        """
        folder = run / "traces"
        folder.mkdir(mode=0o700, exist_ok=True)
        task = replace(self._task, run_id=run_id, path=str((folder / SPOOL).absolute()))
        descriptor = self._socket.fileno()
        self._process = subprocess.Popen(  # noqa: S603 - our own module, run by our own interpreter
            [sys.executable, "-P", "-m", _MODULE, str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=(descriptor,),
            # Ctrl-C at the terminal is for the coordinator
            start_new_session=True,
        )
        self._socket.close()
        # not as arguments, which others on this host can read
        response = self._ask(json.dumps(asdict(task)))
        if "ready" not in response:
            self.stop()
            why = response.get("error") or "its process has ended"
            raise UsageError(
                f"cannot receive OTLP at {self.url}: {why}; correct this, or give another address"
            )

    def stop_storing(self) -> None:
        """Make the process write all spans received so far to disk; later spans count as too late.

        Waits for its response, at most `ANSWER_S` seconds.
        """
        self._last = self._ask("stop storing") or self._last

    def stop(self) -> Received:
        """End the process, by force after `ANSWER_S` seconds; return its counts.

        Without `start`, or if called again, only closes the socket; the counts are empty. If the
        process had ended before or does not respond, `failure` says so with its exit code.
        """
        process, self._process = self._process, None
        self._socket.close()
        if process is None:
            return Received(counts={})
        last = _send_command(process, "counts")
        response = last or self._last
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.close()
            process.wait(ANSWER_S)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        process.stdout.close()
        failure = str(response.get("failure") or "")
        if not last:
            failure = f"the receiver ended before the run did, with exit code {process.returncode}"
        counts = {name: value for name, value in response.items() if isinstance(value, int)}
        return Received(counts=counts, failure=failure)

    def _ask(self, line: str) -> dict[str, Any]:
        return _send_command(self._process, line) if self._process is not None else {}


def _send_command(process: subprocess.Popen[bytes], line: str) -> dict[str, Any]:
    """Write a command to the process and return its response, a JSON object.

    Returns {} if the process has ended, responds in another form, or does not respond within
    `ANSWER_S` seconds (logged).
    """
    assert process.stdin is not None and process.stdout is not None
    response = b""
    deadline = time.monotonic() + ANSWER_S
    try:
        process.stdin.write(line.encode() + b"\n")
        while not response.endswith(b"\n"):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                LOG.warning("the receiver of OTLP does not respond")
                return {}
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                return {}
            response += part
        found: dict[str, Any] = json.loads(response)
    except (OSError, ValueError):
        return {}
    return found


def _has_protobuf() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.proto") is not None
    except ModuleNotFoundError:
        return False


def _check(address: Address, task: ReceiverTask) -> None:
    """Raise UsageError if the receiver cannot work with its settings, or would be open to all.

    It needs the package opentelemetry-proto, a token if other hosts can reach `address`, and both
    files for TLS or neither.
    """
    if not _has_protobuf():
        raise UsageError("to receive OTLP install opentelemetry-proto: pip install 'osbench[otlp]'")
    if not address.loopback and not task.token:
        raise UsageError(
            f"to receive OTLP at {address.host}, which others can reach, set [traces] otlp_token"
            " (or OS_TRACES__OTLP_TOKEN): services send it in OTEL_EXPORTER_OTLP_HEADERS"
        )
    if bool(task.certificate) != bool(task.key):
        raise UsageError(
            "[traces] otlp_certificate_file and otlp_key_file belong together; set both"
        )

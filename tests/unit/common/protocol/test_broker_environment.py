"""Neither an application nor an import takes anything from the environment of Celery and kombu."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from osbench.common.config.foreign_environment import (
    drop_foreign_variables,
    ignored_variables_note,
)
from osbench.common.protocol import broker

FOREIGN = {
    "CELERY_BROKER_READ_URL": "redis://foreign:1/5",
    "CELERY_BROKER_URL": "redis://foreign:1/5",
    "CELERY_BROKER_WRITE_URL": "redis://foreign:1/5",
    "CELERY_CONFIG_MODULE": "no.such.module",
    "CELERY_LOADER": "no.such:Loader",
    "CELERY_RESULT_BACKEND": "redis://foreign:1/6",
}

# of the terminal, and harmless
TERMINAL = {"ITERM_PROFILE", "TERM"}

# which variables the packages read while the modules of a worker process are imported
PROGRAM = """
import json, os, sys
read, plain = set(), os.environ.__class__.__getitem__
names = ("celery", "kombu", "billiard", "amqp", "vine")
packages = tuple(f"/site-packages/{one}/" for one in names)
def spy(self, name):
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.endswith(("os.py", "_collections_abc.py")) or (
        frame and frame.f_code.co_filename.startswith("<frozen")
    ):
        frame = frame.f_back
    if frame and any(one in frame.f_code.co_filename for one in packages):
        read.add(name)
    return plain(self, name)
os.environ.__class__.__getitem__ = spy
import osbench.worker.process.process, osbench.coordinator.load.transport.publisher
print(json.dumps(sorted(read)))
"""


def test_an_application_has_the_broker_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)

    app = broker.application("redis://ours:2/3")

    for connection in (app.connection_for_read(), app.connection_for_write()):
        assert (connection.hostname, connection.port, connection.virtual_host) == ("ours", 2, "3")
    assert app.pool.acquire(block=False).hostname == "ours"
    assert type(app.backend).__name__ == "DisabledBackend"
    assert app.conf.task_serializer == "msgpack"


def test_a_note_names_the_ignored_variables() -> None:
    note = ignored_variables_note({**FOREIGN, "CELERY_LOADER": "", "KOMBU_LOG_DEBUG": "1"})

    assert "CELERY_BROKER_URL" in note
    assert "CELERY_LOADER" not in note
    assert "foreign" not in note
    assert ignored_variables_note({"HOME": "/"}) == ""


def test_variables_that_packages_read_at_import_are_dropped_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    names = set(json.loads(done.stdout)) - TERMINAL
    environ = {**dict.fromkeys(names, "nonsense"), "HOME": "/", "CELERY_BROKER_URL": "redis://x"}

    drop_foreign_variables(environ)

    assert "PICKLE_PROTOCOL" in names
    assert environ == {"HOME": "/", "CELERY_BROKER_URL": "redis://x"}

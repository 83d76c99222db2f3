"""Names and marks that are not text, and texts with escape sequences: all is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from helpers.arena import Arena, arena, wait_until
from helpers.attacker import JUNK

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

SCENARIO = '''
"""A scenario whose errors hold escape sequences."""

from osbench.plugin import scenario


class Rude(scenario.Scenario):
    """Raises what a terminal would obey."""

    @scenario.configure(name="Rude.fail")
    def fail(self) -> None:
        """Fail."""
        raise ValueError("red \\x1b[31m title \\x1b]0;x\\x07 \\x9b31m")
'''


@pytest.fixture
def pair() -> Iterator[Arena]:
    with arena() as found:
        found.start_hosts(2)
        yield found


def spoil(found: Arena) -> None:
    """Put names and marks that are not text wherever a coordinator or a worker looks."""
    with contextlib.closing(found.fragile.client()) as client:
        for key in client.scan_iter("osbench:worker:*"):
            name = key.removeprefix(b"osbench:worker:")
            client.set(b"osbench:busy:" + name, JUNK, ex=3)
            client.set(b"osbench:offer:" + name, JUNK, ex=3)
    found.attacker.add_junk()


def test_workers_and_runs_survive_names_that_are_no_text(pair: Arena) -> None:
    spoil(pair)

    listed = pair.site.coord("workers")
    load = pair.start_load(
        {"constant": {"times": 300, "concurrency": 4}}, "--wait-for-workers", "90"
    )
    pair.await_started(load)
    spoil(pair)
    shown = [pair.site.coord(*one) for one in (("workers",), ("status",), ("runs", "list"))]

    assert pair.finish(load) == 0, load.command.said()
    assert pair.exact(load)["ok"] == 300
    for done in (listed, *shown):
        assert done.code == 0, done.err
        assert "\x1b" not in done.out + done.err
    assert wait_until(pair.are_free)


def test_errors_with_escape_sequences_are_shown_escaped(pair: Arena) -> None:
    plugin = pair.site.write("rude/rude.py", SCENARIO)
    for host in list(pair.hosts):
        host.supervisor.process.terminate()
        host.supervisor.process.wait()
    host = pair.start_host("--plugin-path", str(plugin))
    pair.await_free()
    task = pair.site.task(
        {"scenario": {"Rude.fail": {}}, "runner": {"constant": {"times": 5, "concurrency": 1}}}
    )

    ran = pair.site.coord("run", task, "--plugin-path", str(plugin))

    assert ran.code == 1, ran.err
    commands = (("results",), ("results", "--csv"), ("status",), ("runs", "list"))
    for done in (ran, *(pair.site.coord(*one) for one in commands)):
        assert not {"\x1b", "\x9b", "\x07"} & set(done.out + done.err), (done.out, done.err)
    assert "red" in ran.out
    assert host.is_up
    assert pair.said_wrong() == []

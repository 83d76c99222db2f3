"""Names, marks and messages that steer a terminal are shown escaped, and nothing dies of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import msgpack
import pytest

from helpers.runs import Cluster, Finished, Site, site
from osbench.common.protocol import redis_keys
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import redis_server

pytestmark = pytest.mark.functional

#: Clears the screen, sets the title, reverses what follows.
EVIL = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202egnirts\u2066"
SHOWN = r"\x1b[2J\x1b]0;owned\x07 \x9b31m \u202egnirts\u2066"
PLUGIN = f"""
from osbench.plugin import atomic, scenario

EVIL = {EVIL!a}


class Evil(scenario.Scenario):
    def run(self):
        with atomic.ActionTimer(self, "step " + EVIL):
            pass
        self.add_output(
            additive={{"title": EVIL, "chart_plugin": "Pie", "data": [[EVIL, 1]]}},
            complete={{"title": EVIL, "chart_plugin": "TextArea", "data": [EVIL]}},
        )
        raise type("Wrong" + EVIL, (Exception,), {{}})(EVIL + "\\n second line")


Evil = scenario.configure(name="Evil.fail")(Evil)
"""


@pytest.fixture(scope="module")
def evil() -> Iterator[tuple[Cluster, list[Finished]]]:
    """A worker whose label steers terminals, and two runs whose scenario, title and tag do."""
    with redis_server(password="functional") as redis, site() as here:
        here.write("evil.py", PLUGIN)
        cluster = Cluster(here, redis)
        cluster.workers.append(
            here.begin(
                "osbench-worker",
                *("--processes", "1", "--label", f"rack {EVIL}", "--plugin-path", str(here.home)),
            )
        )
        cluster.await_idle(1)
        run = ("run", "--plugin-path", str(here.home), "--tag", "evil \x1b[2J", evil_task(here))
        yield cluster, [here.coord(*run) for _ in range(2)]


def steering(done: Finished) -> set[str]:
    """What of the output of a command would steer a terminal."""
    return steering_in(done.out + done.err)


def steering_in(text: str) -> set[str]:
    return {
        char
        for char in text
        if (char not in "\t\n" and unicodedata.category(char) in ("Cc", "Cs"))
        or char in "\u202e\u2066"
    }


def evil_task(here: Site) -> str:
    task = here.task(
        {
            "title": f"sub {EVIL}",
            "scenario": {"Evil.fail": {}},
            "runner": {"constant": {"times": 20, "concurrency": 1}},
            "sla": {"failure_rate": {"max": 0}},
        }
    )
    path = here.home / "task.json"
    path.write_text(path.read_text().replace('"A test"', '"A test \\u001b[2J\\u202e"'))
    return task


def test_what_a_scenario_raises_steers_no_terminal(
    evil: tuple[Cluster, list[Finished]],
) -> None:
    cluster, runs = evil
    here, run = cluster.site, runs[-1]
    commands = [
        ("status",),
        ("status", "--json"),
        ("runs", "list"),
        ("runs", "show"),
        ("workers",),
        ("results", "last"),
        ("results", "last", "--csv"),
        ("results", "last", "--json"),
        ("results", "last", "--outputs"),
        ("results", "last", "--outputs", "1"),
        ("validate", "--plugin-path", str(here.home), str(here.home / "task.json")),
    ]

    printed = {command: here.coord(*command) for command in commands}

    assert run.code == 1, run.err
    assert SHOWN in run.out
    assert SHOWN in printed["results", "last", "--csv"].out
    assert SHOWN in printed["workers",].out
    assert steering(run) == set()
    assert {command: steering(done) for command, done in printed.items() if steering(done)} == {}


def test_what_a_scenario_raises_is_shown_as_it_is_on_pages(
    evil: tuple[Cluster, list[Finished]],
) -> None:
    here = evil[0].site
    names = [one.path.name for one in RunDirectory.all(str(here.data))]
    commands = [("report", names[0]), ("compare", *names), ("trends",)]

    pages = []
    for number, command in enumerate(commands):
        page = here.home / f"page-{number}.html"
        here.coord(*command, "--html", str(page))
        pages.append(page.read_text("utf-8"))

    assert [steering_in(page) for page in pages] == [set(), set(), set()]
    assert SHOWN in pages[0]
    # the comparison names scenarios, not what they raise
    assert all(r"evil \x1b[2J" in page for page in (pages[0], pages[2]))


def test_the_log_of_a_worker_steers_no_terminal(evil: tuple[Cluster, list[Finished]]) -> None:
    (worker,) = evil[0].workers

    worker.process.terminate()
    log = worker.finish()

    assert SHOWN in log.err
    assert steering(log) == set()


def test_errors_that_repeat_what_was_given_steer_no_terminal(guest: Site) -> None:
    bad = guest.write("bad.yaml", 'version: 2\nsubtasks: []\n"\\e[2J\\u202e": 1\n')
    commands = [
        ("run", str(bad)),
        ("run", f"{EVIL}.yaml"),
        ("status", EVIL),
        (EVIL,),
        ("results", "last", f"--{EVIL}"),
        ("deployment", "use", EVIL),
        ("runs", "prune", "--older-than", EVIL),
    ]

    printed = {command: guest.call(*command) for command in commands}

    assert all(done.code == 2 for done in printed.values()), printed
    assert {command: steering(done) for command, done in printed.items() if steering(done)} == {}


def test_names_in_redis_that_are_no_text_stop_nobody() -> None:
    with redis_server(password="functional") as redis, site() as here:
        cluster = Cluster(here, redis)
        worker = cluster.start_worker()
        (beat,) = cluster.await_idle(1)
        client = redis.client()
        junk = [b"\xff\xfe\x1b[2J", EVIL.encode(), b"", b"x" * 100_000, b"0" * 40]
        client.sadd(redis_keys.WORKERS, *junk)
        for name in junk:
            client.set(b"osbench:worker:" + name, msgpack.packb([1, EVIL, b"\xff\x1b[2", b"", b""]))
        # an offer that no worker can read, until it expires
        client.set(redis_keys.offer(beat.incarnation), b"\xff\xfe\x1b[2J", px=1500)

        listed = here.coord("workers")
        run = here.coord(
            "run",
            here.task(
                {
                    "scenario": {"Dummy.dummy": {}},
                    "runner": {"constant": {"times": 20, "concurrency": 2}},
                }
            ),
        )

        client.close()
        worker.process.terminate()
        log = worker.finish()
        assert (listed.code, run.code, log.code) == (0, 0, 0), (listed, run, log)
        assert [steering(done) for done in (listed, run, log)] == [set(), set(), set()]

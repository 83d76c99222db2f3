"""The OSProfiler driver for services under test, beside the one that OSProfiler has for Redis."""

from __future__ import annotations

import datetime
import decimal
import importlib
import json
import logging
import re
import subprocess
import sys
import threading
import time
import urllib.request

import osprofiler.opts
import pytest
from osprofiler import profiler, web
from osprofiler.drivers import base

from helpers.driver_environment import driver_environment
from osbench.edges.traces.sources.redis_store import RedisTraces
from osbench_osprofiler import driver, hook
from osbench_osprofiler.store_queue import StoreQueue
from servers.child import PATIENCE_S
from servers.traced_shop import KEY, traced_shop

pytestmark = pytest.mark.functional

BASE = "7b1ca4c5-9d2f-4a3e-8a21-0f4ab2e7c9d1"
UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment with the driver."""
    return driver_environment(tmp_path_factory.mktemp("service") / "venv")


@pytest.fixture(autouse=True)
def options():
    osprofiler.opts.set_defaults(osprofiler.opts.cfg.CONF)


def buffered(redis):
    made = base.get_driver(f"osbench+{redis.url}", project="shop", service="web")
    assert type(made) is driver.BufferedRedis
    return made


def event(name="db-start", trace=BASE, **info):
    return {
        "name": name,
        "base_id": trace,
        "trace_id": trace,
        "parent_id": trace,
        "timestamp": "2026-04-01T10:15:00.000001",
        "info": {"host": "web-1", **info},
    }


def trace_name(number):
    return f"7b1ca4c5-9d2f-4a3e-8a21-{number:012x}"


def stats(made):
    (writer,) = made._writers.values()
    return writer.stats()


def close(made):
    (writer,) = made._writers.values()
    # a driver that is closed writes for two seconds at most
    wait_until(lambda: not writer.stats()["waiting"])
    writer.close()


def wait_until(ready):
    """A state that never comes fails by the test's timeout."""
    while not ready():
        time.sleep(0.01)


def events_of(client, trace=BASE):
    return client.lrange(f"osprofiler_opt:{trace}", 0, -1)


def test_what_is_stored_is_what_osprofilers_driver_stores_byte_for_byte(redis):
    client = redis.client()
    conf = {"profiler": type("Section", (), {"filter_error_trace": True})()}
    given = [
        event("wsgi-start", request={"path": "/v3/ü\u2028", "query": "a=1"}),
        event(
            "db-start",
            db={"statement": 'SELECT "x"\n', "params": {"n": datetime.datetime(2026, 4, 1)}},
        ),
        event("db-stop", etype="sqlite3.Error", message="odd", seen={3}),
        event("wsgi-stop", function={"result": b"bytes", "at": decimal.Decimal("1.5")}),
        event("odd-start", trace="no uuid, \u00e9"),
    ]
    found = []

    for url in (redis.url, f"osbench+{redis.url}"):
        client.flushall()
        made = base.get_driver(url, project="shop", service="web", conf=conf)
        for one in given:
            made.notify(one)
        if url.startswith("osbench+"):
            close(made)
        keys = sorted(client.keys())
        found.append(
            {key: client.lrange(key, 0, -1) if b"_opt:" in key else client.get(key) for key in keys}
        )
        assert {client.ttl(key) for key in keys} == {-1}

    assert [len(one) for one in found] == [3, 3]
    assert found[0] == found[1]


def requested(url, number):
    """A traced request of the shop; the id of its trace."""
    profiler.clean()
    trace = trace_name(number)
    profiler.init(KEY, base_id=trace)
    headers = web.get_trace_id_headers()
    profiler.clean()
    request = urllib.request.Request(f"{url}/buy?n={number}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.read() == b"reserved"
    return trace


def neutral(raw):
    """Events of one trace by service, with numbers for ids, and without instants."""
    ids, events = {}, []
    for text in sorted(raw, key=lambda one: json.loads(one)["timestamp"]):
        numbered = UUID.sub(lambda found: b"%d" % ids.setdefault(found[0], len(ids)), text)
        events.append(MOMENT.sub(b"then", numbered))
    return events


def test_traces_of_services_are_the_same_event_for_event(redis, python, tmp_path):
    client = redis.client()
    found = []

    for store in (redis.url, f"osbench+{redis.url}"):
        client.flushall()
        home = tmp_path / str(len(found))
        home.mkdir()
        with traced_shop(home, store, python=python) as url:
            traces = [requested(url, number) for number in range(20)]
            wait_until(lambda all_=traces: all(len(events_of(client, one)) == 6 for one in all_))
        found.append([neutral(events_of(client, one)) for one in traces])

    assert found[0] == found[1]
    report = base.get_driver(f"osbench+{redis.url}").get_report(traces[0])
    assert {name: one["count"] for name, one in report["stats"].items()} == {"wsgi": 2, "db": 1}


@pytest.mark.timing
def test_an_event_takes_a_third_of_osprofilers_time_at_most_on_an_idle_machine(redis):
    ours, theirs = buffered(redis), base.get_driver(redis.url, project="shop", service="web")
    one = event(db={"statement": "SELECT id FROM items WHERE name = ?", "params": {"n": 7}})

    def microseconds(made):
        started = time.perf_counter()
        for _ in range(200):
            made.notify(one)
        return (time.perf_counter() - started) / 200 * 1e6

    microseconds(ours)
    rounds = [(microseconds(ours), microseconds(theirs)) for _ in range(15)]
    close(ours)

    fast, slow = (sorted(column)[7] for column in zip(*rounds, strict=True))
    print(f"{fast:.1f} and {slow:.1f} us for an event")
    assert fast < slow / 3
    assert stats(ours)["dropped"] == 0


def test_a_store_that_hangs_costs_events_which_are_counted_for_their_traces(redis, monkeypatch):
    monkeypatch.setattr(driver, "QUEUE_LIMIT", 20_000)
    made = buffered(redis)
    made.notify(event())
    wait_until(lambda: stats(made)["written"] == 1)

    redis.pause()
    for number in range(1000):
        made.notify(event(trace=trace_name(number)))
    assert stats(made)["dropped"] >= 900
    redis.resume()
    wait_until(lambda: stats(made)["waiting"] == 0)
    close(made)

    after = stats(made)
    assert after["written"] + after["dropped"] == 1001
    store = RedisTraces(redis.url)
    traces = [trace_name(number).replace("-", "") for number in range(1000)]
    assert store.dropped(traces) == {"shop/web": after["dropped"]}
    assert store.delete(traces) >= after["written"] - 1
    assert [key for key in redis.client().scan_iter() if b"dropped" in key] == []
    store.close()


def test_a_store_that_is_away_delays_nothing_raises_nothing_and_is_said_once(redis, caplog):
    made = buffered(redis)
    redis.kill()

    with caplog.at_level(logging.WARNING):
        for _ in range(500):
            made.notify(event())
        wait_until(lambda: stats(made)["error"])
        for _ in range(500):
            made.notify(event())
        redis.restart()
        wait_until(lambda: stats(made)["waiting"] == 0)
    close(made)

    assert stats(made)["written"] == len(events_of(redis.client())) == 1000
    assert len([one for one in caplog.records if "Trace store" in one.getMessage()]) == 1
    assert redis.password not in caplog.text


def test_what_cannot_be_written_is_counted_and_the_rest_is_written(redis):
    made = buffered(redis)
    endless = {}
    endless["self"] = endless

    made.notify(event(odd=endless))
    made.notify({"name": "without ids"})
    made.notify(event(trace="\ud800"))
    made.notify(event())
    close(made)

    assert stats(made) == {"written": 1, "dropped": 3, "waiting": 0, "error": ""}
    assert redis.client().hgetall(f"osprofiler_dropped:{BASE}") == {b"shop/web": b"1"}


def test_a_store_that_takes_events_and_no_numbers_gets_the_events(redis):
    redis.client().acl_setuser(
        "service", enabled=True, passwords=["+pw"], keys=["osprofiler_opt:*"], commands=["+lpush"]
    )
    made = base.get_driver(f"osbench+redis://service:pw@127.0.0.1:{redis.port}/0")

    made.notify(event(odd=object()))
    made.notify(event())
    wait_until(lambda: "NOPERM" in stats(made)["error"])
    made.notify(event())
    close(made)

    assert stats(made)["written"] == len(events_of(redis.client())) == 2
    assert stats(made)["dropped"] == 1


def test_a_driver_that_cannot_be_imported_is_said_and_osprofiler_works(monkeypatch, caplog):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(osprofiler, "drivers", osprofiler.drivers)
    for name in [name for name in sys.modules if name.startswith("osprofiler.drivers")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "osbench_osprofiler.driver", None)
    finders = len(sys.meta_path)

    hook.install()
    drivers = importlib.import_module("osprofiler.drivers")

    assert drivers.redis_driver.Redis.get_name() == "redis"
    assert "the OSProfiler driver of osbench cannot be used" in caplog.text
    assert len(sys.meta_path) == finders


def test_an_argument_that_changes_later_is_stored_as_it_was(redis):
    made = buffered(redis)
    arguments = {"args": "first"}

    made.notify(event(function=arguments))
    arguments["args"] = "second"
    close(made)

    (raw,) = events_of(redis.client())
    assert json.loads(raw)["info"]["function"] == {"args": "first"}


def test_threads_share_one_writer_and_none_is_lost(redis, monkeypatch):
    started = []
    begin = StoreQueue._run
    monkeypatch.setattr(StoreQueue, "_run", lambda self: (started.append(self), begin(self)))
    made = buffered(redis)
    ready = threading.Barrier(8)

    def live():
        ready.wait()
        for _ in range(500):
            made.notify(event())

    threads = [threading.Thread(target=live) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close(made)

    assert len(started) == 1
    assert len(events_of(redis.client())) == stats(made)["written"] == 4000


FORKING = """
import os, sys
assert not [name for name in sys.modules if name.startswith("osprofiler")]
from osprofiler import notifier
made = notifier.create(sys.argv[1], conf={}, project="shop", service="web")
def send(number, times):
    for at in range(times):
        made({"name": f"{number}-{at}", "base_id": sys.argv[2], "trace_id": "t", "parent_id": "p",
              "timestamp": "2026-04-01T10:15:00.000001", "info": {"host": "h"}})
if sys.argv[3] == "used":
    send(0, 50)
children = []
for number in range(1, 4):
    child = os.fork()
    if not child:
        send(number, 100)
        sys.exit(0)
    children.append(child)
send(0, 50)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
assert not [name for name in sys.modules if name == "osbench" or name.startswith("osbench.")]
"""


@pytest.mark.parametrize(("before", "parents"), [("used", 100), ("unused", 50)])
def test_processes_that_fork_write_every_event_once(redis, python, tmp_path, before, parents):
    script = tmp_path / "forking.py"
    script.write_text(FORKING)

    done = subprocess.run(
        # from 3.12 on Python warns of a fork beside a thread, which is what is tried
        [str(python), "-W", "ignore", str(script), f"osbench+{redis.url}", BASE, before],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    names = sorted(json.loads(raw)["name"].split("-")[0] for raw in events_of(redis.client()))
    assert names == ["0"] * parents + ["1"] * 100 + ["2"] * 100 + ["3"] * 100
    assert redis.client().keys("osprofiler_dropped:*") == []


def test_a_process_ends_in_time_though_the_store_hangs(redis, python, tmp_path):
    script = tmp_path / "forking.py"
    script.write_text(FORKING.replace("range(1, 4)", "()").replace("[0, 0, 0]", "[]"))

    redis.pause()
    done = subprocess.run(
        [str(python), str(script), f"osbench+{redis.url}", BASE, "used"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    redis.resume()

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("osbench+rediss://:pw@host:6380/1", driver.BufferedRedisTls),
        ("osbench+unix:///run/redis.sock?db=2", driver.BufferedRedisSocket),
    ],
)
def test_other_ways_to_a_redis(url, kind):
    assert type(base.get_driver(url)) is kind


def test_a_malformed_address_is_refused_without_its_password():
    with pytest.raises(ValueError, match="malformed connection string") as refused:
        base.get_driver("osbench+redis://:hun/ter2@host")

    assert "hun" not in str(refused.value)

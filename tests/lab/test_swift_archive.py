"""Archives of runs in a real Swift, with tokens of a real Keystone: `make archive-swift`."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from keystoneauth1 import session

from helpers.made_runs import made_run
from helpers.runs import Finished, Site, site
from osbench.common.errors import ArchiveError
from osbench.edges.openstack.coordinator.swift_store import SwiftStore
from services import operations
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

DUMMY = ("--scenario", "Dummy.dummy", "--times", "20")


@pytest.fixture
def here(swift: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A user's home with the variables of openrc."""
    with site() as found:
        for line in swift.openrc().splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            found.variables[name] = value.strip("'")
            monkeypatch.setenv(name, found.variables[name])
        yield found


@pytest.fixture
def url(swift: Lab, here: Site) -> str:
    """The URL of an archive in a new container, made by a client that is not ours."""
    container = uuid.uuid4().hex
    ask(swift, "PUT", container)
    return f"swift://{container}/shop"


def ask(swift: Lab, method: str, path: str) -> Any:
    """Send a request of the administrator to Swift."""
    client: session.Session = admin(swift)
    return client.request(f"/{path}", method, endpoint_filter={"service_type": "object-store"})


def ok(swift: Lab, done: Finished) -> Finished:
    assert done.code == 0, done.out + done.err
    assert swift.password not in done.out + done.err
    return done


def ids(swift: Lab, here: Site, url: str) -> list[str]:
    rows = ok(swift, here.coord("runs", "list", "--archive", url, "--json"))
    return [one["run"] for one in json.loads(rows.out)]


def test_a_node_that_vanishes_keeps_its_runs_and_trends(swift: Lab, here: Site, url: str) -> None:
    runs = []
    for _ in range(2):
        runs.append(ok(swift, here.run(*DUMMY, "--archive", url)).result["run_id"])
        shutil.rmtree(here.data / "runs")
        shutil.rmtree(here.data / "archives")

    trend = ok(swift, here.coord("trends", "--archive", url, "--json"))
    ok(swift, here.coord("compare", *runs, "--archive", url))
    ok(swift, here.coord("runs", "pull", url, runs[0]))
    ok(swift, here.coord("runs", "show", runs[0]))
    again = ok(swift, here.coord("runs", "push", url))

    assert ids(swift, here, url) == runs[::-1]
    assert [one["run_id"] for one in json.loads(trend.out)["trends"][0]["runs"]] == runs
    assert "0 runs pushed" in again.err
    container = url.removeprefix("swift://").partition("/")[0]
    found = [one["name"] for one in ask(swift, "GET", f"{container}?format=json").json()]
    names = [re.sub(r"\.[0-9a-f]{16}\.", ".DIGEST.", name) for name in found]
    assert names == sorted(
        [f"shop/index/{run}.DIGEST.json.zst" for run in runs]
        + [f"shop/runs/{run}.DIGEST.tar.zst" for run in runs]
    )


def test_writers_at_once_lose_nothing(swift: Lab, here: Site, url: str) -> None:
    common = "20260409-000000-aaaa"
    wanted = {common}
    done: dict[Path, Finished] = {}

    def push(conf: Path) -> None:
        done[conf] = here.coord("runs", "push", url, "--config-file", str(conf))

    threads = []
    for writer in range(3):
        place = here.home / str(writer)
        for number in range(2):
            run = f"2026040{number + 1}-1015{writer:02}-abcd"
            made_run(place, 200, run=run, seed=writer)
            wanted.add(run)
        made_run(place, 50, run=common)
        conf = place / "osbench.conf"
        conf.write_text(f"[DEFAULT]\ndata_dir = {place}\n")
        threads.append(threading.Thread(target=push, args=(conf,)))
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    for finished in done.values():
        ok(swift, finished)
    assert set(ids(swift, here, url)) == wanted
    ok(swift, here.coord("runs", "pull", url))
    ok(swift, here.coord("runs", "show", common))


def test_a_token_that_is_refused_is_renewed(
    swift: Lab, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "local"
    local.write_bytes(b"x" * (3 << 20))
    store = SwiftStore(url)
    monkeypatch.setenv("OS_TOKEN", str(admin(swift).get_token()))
    monkeypatch.delenv("OS_PASSWORD")
    once = SwiftStore(url)

    assert store.listed("runs") == once.listed("runs") == {}
    first, only = revoke(swift, store), revoke(swift, once)
    store.put(local, "runs/one")

    assert store.size("runs/one") == 3 << 20
    assert token_of(store) != first
    with pytest.raises(ArchiveError, match=r"cannot list runs: .*token cannot log in") as refused:
        once.listed("runs")
    assert only not in str(refused.value)


def token_of(store: SwiftStore) -> str:
    """The token that a store uses."""
    return str(store.cloud.account.login.auth_ref.auth_token)


def revoke(swift: Lab, store: SwiftStore) -> str:
    """Revoke the token of a store, and wait until Swift has forgotten it; returns it."""
    token = token_of(store)
    address = f"{swift.auth_url}/auth/tokens"
    admin(swift).request(address, "DELETE", headers={"X-Subject-Token": token})
    while requests.get(store.cloud.address("swift"), headers={"X-Auth-Token": token}).ok:
        time.sleep(0.2)
    return token


def test_what_swift_refuses_is_one_message(here: Site, url: str) -> None:
    made_run(here.data, 100)
    none = f"swift://{uuid.uuid4().hex}/shop"

    empty = here.coord("runs", "list", "--archive", url)
    missing = [
        here.coord("runs", "push", none),
        here.coord("runs", "list", "--archive", none),
        here.coord("run", *DUMMY, "--archive", none),
    ]
    here.variables["OS_PASSWORD"] = "planted-and-wrong"
    wrong = here.coord("runs", "push", url)
    del here.variables["OS_PASSWORD"]
    incomplete = here.coord("runs", "push", url)

    assert (empty.code, f"the archive {url} does not exist" in empty.err) == (0, True)
    for done in (*missing, wrong, incomplete):
        assert done.code == 2, done.out + done.err
        assert done.err.startswith("Error: the archive swift://")
        assert len(done.err.splitlines()) == 1
        assert "planted-and-wrong" not in done.err
    assert all("there is no container" in done.err for done in missing)
    assert "gave no token to user 'admin'" in wrong.err
    assert "OS_PASSWORD is not set" in incomplete.err


def test_a_server_that_goes_away_after_the_run(
    swift: Lab, here: Site, url: str, tmp_path: Path
) -> None:
    # the load ends the server
    process = swift.processes.find("swift")
    assert process is not None
    plugin = tmp_path / "gone.py"
    plugin.write_text(
        "import os, signal\n"
        "from osbench.plugin import scenario\n\n"
        "class Gone(scenario.Scenario):\n"
        "    @scenario.configure(name='Gone.gone')\n"
        "    def gone(self):\n"
        f"        os.kill({process.pid}, signal.SIGKILL)\n"
    )
    gone = ("--scenario", "Gone.gone", "--times", "1", "--plugin-path", str(plugin))

    try:
        done = here.run(*gone, "--archive", url)
    finally:
        operations.start(swift, ["swift"])
    again = ok(swift, here.coord("runs", "push", url))

    assert done.code == 5, done.err
    assert f"Warning: archive failed: the archive {url}: cannot" in done.err
    assert "tries again" in done.result["notes"][0]
    assert "1 run pushed" in again.err

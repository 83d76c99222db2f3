"""Archives of runs in a server that has the protocol of S3: moto's.

`make archive-s3` installs it below `build/` and runs these tests.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.made_runs import made_run
from helpers.runs import Finished, Site, site
from servers import Child, free_port

pytest.importorskip("s3fs", reason="s3fs is not installed: make archive-s3 installs it")
pytest.importorskip("moto.server", reason="moto is not installed: make archive-s3 installs it")

pytestmark = pytest.mark.functional

SECRET = "planted-secret-key-0123456789abcdef0123"
URL = "s3://team-runs/shop"
DUMMY = ("--scenario", "Dummy.dummy", "--times", "20")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A user's home whose S3 is moto's, with a bucket."""
    with site() as found:
        port = free_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "planted-id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        child = Child(command, folder=found.home, log=found.home / "moto")
        (found.home / "moto.pid").write_text(str(child.process.pid))
        try:
            _await(port, child)
            bucket(port)
            yield found
        finally:
            child.end()


def _await(port: int, child: Child) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert child.process.poll() is None, child.tail()
            time.sleep(0.05)
        else:
            return


def bucket(port: int) -> None:
    """Create the bucket, with a client that is not ours."""
    import boto3

    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
    client.create_bucket(Bucket="team-runs")


def objects() -> list[str]:
    import boto3

    found = boto3.client("s3").list_objects_v2(Bucket="team-runs")
    return sorted(one["Key"] for one in found.get("Contents", ()))


def ok(done: Finished) -> Finished:
    assert done.code == 0, done.out + done.err
    assert SECRET not in done.out + done.err
    return done


def ids(here: Site) -> list[str]:
    rows: list[dict[str, Any]] = json.loads(
        ok(here.coord("runs", "list", "--archive", URL, "--json")).out
    )
    return [one["run"] for one in rows]


def test_a_node_that_vanishes_keeps_its_runs_and_trends(here: Site) -> None:
    runs = []
    for _ in range(2):
        runs.append(ok(here.run(*DUMMY, "--archive", URL)).result["run_id"])
        shutil.rmtree(here.data / "runs")
        shutil.rmtree(here.data / "archives")

    trend = ok(here.coord("trends", "--archive", URL, "--json"))
    ok(here.coord("compare", *runs, "--archive", URL))
    ok(here.coord("runs", "pull", URL, runs[0]))
    ok(here.coord("runs", "show", runs[0]))
    again = ok(here.coord("runs", "push", URL))

    assert ids(here) == runs[::-1]
    assert [one["run_id"] for one in json.loads(trend.out)["trends"][0]["runs"]] == runs
    assert "0 runs pushed" in again.err
    names = [re.sub(r"\.[0-9a-f]{16}\.", ".DIGEST.", name) for name in objects()]
    assert names == sorted(
        [f"shop/index/{run}.DIGEST.json.zst" for run in runs]
        + [f"shop/runs/{run}.DIGEST.tar.zst" for run in runs]
    )


@pytest.mark.parametrize("writers", [2, 8])
def test_writers_at_once_lose_nothing(here: Site, writers: int) -> None:
    wanted = set()
    sites = []
    for writer in range(writers):
        place = here.home / str(writer)
        conf = place / "osbench.conf"
        for number in range(2):
            run = f"2026040{number + 1}-1015{writer:02}-abcd"
            made_run(place, 200, run=run, seed=writer)
            wanted.add(run)
        made_run(place, 50, run="20260409-000000-aaaa")
        conf.write_text(f"[DEFAULT]\ndata_dir = {place}\n")
        sites.append(conf)
    wanted.add("20260409-000000-aaaa")
    done: dict[Path, Finished] = {}

    def push(conf: Path) -> None:
        done[conf] = here.coord("runs", "push", URL, "--config-file", str(conf))

    threads = [threading.Thread(target=push, args=(conf,)) for conf in sites]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    for conf in sites:
        ok(done[conf])
    assert set(ids(here)) == wanted
    assert len(objects()) == 2 * len(wanted)
    ok(here.coord("runs", "pull", URL))
    ok(here.coord("runs", "show", "20260409-000000-aaaa"))


def test_a_run_larger_than_a_part_of_an_upload(here: Site) -> None:
    run = made_run(here.data, 100)
    # of bytes that do not compress, in a file that no digest covers
    (run.path / "log").write_bytes(bytes(range(256)) * 4 + _noise(70 << 20))

    ok(here.coord("runs", "push", URL))
    before = (run.path / "log").read_bytes()
    shutil.rmtree(run.path)
    ok(here.coord("runs", "pull", URL))

    assert (run.path / "log").read_bytes() == before


def _noise(size: int) -> bytes:
    import random

    return random.Random(1).randbytes(size)


def test_what_s3_refuses_is_one_message(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    made_run(here.data, 100)

    none = "s3://no-such-bucket/shop"
    empty = here.coord("runs", "list", "--archive", URL)
    assert (empty.code, f"the archive {URL} does not exist" in empty.err) == (0, True)
    missing = here.coord("runs", "push", none)
    listed = here.coord("runs", "list", "--archive", none)
    kept = here.coord("run", *DUMMY, "--archive", none)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    away = here.coord("runs", "push", URL)
    read = here.coord("trends", "--archive", URL)
    run = here.coord("run", *DUMMY, "--archive", URL)

    for done in (missing, listed, kept, away, read, run):
        assert done.code == 2, done.out + done.err
        assert done.err.startswith("Error: the archive s3://")
        assert len(done.err.splitlines()) == 1
        assert SECRET not in done.err
    for done in (missing, listed, kept):
        assert f"the archive {none}: there is no bucket no-such-bucket" in done.err


def test_a_third_party_verifies_a_certificate_by_the_archive(here: Site) -> None:
    run = ok(here.run(*DUMMY, "--archive", URL)).result["run_id"]
    ok(here.call("certify", "--new-key", "team.key"))
    ok(here.call("certify", run, "--key", "team.key", "--output", "c.json"))
    shutil.rmtree(here.data)
    verify = ("verify", "c.json", "--public-key", "team.key.pub", "--archive", URL, "--json")

    found = ok(here.call(*verify))
    _change_the_packed_run()
    changed = here.call(*verify)

    assert json.loads(found.out)["has_files"] is True
    assert changed.code == 1, changed.out + changed.err
    assert "expected a complete tar file" in json.loads(changed.out)["error"]["message"]
    assert "Traceback" not in changed.err


def _change_the_packed_run() -> None:
    """Flip a bit in the middle of the archive's only packed run."""
    import boto3

    client, name = boto3.client("s3"), next(one for one in objects() if one.endswith(".tar.zst"))
    content = bytearray(client.get_object(Bucket="team-runs", Key=name)["Body"].read())
    content[len(content) // 2] ^= 1
    client.put_object(Bucket="team-runs", Key=name, Body=bytes(content))


def test_a_server_that_goes_away_after_the_run(here: Site, tmp_path: Path) -> None:
    """End the server while the run goes on."""
    # the load ends the server
    plugin, marker = tmp_path / "gone.py", here.home / "moto.pid"
    plugin.write_text(
        "import os, signal\n"
        "from osbench.plugin import scenario\n\n"
        "class Gone(scenario.Scenario):\n"
        "    @scenario.configure(name='Gone.gone')\n"
        "    def gone(self):\n"
        f"        os.kill(int(open({str(marker)!r}).read()), signal.SIGKILL)\n"
    )

    done = here.run(
        "--scenario", "Gone.gone", "--times", "1", "--plugin-path", str(plugin), "--archive", URL
    )

    assert done.code == 5, done.err
    assert "Warning: archive failed: the archive s3://team-runs/shop: cannot" in done.err
    assert "tries again" in done.result["notes"][0]
    assert SECRET not in done.err + done.out
